"""The interface of HTTP clients for upstreams: one request, one answer, nothing interpreted.

Our own, aiohttp's and httpx's implementations pass the same test suite.  They raise UpstreamError
only, and count what they hold open.  The libraries are imported on first use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal, Protocol

from proxy.errors import RawHeaders
from proxy.lazy import lazy_import
from proxy.wire.body import Body
from proxy.wire.direct.upstream import DirectUpstream
from proxy.wire.origin import Origin, UpstreamOptions, egress_proxy

if TYPE_CHECKING:
    from proxy.wire import aiohttp_upstream, httpx_upstream
else:
    aiohttp_upstream = lazy_import("proxy.wire.aiohttp_upstream")
    httpx_upstream = lazy_import("proxy.wire.httpx_upstream")

Kind = Literal["direct", "aiohttp", "httpx"]


class Reply(Protocol):
    """An answer whose head has arrived.  The caller of ``send`` must close it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> RawHeaders:
        """As received: order, case and duplicates kept, hop-by-hop fields included."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, not decoded, each piece as soon as it arrives.  Raises UpstreamTimeout and
        UpstreamBroken, after all that did arrive was returned."""
        ...

    async def read(self, limit: int = ...) -> bytes:
        """The whole body; UpstreamTooLarge if it is larger than ``limit`` bytes."""
        ...

    async def close(self) -> None:
        """Give the connection back if the body was read to its end, else close it.  Idempotent."""
        ...


class Upstream(Protocol):
    """One upstream, with a pool of connections."""

    @property
    def exchanges(self) -> int:
        """Requests in flight and replies not closed; 0 means that nothing is leaked."""
        ...

    @property
    def origin(self) -> Origin: ...

    async def open(self) -> None: ...

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: Body,
        content_length: int | None = None,
    ) -> Reply:
        """Send a request and wait for the head of the answer.

        ``target`` is the raw path and query after the base URL, beginning with a slash.
        ``headers`` are sent as given; only ``Host`` and framing are added, so they must not be
        among them (``headers.end_to_end`` drops them).  ``body`` None sends no framing, b"" sends
        ``Content-Length: 0``; an iterator is sent with ``content_length`` if given, else chunked.
        A POST is sent again only if nothing of it was received.

        Raises UpstreamUnreachable, UpstreamTimeout, UpstreamBroken, UpstreamSaturated, and what
        the iterator raises.  Cancelling closes the connection.
        """
        ...

    async def close(self) -> None: ...


def open_upstream(kind: Kind, options: UpstreamOptions) -> Upstream:
    """A client for ``options``, not open yet: await its ``open()`` inside the event loop.

    "direct" does not support egress proxies: with one, aiohttp is used.
    """
    if kind == "httpx":
        return httpx_upstream.HttpxUpstream(options)
    if kind == "aiohttp" or egress_proxy(options) is not None:
        return aiohttp_upstream.AiohttpUpstream(options)
    return DirectUpstream(options)
