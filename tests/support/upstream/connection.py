"""One connection of the scripted upstream: requests in, scripted answers out, as bytes."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.support.upstream.answers import Script
from tests.support.upstream.items import as_messages


@dataclass(slots=True)
class Request:
    """What arrived.  ``gone`` is set when the client left before its answer was complete;
    ``answered`` when the answer is out; ``refused`` says why it was not a valid chat request."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    connection: int
    body: bytes = b""
    refused: str | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    sent: int = 0

    @property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin-1")

    @property
    def json(self) -> Any:
        """The parsed body, or None if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat request; of one for a response, what its items say."""
        asked = self.json
        if "input" in asked:
            said = asked["input"]
            return as_messages(
                [{"role": "user", "content": said}] if isinstance(said, str) else said
            )
        found: list[dict[str, Any]] = asked["messages"]
        return found

    def header(self, name: str) -> str | None:
        values = self.header_list(name)
        return values[0] if values else None

    def header_list(self, name: str) -> list[str]:
        low = name.lower().encode()
        return [v.decode("latin-1") for k, v in self.headers if k.lower() == low]


class Connection:
    """One connection: requests in, answers out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._watch: asyncio.Task[bytes] | None = None

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._writer.transport.abort()

    def watch(self) -> asyncio.Task[bytes]:
        """Done when the client leaves (b"") or begins its next request (its first byte)."""
        self._watch = asyncio.create_task(self._peek())
        return self._watch

    async def _peek(self) -> bytes:
        with suppress(ConnectionError):
            return await self._reader.read(1)
        return b""

    async def head(self, number: int) -> Request:
        first = b"" if self._watch is None else await self._watch
        head = first + await self._reader.readuntil(b"\r\n\r\n")
        start, *lines = head[:-4].split(b"\r\n")
        method, target, _ = start.split(b" ")
        fields = [line.partition(b":") for line in lines]
        headers = [(name, value.strip()) for name, _, value in fields]
        return Request(method.decode(), target, headers, number)

    async def body(self, request: Request) -> bytes:
        if (request.header("transfer-encoding") or "").lower() == "chunked":
            return await self._chunked()
        return await self._reader.readexactly(int(request.header("content-length") or 0))

    async def _chunked(self) -> bytes:
        parts = []
        while size := int((await self._reader.readline()).partition(b";")[0], 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readline()
        while (await self._reader.readline()).strip():
            pass
        return b"".join(parts)

    async def say(self, request: Request, script: Script) -> bool:
        """Send the answer; True if the connection can carry another."""
        if script.before is not None:
            await script.before.wait()
        if script.hang == "headers":
            await asyncio.Event().wait()
        if script.drop:
            return False
        if script.raw is not None:
            await self._send(script.raw)
            return await self._end()
        framing = _framing(script)
        await self._send(_head(script, framing))
        if request.method != "HEAD" and not await self._pieces(request, script, framing):
            return False
        return await self._end() if script.close or framing == "close" else True

    async def early(self, request: Request, script: Script) -> None:
        """Answer a request whose body is still on its way, and take the body all the same."""
        await self._send(script.raw or b"")
        await self.body(request)

    async def _pieces(self, request: Request, script: Script, framing: str) -> bool:
        """Send the body; False if it was cut."""
        for piece in script.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            room = len(piece) if script.cut is None else script.cut - request.sent
            if room < len(piece):
                piece = piece[:room]
            request.sent += len(piece)
            if piece:
                whole = b"%x\r\n%b\r\n" % (len(piece), piece) if framing == "chunked" else piece
                await self._send(whole)
                await asyncio.sleep(0)  # the other side's turn, or all pieces would travel as one
            if script.cut is not None and request.sent >= script.cut:
                return await self._end()
        if script.hang == "body":
            await asyncio.Event().wait()
        if framing == "chunked":
            await self._send(b"0\r\n\r\n")
        return True

    async def _send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def _end(self) -> bool:
        """Say that nothing more comes; what was written still arrives, unlike with a reset."""
        with suppress(OSError, NotImplementedError):
            self._writer.close()
            await self._writer.wait_closed()
        return False


def _framing(script: Script) -> str:
    if script.framing != "auto":
        return script.framing
    plain = len(script.pieces) < 2 and script.hang is None
    return "length" if plain else "chunked"


def _head(script: Script, framing: str) -> bytes:
    phrase = HTTPStatus(script.status).phrase if script.status in set(HTTPStatus) else "Odd"
    lines = [f"HTTP/1.1 {script.status} {phrase}".encode()]
    lines += [_raw(name) + b": " + _raw(value) for name, value in script.headers]
    if framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
    elif framing == "close":
        lines.append(b"Connection: close")
    elif script.status != 204 and script.status != 304:
        size = sum(len(piece) for piece in script.pieces if isinstance(piece, bytes))
        lines.append(b"Content-Length: %d" % (size if script.length is None else script.length))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _raw(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value
