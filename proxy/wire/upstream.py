"""The seam to the upstream: one request out, one answer back, nothing interpreted on the way.

Three implementations stand behind it, our own, aiohttp and httpx, held to one suite of tests.
Whatever they raise is an UpstreamError; whatever they hold open is counted.  The libraries are
loaded when they are chosen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal, Protocol

from proxy.errors import RawHeaders
from proxy.lazy import late
from proxy.wire.body import Body
from proxy.wire.direct.upstream import DirectUpstream
from proxy.wire.origin import Origin, UpstreamOptions, egress_proxy

if TYPE_CHECKING:
    from proxy.wire import aiohttp_upstream, httpx_upstream
else:
    aiohttp_upstream = late("proxy.wire.aiohttp_upstream")
    httpx_upstream = late("proxy.wire.httpx_upstream")

Kind = Literal["direct", "aiohttp", "httpx"]


class Reply(Protocol):
    """An answer whose head has arrived.  Whoever got it closes it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> RawHeaders:
        """As they came: order, case and duplicates kept, hop-by-hop fields included."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, not decoded, never re-chunked, each piece as soon as it is there.

        Raises UpstreamTimeout and UpstreamBroken, after all that did arrive was given out.
        """
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
        """Requests under way and replies not closed: 0 means that nothing was left behind."""
        ...

    @property
    def origin(self) -> Origin:
        """Where it is."""
        ...

    async def open(self) -> None: ...

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: Body,
        content_length: int | None = None,
    ) -> Reply:
        """Ask, and wait for the head of the answer.

        ``target`` is the raw path and query behind the base URL, beginning with a slash.
        ``headers`` travel as given; ``Host`` and the framing are added, nothing else, so they must
        not be among them (``headers.end_to_end`` sees to it).  ``body`` None sends no framing at
        all, b"" a ``Content-Length: 0``; an iterator is sent with ``content_length`` where it is
        known, else chunked.  A POST is never sent twice.

        Raises UpstreamUnreachable, UpstreamTimeout, UpstreamBroken, UpstreamSaturated, and what
        the iterator raises.  Cancelling closes the connection.
        """
        ...

    async def close(self) -> None: ...


def open_upstream(kind: Kind, options: UpstreamOptions) -> Upstream:
    """A client for ``options``.  Opens nothing yet: await its ``open()`` inside the event loop.

    "direct" is for direct connections: where a proxy is on the way, aiohttp goes through it.
    """
    if kind == "httpx":
        return httpx_upstream.HttpxUpstream(options)
    if kind == "aiohttp" or egress_proxy(options) is not None:
        return aiohttp_upstream.AiohttpUpstream(options)
    return DirectUpstream(options)
