"""Where the settings say that the upstream is."""

from __future__ import annotations

from proxy.settings import DEMO, Settings
from proxy.wire.origin import UpstreamOptions

NOWHERE = "http://demo.invalid/v1"
"""The demo's model is there while it is served; whoever else has its settings asks no model."""


def upstream_options(settings: Settings, url: str = "") -> UpstreamOptions:
    """Raises ValueError where no request could ever succeed."""
    chosen = settings.upstream
    return UpstreamOptions(
        url=url or (NOWHERE if chosen.url == DEMO else chosen.url),
        connect_timeout=chosen.connect_timeout,
        read_timeout=chosen.read_timeout,
        trust_env=chosen.trust_env,
        ca_file=chosen.ca_file,
        proxy=chosen.proxy,
    )
