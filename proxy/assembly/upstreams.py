"""Makes the [[upstreams]] of the settings."""

from __future__ import annotations

from proxy.assembly.resources import Resources, upstream_of
from proxy.settings import ListedUpstream
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination
from proxy.wire.upstream import Upstream


async def upstreams_of(resources: Resources) -> Upstreams | None:
    """All of them, open; None if there are none.  Raises ValueError for invalid options,
    OSError."""
    settings, listed = resources.settings, []
    for chosen in settings.upstreams:
        upstream = upstream_of(settings.with_upstream(chosen))
        await upstream.open()
        resources.opened.push_async_callback(upstream.close)
        listed.append(destination_of(chosen, upstream))
    return Upstreams(listed) if listed else None


def destination_of(chosen: ListedUpstream, upstream: Upstream) -> Destination:
    """One of the upstreams with its client."""
    return Destination(
        name=chosen.name,
        upstream=upstream,
        models=chosen.models,
        kind=chosen.kind,
        key=chosen.api_key.get_secret_value() if chosen.api_key else None,
        allowed=chosen.allowed_paths,
        client_keys=chosen.client_keys,
        max_concurrent=chosen.max_concurrent_requests,
        extra_headers=tuple(
            (name.encode(), value.get_secret_value().encode())
            for name, value in chosen.headers.items()
        ),
    )
