"""Where the settings say that the upstream is."""

from __future__ import annotations

from proxy.settings import Settings
from proxy.wire.origin import UpstreamOptions


def upstream_options(settings: Settings, url: str = "") -> UpstreamOptions:
    """Raises ValueError where no request could ever succeed."""
    chosen = settings.upstream
    return UpstreamOptions(
        url=url or chosen.url,
        connect_timeout=chosen.connect_timeout,
        read_timeout=chosen.read_timeout,
        trust_env=chosen.trust_env,
        ca_file=chosen.ca_file,
        proxy=chosen.proxy,
    )
