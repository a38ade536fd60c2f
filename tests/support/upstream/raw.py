"""Requests and answers as bytes on a socket: nothing is added, folded, decoded or put in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.waiting import PATIENCE

Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: the status, the headers in order, the body without its framing.

    ``whole``: the end of the body was seen.
    """

    status: int
    headers: Fields
    body: bytes
    whole: bool

    def get_all(self, name: str) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name.lower().encode()]

    def get(self, name: str) -> bytes | None:
        values = self.get_all(name)
        assert len(values) < 2, f"{name} came {len(values)} times"
        return values[0] if values else None


class Line:
    """One connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def head(self) -> tuple[int, Fields]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, *lines = head[:-4].split(b"\r\n")
        fields = [line.partition(b": ") for line in lines]
        return int(status.split(b" ")[1]), [(name, value) for name, _, value in fields]

    async def answer(self, method: str = "GET") -> Answer:
        status, headers = await self.head()
        parts: list[bytes] = []
        whole = True
        try:
            async for part in self._body(method, status, headers):
                parts.append(part)
        except (asyncio.IncompleteReadError, ConnectionError):
            whole = False
        return Answer(status, headers, b"".join(parts), whole)

    async def _body(self, method: str, status: int, headers: Fields) -> AsyncIterator[bytes]:
        fields = {name.lower(): value for name, value in headers}
        if method == "HEAD" or status in (204, 304):
            return
        if fields.get(b"transfer-encoding") == b"chunked":
            async for part in self.chunks():
                yield part
        else:
            yield await self.reader.readexactly(int(fields.get(b"content-length", b"0")))

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of a chunked body, as they come."""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)


@asynccontextmanager
async def line(port: int) -> AsyncIterator[Line]:
    """A connection, for ten seconds at most, closed at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE):
            yield Line(reader, writer)
    finally:
        writer.transport.abort()


def request(
    method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes | None = None
) -> bytes:
    """A request; ``Host`` first, ``Content-Length`` last where there is a body."""
    lines = [f"{method} {target} HTTP/1.1", "Host: proxy.test"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


async def ask(
    port: int,
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
) -> Answer:
    """One request and its answer, on a connection of its own."""
    async with line(port) as connection:
        await connection.send(request(method, target, headers, body))
        return await connection.answer(method)


def chunked(pieces: Iterable[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
