"""A client of one request that reads as much as it is told to, and leaves when it is told to."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any

import httptools

from tests.support.waiting import PATIENCE


class WireClient:
    """An async context manager; leaving the block resets the connection.

    ``status`` and ``headers`` are there after ``head``; ``body`` grows with ``read``; ``whole``
    says that the answer ended as an answer should.
    """

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._address = (host, int(port))
        self._parser = httptools.HttpResponseParser(self)
        self._writer: asyncio.StreamWriter | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.whole = False

    async def __aenter__(self) -> WireClient:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    async def ask(self, body: dict[str, Any], **headers: str) -> None:
        """Send a chat request; ``x_session_id="s1"`` is a header."""
        assert self._writer is not None
        payload = json.dumps(body).encode()
        fields = {"host": "proxy", "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        fields["content-length"] = str(len(payload))
        lines = [f"{name}: {value}" for name, value in fields.items()]
        head = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *lines, "", ""])
        self._writer.write(head.encode() + payload)
        await self._writer.drain()

    async def head(self) -> int:
        """The status, once the head is there."""
        await self._until(lambda: self.status != 0)
        return self.status

    async def read(self, count: int) -> bytes:
        """The first ``count`` bytes of the body."""
        await self._until(lambda: len(self.body) >= count)
        return bytes(self.body[:count])

    async def read_all(self) -> bytes:
        """The body up to its end, or to where it was cut."""
        await self._until(lambda: self.whole)
        return bytes(self.body)

    def leave(self) -> None:
        """Go at once, with a reset."""
        if self._writer is not None:
            self._writer.transport.abort()

    async def _until(self, enough: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not enough():
                data = await self._reader.read(65536)
                if not data:
                    return
                self._parser.feed_data(data)

    # What the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.whole = True
