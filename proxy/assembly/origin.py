"""The upstream's options from the settings."""

from __future__ import annotations

from proxy.settings import DEMO, Settings
from proxy.wire.origin import UpstreamOptions

DEMO_URL = "http://demo.invalid/v1"
"""A placeholder: the demo's model has an address only while the demo runs."""


def upstream_options(settings: Settings, url: str = "") -> UpstreamOptions:
    """Raises ValueError where no request could ever succeed."""
    chosen = settings.upstream
    return UpstreamOptions(
        url=url or (DEMO_URL if chosen.url == DEMO else chosen.url),
        connect_timeout=chosen.connect_timeout,
        read_timeout=chosen.read_timeout,
        trust_env=chosen.trust_env,
        ca_file=chosen.ca_file,
        proxy=chosen.proxy,
    )
