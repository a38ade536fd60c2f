"""Trailer fields, and what still comes of a request that has its answer; in a real uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat

import pytest

from proxy.wire.server import HttpProtocol
from tests.support.processes.server import Message, serving
from tests.support.waiting import PATIENCE

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
EARLY = HEAD.replace(b"/x", b"/early")
BODY = b"2\r\nab\r\n"
END = b"0\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n"

MAX_BYTES = 40_000_000
"""Bytes; by far more than socket buffers and limits together."""


class Small(HttpProtocol):
    max_head_bytes = 2000
    max_headers = 10
    max_rest_bytes = 500_000
    head_timeout = 1.0


@dataclass
class App:
    """Answers with the size of the body and the headers as they are then; ``/early`` at once."""

    scopes: list[Message] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        size, more = 0, scope["path"] != "/early"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            size += len(message["body"])
            more = message["more_body"]
        body = b"%d" % size
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@dataclass
class Line:
    app: App
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        """Each piece as soon as the one before it is out."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def pour(self, piece: bytes) -> int:
        """Send it again and again; the bytes that went before the other side had enough."""
        sent = 0
        for block in repeat(piece, MAX_BYTES // len(piece)):
            try:
                await self.send(block)
            except ConnectionError:
                break
            sent += len(block)
        return sent

    async def answer(self) -> tuple[int, bytes]:
        """Status and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split(b" ")[1]), await self.reader.readexactly(size)

    async def end(self) -> bytes:
        """What comes before the connection is closed."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    app = App()
    async with serving(app, protocol=Small) as port, asyncio.timeout(2 * PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield Line(app, reader, writer)
        writer.transport.abort()


@pytest.mark.parametrize("late", [False, True], ids=["in-one-piece", "late"])
async def test_trailer_fields_are_no_headers(line: Line, late: bool) -> None:
    trailers = b"X-Session-Id: evil\r\nHost: 127.0.0.1\r\nEmpty:\r\n\r\n"
    pieces = (HEAD + BODY, END + trailers) if late else (HEAD + BODY + END + trailers,)
    await line.send(pieces[0])
    if late:
        while not line.app.scopes:
            await asyncio.sleep(0)
    await line.send(*pieces[1:])
    assert await line.answer() == (200, b"2")
    head = [(b"host", b"a"), (b"transfer-encoding", b"chunked")]
    assert line.app.scopes[0]["headers"] == head


async def test_trailer_fields_do_not_get_into_the_next_request(line: Line) -> None:
    await line.send(HEAD + BODY + END + b"X-Evil: 1\r\nX-Last:\r\n\r\n" + NEXT)
    assert [await line.answer(), await line.answer()] == [(200, b"2"), (200, b"0")]
    assert line.app.scopes[1]["headers"] == [(b"host", b"b"), (b"connection", b"close")]


@pytest.mark.parametrize(
    "trailers",
    [
        pytest.param(b"x: 1\r\n" * 9, id="many"),
        pytest.param(b"x: " + b"v" * 3000 + b"\r\n", id="long"),
        pytest.param(b"x" * 3000 + b": v\r\n", id="a-long-name"),
    ],
)
async def test_trailers_have_the_limits_of_a_head(line: Line, trailers: bytes) -> None:
    await line.send(HEAD + BODY + END + trailers + b"\r\n")
    status, body = await line.answer()
    assert (status, b"invalid_header" in body) == (431, True)
    assert await line.end() == b""


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"x: 1\r\n" * 10_000, id="fields"),
        pytest.param(b"v" * 60_000, id="one-field"),
    ],
)
async def test_trailers_without_end_are_not_taken(line: Line, endless: bytes) -> None:
    await line.send(HEAD + BODY + END + b"x: ")
    assert await line.pour(endless) < MAX_BYTES / 2
    await line.app.gone.wait()


async def test_a_chunk_extension_without_end_is_not_taken(line: Line) -> None:
    await line.send(HEAD + b"2;x=")
    assert await line.pour(b"v" * 60_000) < MAX_BYTES / 2
    await line.app.gone.wait()


async def test_a_body_in_many_small_chunks_is_no_trailer(line: Line) -> None:
    chunks = [b"1;x=%s\r\nb\r\n" % (b"v" * 500) for _ in range(50)]
    await line.send(HEAD, *(b"".join(chunks) for _ in range(20)), END + b"\r\n")
    assert await line.answer() == (200, b"1000")


ENDLESS = {
    "body": b"c350\r\n" + b"x" * 50_000 + b"\r\n",
    "trailers": END + b"x: 1\r\n" * 5_000,
    "one-trailer": END + b"x: " + b"v" * 50_000,
}


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
async def test_what_comes_after_an_early_answer_is_bounded_in_size(
    line: Line, endless: bytes
) -> None:
    await line.send(EARLY + BODY)
    assert await line.answer() == (200, b"0")
    assert await line.pour(endless) < MAX_BYTES / 2
    assert await line.end() == b"", "one request has one answer"


@pytest.mark.parametrize("drop", [b"1\r\nx\r\n", b""], ids=["a-byte-at-a-time", "silence"])
async def test_what_comes_after_an_early_answer_is_bounded_in_time(line: Line, drop: bytes) -> None:
    await line.send(EARLY + BODY)
    assert await line.answer() == (200, b"0")
    ended = asyncio.create_task(line.end())
    while not ended.done():
        await _drip(line, drop)
    assert await ended == b""


async def test_a_connection_is_kept_whose_request_ends_after_its_answer(line: Line) -> None:
    await line.send(EARLY + BODY)
    assert await line.answer() == (200, b"0")
    await line.send(BODY * 1000 + END + b"x: 1\r\n\r\n", NEXT)
    assert await line.answer() == (200, b"0")


async def test_empty_lines_do_not_keep_a_connection(line: Line) -> None:
    await line.send(NEXT.replace(b"close", b"keep-alive"))
    assert await line.answer() == (200, b"0")
    ended = asyncio.create_task(line.end())
    while not ended.done():
        await _drip(line, b"\r\n")
    assert await ended == b""


async def _drip(line: Line, drop: bytes) -> None:
    with suppress(ConnectionError):
        await line.send(drop)
    await asyncio.sleep(0.01)  # the pace of a client that is slow, nothing is waited for
