"""uvicorn's HTTP protocol with JSON errors, bounded heads, and timeouts.

Knows uvicorn's httptools implementation and no application.  A request that is not valid HTTP, or
whose head is too large or too slow, never reaches the application; it is answered here, in the
shape of every other error of the proxy, and its connection is closed.

Trailer fields are counted and dropped: merged into the headers they could pose as those (RFC 9110
6.5.1).  If a request is answered before its end, the rest is read within bounds and discarded, also
if the connection is to be closed: a reset could destroy the answer (RFC 9112 9.6).  ``Upgrade`` is
ignored (RFC 9110 7.8); the application sees the header.
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

from proxy.errors import ProxyError, headers_too_large, malformed_request, server_error
from proxy.process.descriptors import Shortage
from proxy.wire.headers import check_framing

_TLS_HELLO = b"\x16\x03"
"""How a TLS handshake begins (RFC 8446 5.1)."""
_TLS = " It is TLS: the client's base_url begins with https://, and http:// is spoken here."


class _Cycle(RequestResponseCycle):
    """uvicorn's request, with an error of ours where there is no answer, also at the end of the
    process: uvicorn's is no JSON."""

    async def send_500_response(self) -> None:
        error = server_error()
        headers = [*error.raw_headers, (b"connection", b"close")]
        start = {"type": "http.response.start", "status": error.status, "headers": headers}
        await self.send(cast("Any", start))
        await self.send(cast("Any", {"type": "http.response.body", "body": error.body}))


class _DefaultHeaders(list[tuple[bytes, bytes]]):
    """uvicorn's default headers, without those that the answer has itself.

    A relayed answer has the upstream's Date, and there must be only one (RFC 9110 5.3, 6.6.1).
    """

    def __add__(self, headers: list[Any]) -> list[Any]:
        present = {name.lower() for name, _ in headers}
        return [field for field in self if field[0] not in present] + headers


class _Connection:
    """The transport as uvicorn sees it; ``close`` may close the write side before ``end``."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._half_closed = False
        self.close, self.end = close, transport.close
        self.abort, self.write = transport.abort, transport.write
        self.get_extra_info = transport.get_extra_info
        self.can_write_eof = transport.can_write_eof

    def is_closing(self) -> bool:
        return self._half_closed or self._transport.is_closing()

    def write_eof(self) -> None:
        self._half_closed = True
        with suppress(OSError):  # the peer has closed the connection
            self._transport.write_eof()


class _Http10App:
    """The application for HTTP/1.0 clients, which do not support chunked coding (RFC 9112 6.1).

    An answer of unknown length ends with its connection; an incomplete one resets it, so that the
    client can tell.
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
        if self._unbounded:  # uvicorn compares each piece with the expected length
            self._cycle.chunked_encoding = False
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._cycle.send(message)


