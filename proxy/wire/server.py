"""uvicorn's HTTP protocol, with what it leaves open: JSON errors, bounded heads, patience.

Knows uvicorn's httptools implementation and no application.  A request that is not valid HTTP, or
whose head is too large or too slow, never reaches the application; it is answered here, in the
shape of every other error of the proxy, and its connection is closed.

Trailer fields are counted and dropped: merged, they would speak where only a head may (RFC 9110
6.5.1).  A request that was answered before its end is read on, within bounds, and thrown away.
A connection that ends with that answer is read on as well: reset, its client may lose the answer
(RFC 9112 9.6).  An offer to go on in another protocol is ignored (RFC 9110 7.8), and the
application told of it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from proxy.errors import ProxyError, headers_too_large, malformed_request
from proxy.process.descriptors import Shortage
from proxy.wire.headers import check_framing


class _Defaults(list[tuple[bytes, bytes]]):
    """What uvicorn puts before an answer's own headers, less what the answer says itself.

    A relayed answer has the upstream's Date, and there can be one only (RFC 9110 5.3, 6.6.1).
    """

    def __add__(self, own: list[Any]) -> list[Any]:
        said = {name.lower() for name, _ in own}
        return [field for field in self if field[0] not in said] + own


class _Connection:
    """A transport as uvicorn is to see it, where ``close`` may have a step before the ``end``."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._half = False
        self.close, self.end = close, transport.close
        self.abort, self.write = transport.abort, transport.write
        self.get_extra_info = transport.get_extra_info
        self.can_write_eof = transport.can_write_eof

    def is_closing(self) -> bool:
        return self._half or self._transport.is_closing()

    def write_eof(self) -> None:
        self._half = True
        with suppress(OSError):  # the other end is gone
            self._transport.write_eof()


class _Unchunked:
    """The application for a client of HTTP/1.0, which knows no chunks (RFC 9112 6.1).

    An answer of unknown length ends with its connection; one that is cut resets it, so that it is
    not taken for whole.
    """

    def __init__(self, app: Any, cycle: RequestResponseCycle) -> None:
        self._app, self._cycle = app, cycle
        self._unbounded = False

    async def __call__(self, scope: Any, receive: Any, _: Any) -> None:
        try:
            await self._app(scope, receive, self._send)
        finally:
            if self._unbounded and not self._cycle.response_complete:
                _reset(self._cycle.transport)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            names = [name.lower() for name, _ in message.get("headers", [])]
            self._unbounded = b"content-length" not in names
        if self._unbounded:  # each piece is as long as is expected
            self._cycle.chunked_encoding = False
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._cycle.send(message)


