"""The mocked upstream: answers at once, or streams when it is told to go.  A process of its own.

``x-bench-chunks`` and ``x-bench-interval`` (seconds) shape a stream: its first chunk comes at once,
the others after a GET of /go, so that any number of streams can be opened in peace.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Callable
from typing import cast

import httptools
import uvloop

ANSWER = "A short answer, of about the size that such answers have in a chat."


def _json(kind: str, choice: dict[str, object]) -> bytes:
    choices = [{"index": 0, **choice}]
    envelope = {"id": "chatcmpl-1", "object": kind, "created": 0, "model": "mock"}
    return json.dumps({**envelope, "choices": choices}).encode()


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    payload = _json("chat.completion.chunk", {"delta": delta, "finish_reason": finish})
    data = b"data: " + payload + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_FIRST = _event({"role": "assistant", "content": ""})
_CHUNK = _event({"content": " word"})
_LAST = _event({}, "stop") + _DONE
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_BODY = _json(
    "chat.completion",
    {"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"},
)
_TEXT = {"type": "text", "text": ANSWER}
_SAID = {"type": "output_text", "text": ANSWER, "annotations": []}
_ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
_OTHERS = {
    b"messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [_TEXT],
        "stop_reason": "end_turn",
    },
    b"responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "mock",
        "output": [{**_ITEM, "content": [_SAID]}],
    },
}
"""What the APIs answer that are not chat completions, by the end of their paths."""

_BODIES = {end: json.dumps(answer).encode() for end, answer in _OTHERS.items()}


def answer_to(url: bytes) -> bytes:
    """The body of a whole answer of the API at this path."""
    return _BODIES.get(url.rpartition(b"/")[2], _BODY)


def plain(body: bytes) -> bytes:
    """A whole answer."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


class Signal:
    """Starts all streams that wait."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def wait(self, start: Callable[[], None]) -> None:
        self._waiting.append(start)

    def go(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in waiting:
            start()


class Mock(asyncio.Protocol):
    """One connection."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._url = b""
        self._chunks, self._interval = 0, 0.0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"x-bench-chunks":
            self._chunks = int(value)
        elif name == b"x-bench-interval":
            self._interval = float(value)

    def on_message_complete(self) -> None:
        if self._url == b"/go":
            self._signal.go()
            self._transport.write(plain(b"{}"))
        elif self._chunks:
            self._transport.write(_STREAM + _FIRST)
            self._signal.wait(self._start)
        else:
            self._transport.write(plain(answer_to(self._url)))

    def _start(self) -> None:
        """Not all streams in step: real ones are not."""
        self._loop.call_later(random.random() * self._interval, self._tick, self._chunks)

    def _tick(self, left: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_CHUNK if left > 1 else _LAST)
        if left > 1:
            self._loop.call_later(self._interval, self._tick, left - 1)


async def serve(protocol: Callable[[], asyncio.Protocol]) -> None:
    """Until the process ends; says first where it listens."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = await asyncio.get_running_loop().create_server(protocol, sock=listener)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    signal = Signal()
    uvloop.run(serve(lambda: Mock(signal)))