class HttpProtocol(HttpToolsProtocol):
    """Give it to uvicorn as ``http=HttpProtocol``; subclass it to set other limits."""

    max_head_bytes: ClassVar[int] = 64 * 1024
    """Request line and headers together.  node.js allows 16 KiB, nginx 32, h11 64."""
    max_headers: ClassVar[int] = 256
    head_timeout: ClassVar[float] = 30.0
    """Seconds for a head, from the opening of the connection or its first byte; and for the rest of
    a request that has been answered."""
    max_rest_bytes: ClassVar[int] = 64 * 1024 * 1024
    """Bytes that are read of a request after its answer.  Twice the default limit of a body: many
    clients do not read an answer, such as 413, before they have sent all of it."""

    shortage: ClassVar[Shortage] = Shortage()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Per-connection state
        self._received = 0
        self._between_requests = True  # none has begun since the last one was complete
        self._was_between_requests = True  # before the data that is being parsed
        self._timer: asyncio.TimerHandle | None = None
        # Per-request state
        self._in_head = False
        self._head_bytes = 0  # upper bound of the bytes of this head that have arrived
        self._pipelined_bytes = 0  # bytes among them that may belong to the previous request
        self._framing_bytes = 0  # bytes since the body last grew: chunk extensions, trailers
        self._trailers = 0
        self._trailer_bytes = 0
        self._rest_bytes = 0  # bytes since the answer was complete
        self._upgrade_headers: list[tuple[bytes, bytes]] | None = None  # of a head parsed again
        self._refusal: ProxyError | None = None
        # ``cycle`` is the newest request, which may wait behind this one
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """uvicorn's, without the two sockets that it creates to get the addresses."""
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
        if self._is_busy() and not self.transport.is_closing():
            super().shutdown()
        else:
            self._connection.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)
        self._disconnect_cycles()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            self._drop(data)
            return
        self._received = len(data)
        self._was_between_requests = self._between_requests
        if self._in_head:
            self._head_bytes += len(data)
        elif not self._between_requests:
            self._framing_bytes += len(data)
            self._rest_bytes += len(data) if self._is_answered_early() else 0
        self._feed(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            self._check_unfinished_head()
        elif not self._between_requests:
            self._check_rest()
        elif self._timer is None and not self._is_busy():
            self._start_timer()  # any data stops uvicorn's keep-alive timer, even an empty line

    def _feed(self, data: bytes) -> None:
        """uvicorn's ``data_received``, which drops the data after an ignored ``Upgrade``."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._parse(rest) :]
        except HttpParserError:
            hint = _TLS if data.startswith(_TLS_HELLO) else ""
            self.logger.warning("Invalid HTTP request received.%s", hint)
            self.send_400_response("")

    def _parse(self, data: memoryview) -> int:
        """The number of bytes parsed: the parser stops after a head with ``Upgrade``."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._parse_without_upgrade()
            return int(upgrade.args[0])
        return len(data)

    def _parse_without_upgrade(self) -> None:
        """Parse the head again without ``Upgrade``, so that the parser accepts its body."""
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self._upgrade_headers = self.headers
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._framing_bytes = self._trailers = self._trailer_bytes = self._rest_bytes = 0
        self._in_head = True
        self._head_bytes = self._received
        self._pipelined_bytes = 0 if self._was_between_requests else self._received
        self._was_between_requests = self._between_requests = False

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        self._check_head()
        if self.parser.should_upgrade():
            return
        if self._upgrade_headers is not None:
            self.headers[:], self._upgrade_headers = self._upgrade_headers, None
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.default_headers = _DefaultHeaders(self.cycle.default_headers)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        cycle.__class__ = _Cycle
        is_http10 = cycle.scope["http_version"] == "1.0"
        if is_http10:
            cycle.waiting_for_100_continue = False  # HTTP/1.0 has no interim responses
        super()._start_asgi_task(cycle, _Http10App(app, cycle) if is_http10 else app)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            return super().on_header(name, value)
        self._trailers += 1
        self._trailer_bytes += len(name) + len(value) + 4
        too_many = len(self.headers) + self._trailers > self.max_headers
        if too_many or self._trailer_bytes > self.max_head_bytes:
            self._refusal = headers_too_large(self.max_head_bytes)
            raise self._refusal

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._between_requests = True
        self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_answered_early() and not self.transport.is_closing():
            self._start_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request; uvicorn calls this when the parser or a callback has failed."""
        refusal, self._refusal = self._refusal, None
        self._refuse(refusal or malformed_request())

    def _check_head(self) -> None:
        """Raise ProxyError for a head that must not be served; the parser turns it into a 400."""
        try:
            if self.parser.get_method() == b"CONNECT":  # what follows is not HTTP
                raise malformed_request()
            if len(self.headers) > self.max_headers or self._head_size() > self.max_head_bytes:
                raise headers_too_large(self.max_head_bytes)
            # The parser refuses ambiguous framing except unusual codings (RFC 9112 6.1).
            if b"transfer-encoding" in [name for name, _ in self.headers]:
                check_framing(self.headers)
        except ProxyError as refusal:
            self._refusal = refusal
            raise

    def _head_size(self) -> int:
        if self._head_bytes <= self.max_head_bytes:
            return 0  # an upper bound is within the limit: no need to count
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _check_unfinished_head(self) -> None:
        """Bound the size of a head that is incomplete, and the time until it is complete."""
        if self._head_bytes - self._pipelined_bytes > self.max_head_bytes:
            self._refuse(headers_too_large(self.max_head_bytes))
        elif self._timer is None:
            self._start_timer()

    def _check_rest(self) -> None:
        """Bound framing and trailers of a body, and the rest of a request that was answered."""
        if self._framing_bytes > self.max_head_bytes:
            self._refuse(headers_too_large(self.max_head_bytes))
        elif self._rest_bytes > self.max_rest_bytes:
            self._connection.end()

    def _close(self) -> None:
        """Close at once, or half-close if the client is still sending, so that it can read the
        answer."""
        if self.transport.is_closing():
            return
        received = self._between_requests and not self.flow.read_paused
        if received or not self.transport.can_write_eof():
            self._connection.end()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._stop_timer()
        self._start_timer()

    def _drop(self, data: bytes) -> None:
        """Discard data on a connection that is half-closed."""
        self._rest_bytes += len(data)
        if self._rest_bytes > self.max_rest_bytes:
            self._connection.end()

    def _is_answered_early(self) -> bool:
        """Whether the request that is still being received has been answered."""
        received = self._between_requests or self._in_head
        return not received and bool(self.cycle) and self.cycle.response_complete

    def _refuse(self, refusal: ProxyError) -> None:
        """Answer and close; only close if another answer has begun on this connection."""
        self._stop_timer()
        self._between_requests = False  # the end of the request cannot be found
        if not self._is_busy():
            if not self._is_answered_early():  # one request, one answer
                self.transport.write(self._render(refusal))
            self.transport.close()
            return
        # The body of the current request is invalid or longer than declared, or there is nonsense
        # after it: this is its answer, unless an earlier request still waits for its own.
        if not self.cycle.response_started and not self.pipeline:
            self.transport.write(self._render(refusal))
        self.transport.close()
        self._disconnect_cycles()

    def _disconnect_cycles(self) -> None:
        """The application gets http.disconnect at once, for what it answers and what it would."""
        for cycle in (self._answering, self.cycle):
            if cycle and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _is_busy(self) -> bool:
        """Whether a request is in progress; ``cycle`` is None before the first one."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _render(self, refusal: ProxyError) -> bytes:
        phrase = HTTPStatus(refusal.status).phrase
        headers = [*self.server_state.default_headers, *refusal.raw_headers]
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        lines = [f"HTTP/1.1 {refusal.status} {phrase}".encode()]
        lines += [name + b": " + value for name, value in headers]
        return b"\r\n".join([*lines, b"", refusal.body])

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.head_timeout, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        self._connection.end()


def _reset(transport: asyncio.Transport) -> None:
    """Close a connection with a TCP reset, so that the peer sees a failure."""
    connection = transport.get_extra_info("socket")
    if connection is not None and not transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _address(socket_name: object) -> tuple[str, int] | None:
    """Host and port; None for a Unix domain socket."""
    return (str(socket_name[0]), int(socket_name[1])) if isinstance(socket_name, tuple) else None
