"""One HTTP/1.1 connection to an upstream, for one exchange at a time: an asyncio Protocol.

Knows the parser, and neither hosts nor pools.  The read timeout is checked by one timer per
connection against the time of the last received bytes, which is cheaper than a timer per piece.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
from collections.abc import AsyncIterator
from typing import cast

import httptools

from proxy.errors import RawHeaders
from proxy.wire.body import Body
from proxy.wire.direct.incoming import HIGH_WATER, Incoming
from proxy.wire.failures import (
    RequestNotReceived,
    UpstreamBroken,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from proxy.wire.headers import get, get_all

MAX_HEAD_BYTES = 512 * 1024
"""Limit on a response head with its interim responses, and on chunk framing and trailers."""
MAX_HEADERS = 1024

_SWITCHING = 101

_ACKNOWLEDGED = struct.Struct("@120xQ")
"""The field ``tcpi_bytes_acked`` of Linux's ``tcp_info``."""


class Connection(asyncio.BufferedProtocol):
    """``read_timeout``: seconds for which the upstream may send nothing.

    ``buffer``: what is read at once, for all connections of a loop.  Event loops themselves read
    256 KiB, which every stream whose client reads nothing would hold.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, read_timeout: float, buffer: bytearray
    ) -> None:
        self._loop, self._read_timeout, self._buffer = loop, read_timeout, buffer
        self._parser: httptools.HttpResponseParser | None = None
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.last_active = 0.0
        """By the loop's clock; between requests: since when it is idle."""
        self._suspended = False  # the read timeout is, while the upstream is not the one to act
        self._upload: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._idle_bytes = 0  # since the body last grew
        self._acknowledged: int | None = None  # when the request was sent; None for the first one
        self._interim = self._reusable = False
        self._lost_at: float | None = None

    def send_request(
        self, head: bytes, body: Body, length: int | None, *, bodiless: bool
    ) -> Incoming:
        """Send a request.  A streamed body is sent by a task, with chunked framing unless a
        ``length`` is given."""
        assert self._transport is not None
        self._acknowledged = _acknowledged(self._transport) if self._incoming else None
        self._incoming = incoming = Incoming(self._loop, self._resume, bodiless=bodiless)
        self._idle_bytes = 0
        self._interim = self._reusable = self._suspended = False
        if self._parser is None:
            self._parser = _new_parser(self)
        if body is None or isinstance(body, bytes):
            self._transport.write(head + body if body else head)
        else:
            self._transport.write(head)
            self._upload = self._loop.create_task(self._send(body, length))
        self.last_active = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._read_timeout, self._check_silence)
        return incoming

    def reusable(self) -> bool:
        """Whether it can be used for another request, as far as has been read from it."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        return self._reusable and self._upload is None

    def has_unread(self) -> bool:
        """Whether something has arrived that the loop has not read yet: on an idle connection its
        end, or bytes that no request has asked for."""
        return self._transport is not None and _has_arrived(self._transport)

    def idle_seconds(self) -> float:
        """How long it has been idle, or was when it was closed."""
        ended = self._loop.time() if self._lost_at is None else self._lost_at
        return ended - self.last_active

    def abort(self) -> None:
        """Close it at once, with any exchange on it."""
        self._reusable = False
        if self._upload is not None:
            self._upload.cancel()
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        incoming = self._incoming
        if incoming is None or incoming.complete or self._parser is None:
            return self.abort()  # bytes that no request has asked for
        self.last_active = self._loop.time()
        self._idle_bytes += nbytes
        try:
            self._parser.feed_data(memoryview(self._buffer)[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return self._fail(UpstreamBroken("the answer is not HTTP"))
        if self._idle_bytes > MAX_HEAD_BYTES:
            return self._fail(UpstreamBroken("the answer's head does not end"))
        incoming.wake()
        if incoming.size > HIGH_WATER and not incoming.paused and not incoming.complete:
            incoming.paused = self._suspended = True
            assert self._transport is not None
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """The upstream closes.  Its FIN acknowledges all that had arrived before it."""
        incoming = self._incoming
        if incoming is None or self._transport is None or self._acknowledged is None:
            return
        if incoming.in_head and _acknowledged(self._transport) == self._acknowledged:
            incoming.fail(RequestNotReceived("closed before the request arrived"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._parser = None
        self._reusable = False
        self._lost_at = self._loop.time()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._upload is not None:
            self._upload.cancel()
        incoming, self._incoming = self._incoming, None
        if incoming is None or incoming.complete:
            return
        if incoming.in_head:
            incoming.fail(UpstreamUnreachable("no answer"))
        elif exc is None and _ends_with_connection(incoming):
            incoming.complete = True
            incoming.wake()
        else:
            incoming.fail(UpstreamBroken("the answer was cut off"))

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._incoming is None or self._incoming.complete:
            raise UpstreamBroken("an answer to nothing that was asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        assert incoming is not None
        if not incoming.in_head:
            return  # a trailer
        if len(incoming.headers) >= MAX_HEADERS:
            raise UpstreamBroken("too many headers")
        incoming.headers.append((name, value))

    def on_headers_complete(self) -> None:
        incoming, parser = self._incoming, self._parser
        assert incoming is not None and parser is not None
        status = parser.get_status_code()
        if not incoming.in_head or status == _SWITCHING:
            raise UpstreamBroken("an answer to nothing that was asked")
        if status < 200:
            self._interim = True
            incoming.headers.clear()
            return
        if self._idle_bytes > MAX_HEAD_BYTES and _headers_size(incoming.headers) > MAX_HEAD_BYTES:
            raise UpstreamBroken("too large headers")
        incoming.status = status
        incoming.in_head = False
        self._idle_bytes = 0
        if incoming.bodiless:
            self._end(incoming, parser)
            self._parser = None  # it would expect the body that the head declares

    def on_body(self, body: bytes) -> None:
        incoming = self._incoming
        assert incoming is not None
        if incoming.complete:
            raise UpstreamBroken("a body where there is none")
        self._idle_bytes = 0
        incoming.pieces.append(body)
        incoming.size += len(body)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif self._incoming is not None and self._parser is not None:
            self._end(self._incoming, self._parser)

    # Ours

    def _end(self, incoming: Incoming, parser: httptools.HttpResponseParser) -> None:
        self._reusable = parser.should_keep_alive() and not _ambiguous(incoming.headers)
        incoming.complete = True

    def _fail(self, failure: UpstreamError) -> None:
        if self._incoming is not None:
            self._incoming.fail(failure)
        self.abort()

    def _resume(self) -> None:
        """Read from the transport again: the reader has consumed all pieces."""
        self._suspended = False
        self.last_active = self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _check_silence(self) -> None:
        """Fail the exchange if the upstream has sent nothing for ``read_timeout`` seconds."""
        self._timer = None
        incoming = self._incoming
        if incoming is None or incoming.complete:
            return  # the next request starts the timer again
        now = self._loop.time()
        if self._suspended:
            self.last_active = now
        remaining = self.last_active + self._read_timeout - now
        if remaining > 0:
            self._timer = self._loop.call_later(remaining, self._check_silence)
        else:
            problem = "no answer in time" if incoming.in_head else "the answer stopped"
            self._fail(UpstreamTimeout(problem))

    async def _send(self, body: AsyncIterator[bytes], length: int | None) -> None:
        """Send a streamed body.  What the iterator raises is raised by the reader of the answer."""
        try:
            await self._send_pieces(body, length)
        except Exception as failure:  # noqa: BLE001 - the iterator's, raised in the reader
            if self._incoming is not None:
                self._incoming.fail(failure)
            self._upload = None
            self.abort()
        finally:
            self._upload = None
            self._suspended = False
            self.last_active = self._loop.time()

    async def _send_pieces(self, body: AsyncIterator[bytes], length: int | None) -> None:
        transport = self._transport
        assert transport is not None
        remaining = length
        self._suspended = True
        async for piece in body:
            if remaining is not None:
                remaining -= len(piece)
                if remaining < 0:
                    break
                transport.write(piece)
            elif piece:
                # Not writelines: asyncio's does not call pause_writing (Python 3.12, 3.13).
                transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._drained()
        if remaining:
            raise ValueError("the body is not of the length that was declared")
        if length is None:
            transport.write(b"0\r\n\r\n")
        await self._drained()

    async def _drained(self) -> None:
        """Wait until the transport accepts more; meanwhile the read timeout runs."""
        if self._writable is not None:
            self._suspended = False
            self.last_active = self._loop.time()
            await self._writable
            self._suspended = True


def _has_arrived(transport: asyncio.Transport) -> bool:
    if sys.platform == "win32":
        return False  # it has no poll()
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _acknowledged(transport: asyncio.Transport) -> int | None:
    """How many bytes the peer's kernel has acknowledged; None if the system does not tell."""
    if sys.platform != "linux":
        return None
    info = transport.get_extra_info("socket").getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size
    )
    return _ACKNOWLEDGED.unpack(info)[0] if len(info) == _ACKNOWLEDGED.size else None


def _new_parser(connection: Connection) -> httptools.HttpResponseParser:
    parser = httptools.HttpResponseParser(connection)
    # Real servers need these; none of them makes the end of an answer ambiguous.
    parser.set_dangerous_leniencies(
        lenient_headers=True,
        lenient_chunked_length=True,  # the chunks count, see ``_ambiguous``
        lenient_optional_cr_before_lf=True,
        lenient_spaces_after_chunk_size=True,
    )
    return parser


def _headers_size(headers: RawHeaders) -> int:
    return sum(len(name) + len(value) for name, value in headers)


def _ambiguous(headers: RawHeaders) -> bool:
    """Whether another parser might see the end of the answer elsewhere (RFC 9112 6.3)."""
    return get(headers, b"content-length") is not None and bool(get(headers, b"transfer-encoding"))


def _ends_with_connection(incoming: Incoming) -> bool:
    """Whether the body is delimited by the end of the connection (RFC 9112 6.3)."""
    codings = get_all(incoming.headers, b"transfer-encoding")
    if codings:
        return codings[-1].rpartition(b",")[2].strip().lower() != b"chunked"
    return get(incoming.headers, b"content-length") is None
