"""The default HTTP client for upstreams: a third of a client library's CPU for each request.

Has the connection pool and writes requests.  Does not support egress proxies: the other clients do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from proxy.errors import RawHeaders
from proxy.wire.body import PIECE, Body, in_pieces
from proxy.wire.direct.connection import Connection
from proxy.wire.direct.dial import Dialer
from proxy.wire.direct.incoming import Incoming
from proxy.wire.failures import RequestNotReceived, UpstreamUnreachable
from proxy.wire.origin import KEEP_ALIVE_SECONDS, Origin, UpstreamOptions, tls
from proxy.wire.reply import WholeReply

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""Methods that are sent again if a pooled connection turns out to be closed (RFC 9110 9.2.2)."""

IDLE_MARGIN = 0.8
"""A connection is used while it is idle for this part of the time after which the last one was
closed: a POST that is sent while the upstream closes it may get no answer, and is not sent again
unless nothing of it had arrived."""
MIN_IDLE_SECONDS = 1.0
"""Younger ones are always used: an upstream that restarts closes them at any age."""

READ_BYTES = 64 * 1024
"""Bytes that are read of a connection at once."""


class DirectUpstream:
    """See ``upstream.Upstream``."""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options
        self.origin = Origin.of(options.url)
        self._host_line = b"Host: " + self.origin.host + b"\r\n"
        self._dialer: Dialer | None = None
        self._buffer = bytearray(READ_BYTES)
        self._idle: list[Connection] = []
        self._idle_limit = KEEP_ALIVE_SECONDS
        self._busy: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self.exchanges = 0

    def __repr__(self) -> str:
        state = "closed" if self._dialer is None else f"{self.exchanges} exchanges"
        return f"<DirectUpstream {self.origin.site} {state}>"

    async def open(self) -> None:
        parts, options = urlsplit(self._options.url), self._options
        secure = parts.scheme == "https"
        assert parts.hostname is not None
        self._dialer = Dialer(
            parts.hostname,
            parts.port or (443 if secure else 80),
            tls(options) if secure else None,
            options.connect_timeout,
        )

    async def close(self) -> None:
        self._dialer = None
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in [*self._idle, *self._busy]:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # aborted transports close in the loop's next iteration

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: Body,
        content_length: int | None = None,
    ) -> DirectReply:
        if isinstance(body, bytes):
            content_length = len(body)
        head = self._head(method, target, headers, body, content_length)
        self.exchanges += 1
        try:
            return await self._send(method, head, body, content_length)
        except BaseException:
            self.exchanges -= 1
            raise

    def _head(
        self, method: str, target: bytes, headers: RawHeaders, body: Body, length: int | None
    ) -> bytes:
        """Raises ValueError for a header with a line break or NUL in it."""
        lines = [method.encode("ascii"), b" ", self.origin.target(target), b" HTTP/1.1\r\n"]
        lines.append(self._host_line)
        for name, value in headers:
            lines += (name, b": ", value, b"\r\n")
        if length is not None and body is not None:
            lines.append(b"Content-Length: %d\r\n" % length)
        elif body is not None:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        breaks = len(headers) + (3 if body is None else 4)
        if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
            raise ValueError("a header has a line break in it")
        return head

    async def _send(self, method: str, head: bytes, body: Body, length: int | None) -> DirectReply:
        """Send on a pooled connection, else on a new one."""
        pooled = self._idle_connection()
        if pooled is not None:
            try:
                return await self._send_on(pooled, method, head, body, length)
            except UpstreamUnreachable as failure:
                harmless = method in IDEMPOTENT or isinstance(failure, RequestNotReceived)
                if not harmless or not (body is None or isinstance(body, bytes)):
                    raise
        return await self._send_on(await self._connect(), method, head, body, length)

    async def _send_on(
        self, connection: Connection, method: str, head: bytes, body: Body, length: int | None
    ) -> DirectReply:
        self._busy.add(connection)
        if isinstance(body, bytes) and len(body) > PIECE:
            body = in_pieces(body)
        try:
            incoming = connection.send_request(head, body, length, bodiless=method == "HEAD")
            await incoming.head()
        except BaseException:
            self._busy.discard(connection)
            connection.abort()
            raise
        return DirectReply(self, connection, incoming)

    def _idle_connection(self) -> Connection | None:
        """The most recently used connection, unless the upstream may be about to close it."""
        while self._idle and self._idle[-1].idle_seconds() < self._idle_limit:
            connection = self._idle.pop()
            if connection.reusable() and not connection.has_unread():
                return connection
            self._discard(connection)
        return None

    def _discard(self, connection: Connection) -> None:
        """Close an idle connection.  The upstream will close others that are idle for as long."""
        self._idle_limit = max(MIN_IDLE_SECONDS, IDLE_MARGIN * connection.idle_seconds())
        connection.abort()

    async def _connect(self) -> Connection:
        if self._dialer is None:
            raise RuntimeError("open() the upstream before sending")
        loop, silence = asyncio.get_running_loop(), self._options.read_timeout
        return await self._dialer.dial(lambda: Connection(loop, silence, self._buffer))

    def release(self, connection: Connection) -> None:
        """Return a connection to the pool after its answer, or close it if it is not reusable."""
        self.exchanges -= 1
        self._busy.discard(connection)
        if self._dialer is None or not connection.reusable():
            return connection.abort()
        self._idle.append(connection)
        if self._sweep is None:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(KEEP_ALIVE_SECONDS, self._close_expired)

    def _close_expired(self) -> None:
        """Close the connections that nobody has used for long."""
        self._sweep = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_ALIVE_SECONDS
        for connection in self._idle:
            if connection.last_active <= oldest:
                self._discard(connection)
        self._idle = [kept for kept in self._idle if kept.last_active > oldest]
        if self._idle:
            self._sweep = loop.call_later(self._idle[0].last_active - oldest, self._close_expired)


class DirectReply(WholeReply):
    """See ``upstream.Reply``."""

    __slots__ = ("_connection", "_incoming", "_upstream", "headers", "status")

    def __init__(
        self, upstream: DirectUpstream, connection: Connection, incoming: Incoming
    ) -> None:
        self._upstream: DirectUpstream | None = upstream
        self._connection, self._incoming = connection, incoming
        self.status = incoming.status
        self.headers: RawHeaders = incoming.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        while data := await self._incoming.piece():
            yield data

    async def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.release(self._connection)
