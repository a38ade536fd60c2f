"""The server protocol against raw bytes, in a real uvicorn."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from proxy.wire.server import HttpProtocol
from tests.support.processes.server import Message, raw_exchange, serving
from tests.support.waiting import PATIENCE

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n"
LAST = b"Connection: close\r\n\r\n"


@dataclass
class App:
    """Answers every request with its own size; remembers what it was asked."""

    scopes: list[Message] = field(default_factory=list)
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    hold: asyncio.Event | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        size = await self._read(receive)
        if size is None:
            return
        body = b"%d" % size
        head = {"type": "http.response.start", "status": 200, "headers": self.headers}
        await send(head)
        self.begun.set()
        if self.hold is not None:
            await send({"type": "http.response.body", "body": b"held", "more_body": True})
            await self.hold.wait()
        await send({"type": "http.response.body", "body": body})

    async def _read(self, receive: Receive) -> int | None:
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return None
            size += len(message["body"])
            if not message["more_body"]:
                return size


class Small(HttpProtocol):
    max_head_bytes = 2000
    max_headers = 10
    head_timeout = 0.1


@dataclass
class Served:
    app: App
    port: int


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    app = App()
    async with serving(app) as port:
        yield Served(app, port)


@pytest.fixture
async def small() -> AsyncIterator[Served]:
    app = App()
    async with serving(app, protocol=Small) as port:
        yield Served(app, port)


def parsed(answer: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON body of the one answer in ``answer``."""
    head, _, body = answer.partition(b"\r\n\r\n")
    start, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert len(body) == int(headers["content-length"])
    return int(start.split(" ")[1]), headers, json.loads(body)


def assert_refused(answer: bytes, status: int = 400) -> None:
    got, headers, body = parsed(answer)
    assert (got, body["error"]["code"]) == (status, "invalid_header")
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert "date" in headers


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no-request-line"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls-hello"),
        pytest.param(b"GET /x HTTP/1.1\r\nno colon\r\n\r\n", id="no-colon"),
        pytest.param(b"GET /x HTTP/1.1\r\nbad name: 1\r\n\r\n", id="space-in-name"),
        pytest.param(b"GET /x HTTP/1.1\r\na: \x00\r\n\r\n", id="nul-in-value"),
        pytest.param(b"GET /x HTTP/1.1\r\n a: folded\r\n\r\n", id="folded-first"),
        pytest.param(b"BREW /x HTTP/1.1\r\n\r\n", id="unknown-method"),
        pytest.param(b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", id="target-not-ascii"),
        pytest.param(b"POST /x HTTP/1.1\r\nContent-Length: x\r\n\r\n", id="length"),
        pytest.param(
            b"POST /x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", id="lengths"
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length-and-chunked",
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            id="chunked-and-length",
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="coding"
        ),
        pytest.param(b"POST /x HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n", id="not-chunked"),
    ],
)
async def test_what_is_not_plain_http_is_refused_in_json(
    served: Served, request_bytes: bytes
) -> None:
    assert_refused(await raw_exchange(served.port, request_bytes))
    assert served.app.scopes == []


async def test_a_plain_request_is_served(served: Served) -> None:
    answer = await raw_exchange(served.port, GET + LAST)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"1\r\n0\r\n0\r\n\r\n")


OLD = b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"


async def test_a_client_of_http_1_0_gets_no_chunks(served: Served) -> None:
    served.app.hold = asyncio.Event()
    served.app.hold.set()
    head, _, body = (await raw_exchange(served.port, OLD)).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    assert body == b"held0"


async def test_nor_is_it_told_to_go_on(served: Served) -> None:
    asked = b"POST /x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    assert (await raw_exchange(served.port, asked, b"a")).startswith(b"HTTP/1.1 200 ")
    told = await raw_exchange(served.port, asked.replace(b"1.0", b"1.1"), b"a" + GET + LAST)
    assert told.startswith(b"HTTP/1.1 100 ")


async def test_nor_where_the_length_is_known(served: Served) -> None:
    served.app.headers = [(b"Content-Length", b"1")]
    status, headers, body = parsed(await raw_exchange(served.port, OLD))
    assert (status, headers["connection"], body) == (200, "close", 0)


async def test_an_answer_without_chunks_that_is_cut_is_seen_to_be_cut() -> None:
    async def cut(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})

    async with serving(cut) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(OLD)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()


async def test_bytes_one_by_one_are_served(served: Served) -> None:
    whole = (
        b"POST /a%2Fb HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + LAST + b"2\r\nab\r\n0\r\n\r\n"
    )
    answer = await raw_exchange(served.port, *(whole[i : i + 1] for i in range(len(whole))))
    assert answer.endswith(b"1\r\n2\r\n0\r\n\r\n")
    assert served.app.scopes[0]["raw_path"] == b"/a%2Fb"


async def test_requests_in_a_row_share_a_connection(served: Served) -> None:
    post = b"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    answer = await raw_exchange(served.port, post + post, GET + LAST)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert len(served.app.scopes) == 3


HEADER = b"X-Large: "
OVERHEAD = len(b"/x") + len(b"Host" + b"a" + b"X-Large") + 2 * 4


@pytest.mark.parametrize("pieces", [1, 5], ids=["at-once", "in-pieces"])
@pytest.mark.parametrize(("over", "status"), [(-200, 200), (200, 431)], ids=["below", "above"])
async def test_a_head_has_a_limit(small: Served, pieces: int, over: int, status: int) -> None:
    value = b"v" * (Small.max_head_bytes - OVERHEAD + over)
    request = GET + HEADER + value + b"\r\n" + LAST
    step = len(request) // pieces + 1
    answer = await raw_exchange(
        small.port, *(request[at : at + step] for at in range(0, len(request), step))
    )
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    if status == 431:
        assert_refused(answer, 431)
        assert small.app.scopes == []


