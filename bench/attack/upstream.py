"""The upstream behind the attacks: ``x-bench-answer`` says what it answers with.

A process of its own, so that what it sends takes nothing from those who measure.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from typing import cast

import httptools
import uvloop

from bench.upstream import answer_to, plain, serve

MEGABYTE = 1 << 20
BOMB_MEGABYTES = 2048
NAME_MEGABYTES = 400
EVENT_MEGABYTES = 13.5
PLAIN_MEGABYTES = 1024

_CHUNKED = b"transfer-encoding: chunked\r\n"
_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _answer_of(message: dict[str, object]) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


def _bomb() -> Iterator[bytes]:
    """Gigabytes of zeros in a few megabytes, said to be one answer."""
    yield _JSON + _CHUNKED + b"content-encoding: gzip\r\n\r\n"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(BOMB_MEGABYTES):
        if data := packer.compress(bytes(MEGABYTE)):
            yield _chunk(data)
    yield _chunk(packer.flush()) + b"0\r\n\r\n"


def _endless_name() -> Iterator[bytes]:
    """A gzip header whose file name does not end."""
    yield _JSON + _CHUNKED + b"content-encoding: gzip\r\n\r\n"
    yield _chunk(b"\x1f\x8b\x08\x08\0\0\0\0\0\x03")
    for _ in range(NAME_MEGABYTES * 16):
        yield _chunk(b"n" * (MEGABYTE // 16))
    yield b"0\r\n\r\n"


def _large_event() -> Iterator[bytes]:
    """One event whose delta holds millions of empty lists."""
    yield _EVENTS + _CHUNKED + b"\r\n"
    lists = b"[]," * int(EVENT_MEGABYTES * MEGABYTE / 3) + b"[]"
    head = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":['
    yield _chunk(head)
    for at in range(0, len(lists), MEGABYTE):
        yield _chunk(lists[at : at + MEGABYTE])
    yield _chunk(b']},"finish_reason":null}]}\n\n')
    yield _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _large_plain() -> Iterator[bytes]:
    """A plain answer of a gigabyte."""
    head, tail = _answer_of({"content": "@"}).split(b"@")
    yield _JSON + _CHUNKED + b"\r\n" + _chunk(head)
    for _ in range(PLAIN_MEGABYTES):
        yield _chunk(b"x" * MEGABYTE)
    yield _chunk(tail) + b"0\r\n\r\n"


def _call() -> Iterator[bytes]:
    """A tool call."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    yield plain(_answer_of({"content": None, "tool_calls": [call]}))


def _failure() -> Iterator[bytes]:
    yield b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\n{}"


def _stream() -> Iterator[bytes]:
    """Twenty words."""
    yield _EVENTS + _CHUNKED + b"\r\n"
    for _ in range(20):
        yield _chunk(_delta({"content": " word"}, None))
    yield _chunk(_delta({}, "stop")) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _named(kind: str, **said: object) -> bytes:
    """An event of an API that names its events."""
    payload = json.dumps({"type": kind, **said}).encode()
    return _chunk(b"event: %b\ndata: %b\n\n" % (kind.encode(), payload))


_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "mock", "content": []}


def _message_event() -> Iterator[bytes]:
    """A stream of Messages one event of which holds millions of empty lists."""
    yield _EVENTS + _CHUNKED + b"\r\n" + _named("message_start", message=_MESSAGE)
    yield from _heavy(
        b'{"type":"content_block_start","index":0,"content_block":{"type":"new","l":['
    )
    yield _named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1})
    yield _named("message_stop") + b"0\r\n\r\n"


def _message_blocks() -> Iterator[bytes]:
    """A hundred thousand blocks, none of which ends."""
    yield _EVENTS + _CHUNKED + b"\r\n" + _named("message_start", message=_MESSAGE)
    for n in range(100_000):
        block = {"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}}
        yield _named("content_block_start", index=n, content_block=block)
    yield _named("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 1})
    yield _named("message_stop") + b"0\r\n\r\n"


def _response_event() -> Iterator[bytes]:
    """A response that ends in one event of millions of empty lists."""
    yield _EVENTS + _CHUNKED + b"\r\n"
    head = b'{"type":"response.completed","response":{"id":"resp_1","output":[{"type":"new","l":['
    yield from _heavy(head, b']}],"status":"completed"}}')
    yield b"0\r\n\r\n"


def _response_items() -> Iterator[bytes]:
    """A hundred thousand items, and no end."""
    yield _EVENTS + _CHUNKED + b"\r\n"
    for n in range(100_000):
        item = {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        yield _named("response.output_item.done", output_index=n, item=item)
    yield b"0\r\n\r\n"


def _heavy(head: bytes, tail: bytes = b"]}}") -> Iterator[bytes]:
    """One event's data with megabytes of empty lists in it."""
    yield _chunk(b"data: " + head)
    lists = b"[]," * (MEGABYTE // 3)
    for _ in range(int(EVENT_MEGABYTES)):
        yield _chunk(lists)
    yield _chunk(b"[]" + tail + b"\n\n")


def _delta(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    payload = {"object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


ANSWERS = {
    b"bomb": _bomb,
    b"name": _endless_name,
    b"event": _large_event,
    b"plain": _large_plain,
    b"call": _call,
    b"failure": _failure,
    b"stream": _stream,
    b"message-event": _message_event,
    b"message-blocks": _message_blocks,
    b"response-event": _response_event,
    b"response-items": _response_items,
}


class Hostile(asyncio.Protocol):
    """One connection; sends no faster than it is read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._wanted = self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-bench-answer":
            self._wanted = value

    def on_message_complete(self) -> None:
        answer = ANSWERS.get(self._wanted)
        if answer is None:
            self._transport.write(plain(answer_to(self._url)))
        else:
            self._task = asyncio.ensure_future(self._send(answer()))

    async def _send(self, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            await self._writable.wait()
            self._transport.write(piece)
            await asyncio.sleep(0)


if __name__ == "__main__":
    uvloop.run(serve(Hostile))
