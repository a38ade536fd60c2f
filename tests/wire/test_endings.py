"""Connections that end with an answer while their client is still sending; in a real uvicorn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
import uvicorn
from uvicorn.server import ServerState

from proxy.wire.server import HttpProtocol
from tests.support.processes.server import Message, raw_exchange, serving
from tests.support.waiting import PATIENCE

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LARGE = 5_000_000
"""Bytes; more than the buffers of both sockets hold."""
MAX_BYTES = 40_000_000

POST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n" % LARGE
REQUESTS = {
    "client-s-wish": POST + b"Connection: close\r\n\r\n" + b"x" * LARGE,
    "application-s-wish": POST.replace(b"/x", b"/close") + b"\r\n" + b"x" * LARGE,
    "no-http": b"nonsense\r\n\r\n" + b"x" * LARGE,
    "large-head": b"GET /x HTTP/1.1\r\nX: " + b"x" * LARGE,
    "bad-chunk": b"POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + b"x" * LARGE,
    "requests-behind": (b"GET /close HTTP/1.1\r\n\r\n") * (LARGE // 23),
}


async def refuse(scope: Message, receive: Receive, send: Send) -> None:
    """Answer without a look at the body, unless it is asked for."""
    if scope["path"] == "/read" and (await receive())["type"] == "http.disconnect":
        return
    headers = [(b"content-length", b"2")]
    if scope["path"] == "/close":
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b"no"})


class Brief(HttpProtocol):
    max_rest_bytes = 500_000
    head_timeout = 1.0


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with serving(refuse) as port, asyncio.timeout(2 * PATIENCE):
        yield port


@pytest.mark.parametrize("request_bytes", REQUESTS.values(), ids=REQUESTS)
async def test_a_client_that_reads_when_it_has_sent_all_gets_its_answer(
    port: int, request_bytes: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for at in range(0, len(request_bytes), 100_000):
        writer.write(request_bytes[at : at + 100_000])
        await writer.drain()
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1 ") == 1
    writer.close()


async def test_a_client_that_ends_its_sending_side_has_left() -> None:
    """Nobody can tell it from one that has closed all before something is sent: the upstream's work
    would go on for those, the many."""
    told = asyncio.Event()

    async def wait(scope: Message, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        told.set()

    async with serving(wait) as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        writer.write_eof()
        await told.wait()
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_waits_for_the_end_sees_it_at_once() -> None:
    async with serving(refuse) as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUESTS["client-s-wish"][:1000])
        began = time.monotonic()
        assert (await reader.read()).endswith(b"no")
        assert time.monotonic() - began < HttpProtocol.head_timeout / 2
        writer.close()


async def test_who_goes_on_is_bounded_in_time() -> None:
    assert await _poured(b"x", pace=0.01) < Brief.max_rest_bytes


async def test_who_goes_on_is_bounded_in_size() -> None:
    class Patient(Brief):
        head_timeout = PATIENCE

    assert await _poured(b"x" * 10_000, Patient) < MAX_BYTES / 2


async def _poured(piece: bytes, protocol: type[HttpProtocol] = Brief, pace: float = 0) -> int:
    """The bytes that go behind an answer before the connection is closed for good."""
    async with serving(refuse, protocol=protocol) as port, asyncio.timeout(2 * PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUESTS["client-s-wish"][:1000])
        assert (await reader.read()).endswith(b"no")
        sent = 0
        with suppress(ConnectionError):
            while sent < MAX_BYTES:
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                await asyncio.sleep(pace)  # of a slow client, nothing is waited for
        writer.transport.abort()
        return sent


class Wire(asyncio.Transport):
    """A transport that tells how far it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.half, self.closing = b"", False, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.half = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


async def _served_on(wire: Wire, sent: bytes) -> HttpProtocol:
    config = uvicorn.Config(refuse, ws="none", log_level="critical")
    config.load()
    protocol = HttpProtocol(config, ServerState(), {})
    protocol.connection_made(wire)
    protocol.data_received(sent)
    await asyncio.gather(*protocol.tasks)
    assert wire.written.endswith(b"no")
    return protocol


async def test_the_end_of_the_server_waits_for_nobody_who_has_an_answer() -> None:
    wire = Wire()
    protocol = await _served_on(wire, REQUESTS["client-s-wish"][:1000])
    assert (wire.half, wire.closing) == (True, False)
    protocol.shutdown()
    assert wire.closing
    protocol.connection_lost(None)


async def test_a_request_that_has_come_whole_leaves_nothing_to_wait_for() -> None:
    wire = Wire()
    whole = b"POST /x HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
    protocol = await _served_on(wire, whole)
    assert (wire.half, wire.closing) == (False, True)
    protocol.connection_lost(None)


async def test_who_is_cut_off_by_the_end_of_the_server_is_told_so_in_json() -> None:
    begun = asyncio.Event()

    async def never(scope: Message, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with serving(never) as port:
        asking = asyncio.create_task(raw_exchange(port, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"))
        await begun.wait()
    head, body = (await asking).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ") and b"content-type: application/json" in head
    assert json.loads(body)["error"]["code"] == "server_error"