class HttpProtocol(HttpToolsProtocol):
    """Give it to uvicorn as ``http=HttpProtocol``; subclass it to set other limits."""

    max_head_bytes: ClassVar[int] = 64 * 1024
    """Request line and headers together.  node.js allows 16 KiB, nginx 32, h11 64."""
    max_headers: ClassVar[int] = 256
    head_timeout: ClassVar[float] = 30.0
    """Seconds for a head to arrive, once its connection is open or its first byte is there; and
    for the rest of a request that has been answered."""
    max_rest_bytes: ClassVar[int] = 64 * 1024 * 1024
    """Of a request that has been answered, so much more is read.  Twice what a body may have by
    default: many clients read no answer, 413 least of all, before they have sent theirs."""

    shortage: ClassVar[Shortage] = Shortage()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Per-connection state
        self._fed = 0
        self._between = True  # no request has begun since the last one was complete
        self._fresh = True  # the piece that is being parsed began there
        self._timer: asyncio.TimerHandle | None = None
        # Per-request state
        self._in_head = False
        self._head_bytes = 0  # never less than what of this head has arrived
        self._slack = 0  # bytes among them that may belong to the request before it
        self._framing = 0  # bytes since the body last grew: chunk extensions, trailers
        self._trailers = 0
        self._trailer_bytes = 0
        self._rest = 0  # bytes since the answer was complete
        self._offering: list[tuple[bytes, bytes]] | None = None  # a head that is read again
        self._refusal: ProxyError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As uvicorn's, which makes two sockets to ask for addresses that the transport knows."""
        self.connections.add(self)
        self.flow = FlowControl(transport)
        self._connection = _Connection(transport, self._close)
        self.transport = cast("asyncio.Transport", self._connection)
        self.server = _address(transport.get_extra_info("sockname"))
        self.client = _address(transport.get_extra_info("peername"))
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        connection = transport.get_extra_info("socket")
        if connection is not None:
            self.shortage.taken(connection.fileno())
        self._start_timer()

    def shutdown(self) -> None:
        if self._busy() and not self.transport.is_closing():
            super().shutdown()
        else:
            self._connection.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            self._drop(data)
            return
        self._fed = len(data)
        self._fresh = self._between
        if self._in_head:
            self._head_bytes += len(data)
        elif not self._between:
            self._framing += len(data)
            self._rest += len(data) if self._answered_early() else 0
        self._feed(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            self._wait_for_head()
        elif not self._between:
            self._check_rest()
        elif self._timer is None and not self._busy():
            self._start_timer()  # uvicorn's own has been stopped by what came, maybe an empty line

    def _feed(self, data: bytes) -> None:
        """As uvicorn's ``data_received``, which drops what comes behind an ignored offer."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._parsed(rest) :]
        except HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")

    def _parsed(self, data: memoryview) -> int:
        """How much the parser took: behind a head with an offer it stops."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as stopped:
            self._read_again()
            return int(stopped.args[0])
        return len(data)

    def _read_again(self) -> None:
        """The head that was read, without its offer, so that its body is taken for one."""
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self._offering = self.headers
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._framing = self._trailers = self._trailer_bytes = self._rest = 0
        self._in_head = True
        self._head_bytes = self._fed
        self._slack = 0 if self._fresh else self._fed
        self._fresh = self._between = False

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        self._check_head()
        if self.parser.should_upgrade():
            return
        if self._offering is not None:
            self.headers[:], self._offering = self._offering, None
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.default_headers = _Defaults(self.cycle.default_headers)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        old = cycle.scope["http_version"] == "1.0"
        if old:
            cycle.waiting_for_100_continue = False  # an interim answer is none it knows
        super()._start_asgi_task(cycle, _Unchunked(app, cycle) if old else app)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            return super().on_header(name, value)
        self._trailers += 1
        self._trailer_bytes += len(name) + len(value) + 4
        many = len(self.headers) + self._trailers > self.max_headers
        if many or self._trailer_bytes > self.max_head_bytes:
            self._refusal = headers_too_large(self.max_head_bytes)
            raise self._refusal

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._between = True
        self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._answered_early() and not self.transport.is_closing():
            self._start_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was received; uvicorn calls it when the parser or a callback has failed."""
        refusal, self._refusal = self._refusal, None
        self._refuse(refusal or malformed_request())

    def _check_head(self) -> None:
        """Raise ProxyError for a head that must not be served; the parser turns it into a 400."""
        try:
            if self.parser.get_method() == b"CONNECT":  # what follows is in no HTTP
                raise malformed_request()
            if len(self.headers) > self.max_headers or self._head_size() > self.max_head_bytes:
                raise headers_too_large(self.max_head_bytes)
            # Of ambiguous framing the parser refuses all but odd codings (RFC 9112 6.1).
            if b"transfer-encoding" in [name for name, _ in self.headers]:
                check_framing(self.headers)
        except ProxyError as refusal:
            self._refusal = refusal
            raise

    def _head_size(self) -> int:
        if self._head_bytes <= self.max_head_bytes:
            return 0  # its part of what arrived cannot be larger than all of it
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _wait_for_head(self) -> None:
        """More of this head has yet to come: for so long, and so much of it."""
        if self._head_bytes - self._slack > self.max_head_bytes:
            self._refuse(headers_too_large(self.max_head_bytes))
        elif self._timer is None:
            self._start_timer()

    def _check_rest(self) -> None:
        """What came may have made neither the body nor the answered request grow too far."""
        if self._framing > self.max_head_bytes:
            self._refuse(headers_too_large(self.max_head_bytes))
        elif self._rest > self.max_rest_bytes:
            self._connection.end()

    def _close(self) -> None:
        """At once, or once the client, which is still sending, has read its answer and closes."""
        if self.transport.is_closing():
            return
        received = self._between and not self.flow.read_paused
        if received or not self.transport.can_write_eof():
            self._connection.end()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._stop_timer()
        self._start_timer()

    def _drop(self, data: bytes) -> None:
        """Of a connection that is to be closed."""
        self._rest += len(data)
        if self._rest > self.max_rest_bytes:
            self._connection.end()

    def _answered_early(self) -> bool:
        """Whether the request that is being received has its answer."""
        received = self._between or self._in_head
        return not received and bool(self.cycle) and self.cycle.response_complete

    def _refuse(self, refusal: ProxyError) -> None:
        """Answer and close; only close, where another answer has begun on this connection."""
        self._stop_timer()
        self._between = False  # nobody knows where it ends
        if not self._busy():
            if not self._answered_early():  # one request, one answer
                self.transport.write(self._rendered(refusal))
            self.transport.close()
            return
        # It is the body of the request under way that cannot be read, or what comes behind it.
        if self.cycle.more_body and not self.cycle.response_started and not self.pipeline:
            self.transport.write(self._rendered(refusal))
        self.transport.close()
        # The application hears at once that nobody reads what it may still send.
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def _busy(self) -> bool:
        """Whether a request is under way; ``cycle`` is None before the first, whatever its type."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _rendered(self, refusal: ProxyError) -> bytes:
        phrase = HTTPStatus(refusal.status).phrase
        headers = [*self.server_state.default_headers, *refusal.raw_headers]
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {refusal.status} {phrase}".encode()]
        lines += [name + b": " + value for name, value in headers]
        return b"\r\n".join([*lines, b"", refusal.body])

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.head_timeout, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        self._connection.end()


def _reset(transport: asyncio.Transport) -> None:
    """Close a connection so that its other end sees that something was wrong."""
    connection = transport.get_extra_info("socket")
    if connection is not None and not transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _address(said: object) -> tuple[str, int] | None:
    """Host and port; of a socket in the file system there are none."""
    return (str(said[0]), int(said[1])) if isinstance(said, tuple) else None