async def test_the_ordinary_limit_is_64_kib(served: Served) -> None:
    answer = await raw_exchange(served.port, GET + HEADER + b"v" * 65000 + b"\r\n" + LAST)
    assert answer.startswith(b"HTTP/1.1 200 ")
    answer = await raw_exchange(served.port, GET + HEADER + b"v" * 65536 + b"\r\n" + LAST)
    assert_refused(answer, 431)


async def test_a_long_request_line_counts(small: Served) -> None:
    answer = await raw_exchange(small.port, b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\n" + LAST)
    assert_refused(answer, 431)


async def test_a_head_that_never_ends_is_refused_before_its_end(small: Served) -> None:
    answer = await raw_exchange(small.port, GET + HEADER + b"v" * 3000)
    assert_refused(answer, 431)


async def test_many_small_headers_are_refused(small: Served) -> None:
    assert_refused(await raw_exchange(small.port, GET + b"a: 1\r\n" * 20 + LAST), 431)


async def test_a_large_body_is_no_large_head(small: Served) -> None:
    post = b"POST /x HTTP/1.1\r\nContent-Length: 9000\r\n\r\n" + b"b" * 9000
    reader, writer = await asyncio.open_connection("127.0.0.1", small.port)
    writer.write(post + post + GET)  # the third head begins in the piece that ends the second body
    for _ in range(2):
        await asyncio.wait_for(reader.readuntil(b"9000\r\n0\r\n\r\n"), PATIENCE)
    writer.write(LAST)
    assert (await asyncio.wait_for(reader.read(), PATIENCE)).startswith(b"HTTP/1.1 200 OK\r\n")
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /x HT"], ids=["nothing", "a-part"])
async def test_a_head_that_does_not_come_costs_the_connection(small: Served, sent: bytes) -> None:
    assert await raw_exchange(small.port, sent) == b""
    assert small.app.scopes == []


async def test_a_slow_body_is_not_the_server_s_business(small: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", small.port)
    writer.write(b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n" + LAST + b"a")
    waiting = asyncio.create_task(reader.read())
    await asyncio.wait({waiting}, timeout=3 * Small.head_timeout)
    assert not waiting.done()
    writer.write(b"b")
    assert (await asyncio.wait_for(waiting, PATIENCE)).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_a_body_that_cannot_be_read_is_refused_and_the_application_told(
    served: Served,
) -> None:
    answer = await raw_exchange(
        served.port, b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", b"zz\r\n"
    )
    assert_refused(answer)
    await asyncio.wait_for(served.app.disconnected.wait(), PATIENCE)


class Wire(asyncio.Transport):
    """A transport whose other side reads nothing: it closes for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closing

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.closing = True


async def test_a_refusal_that_nobody_reads_still_frees_the_application() -> None:
    app = App()
    config = uvicorn.Config(app, ws="none", log_level="critical")
    config.load()
    protocol = HttpProtocol(config, ServerState(), {})
    wire = Wire()
    protocol.connection_made(wire)
    protocol.data_received(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    protocol.data_received(b"zz\r\n")
    await asyncio.wait_for(app.disconnected.wait(), PATIENCE)
    assert wire.closing
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    protocol.connection_lost(None)


async def test_nonsense_behind_a_request_never_gets_into_its_answer(served: Served) -> None:
    served.app.hold = asyncio.Event()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(GET + b"\r\n")
    await asyncio.wait_for(reader.readuntil(b"held\r\n"), PATIENCE)
    writer.write(b"nonsense\r\n\r\n")
    assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
    served.app.hold.set()
    writer.close()


async def test_a_body_that_is_longer_than_declared_is_refused(served: Served) -> None:
    answer = await raw_exchange(
        served.port, b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}, and more\r\n\r\n"
    )
    assert_refused(answer)


@pytest.mark.parametrize("behind", [b"", b"nonsense\r\n\r\n"], ids=["gone", "nonsense"])
async def test_the_end_of_a_connection_is_told_where_another_request_waits(behind: bytes) -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        told.set()

    async with serving(app) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(2 * (GET + b"\r\n") + behind)
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
            if not behind:
                writer.transport.abort()
            await told.wait()
        writer.close()


async def test_who_speaks_tls_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    config = uvicorn.Config(App(), ws="none", log_config=None)
    config.load()
    protocol = HttpProtocol(config, ServerState(), {})
    protocol.logger = logging.getLogger(__name__)  # uvicorn's own passes nothing on
    protocol.connection_made(Wire())
    protocol.data_received(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    protocol.connection_lost(None)
    assert "begins with https://" in caplog.text


async def test_nonsense_after_an_answer_is_refused(served: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(GET + b"\r\n")
    await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), PATIENCE)
    writer.write(b"nonsense\r\n\r\n")
    assert_refused(await asyncio.wait_for(reader.read(), PATIENCE))
    writer.close()


async def test_a_request_leaves_nothing_that_only_the_collector_finds() -> None:
    requests: list[weakref.ref[Any]] = []
    answering = App()

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        requests.append(weakref.ref(send.__self__))  # type: ignore[attr-defined]
        await answering(scope, receive, send)

    gc.disable()
    try:
        async with serving(app) as port:
            await raw_exchange(port, GET + b"\r\n", GET + LAST)
        assert requests[0]() is None
    finally:
        gc.enable()
