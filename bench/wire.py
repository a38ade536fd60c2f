"""One kept-alive HTTP/1.1 connection that asks and times the answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools

SECONDS = 30.0
"""Longer than any answer here may take."""


@dataclass(slots=True)
class Answer:
    """Times are seconds since the request was sent; ``events`` counts server-sent events."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    first: float = 0.0
    total: float = 0.0
    events: int = 0


class Connection(asyncio.Protocol):
    """Ask one thing at a time; ``on_events`` hears of each arrival of events, with all so far."""

    def __init__(self, on_events: Callable[[Answer, int], None] | None = None) -> None:
        self._on_events = on_events
        self._transport: asyncio.Transport | None = None
        self._answer = Answer()
        self._began = 0.0
        self._done: asyncio.Future[Answer] | None = None

    async def ask(self, request: bytes) -> Answer:
        """Send the request; its answer, once it is there.  Raises ConnectionError."""
        assert self._transport is not None
        self._answer, self._parser = Answer(), httptools.HttpResponseParser(self)
        self._done = asyncio.get_running_loop().create_future()
        self._began = time.perf_counter()
        self._transport.write(request)
        async with asyncio.timeout(SECONDS):
            return await self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error or ConnectionResetError("closed in mid-answer"))

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        answer = self._answer
        if not answer.first:
            answer.first = time.perf_counter() - self._began
        new = data.count(b"data: ")
        if new:
            answer.events += new
            if self._on_events is not None:
                self._on_events(answer, new)

    def on_message_complete(self) -> None:
        self._answer.total = time.perf_counter() - self._began
        if self._done is not None and not self._done.done():
            self._done.set_result(self._answer)


async def connect(port: int, on_events: Callable[[Answer, int], None] | None = None) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(on_events), "127.0.0.1", port)
    return connection


async def asked(port: int, request: bytes) -> Answer:
    """The answer to one request, on a connection of its own.  Raises OSError."""
    connection = await connect(port)
    try:
        return await connection.ask(request)
    finally:
        connection.close()
