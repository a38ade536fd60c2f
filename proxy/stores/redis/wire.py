"""Connections to one server, and what one carries: commands out, replies in, for one caller at a
time.

redis-py connects and authenticates.  What it has between a command and its reply afterwards, a
stream, a buffer and a dozen coroutines, costs more than the command does; so its transport is taken
over, and with it the table by which it tells errors apart.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias
from weakref import WeakSet

from hiredis import Reader, pack_command
from redis.asyncio.connection import Connection
from redis.exceptions import AuthenticationError, InvalidResponse, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

Command = Sequence[Any]
Node: TypeAlias = tuple[str, int]

MAX_CONNECTIONS = 32
"""Most connections to one server; who needs one more waits, within its own time limit."""

SCANNED_AT_ONCE = 1000
"""Keys that a server looks at before it turns to others."""

PAUSE_BETWEEN_LOOKS = 1.0
"""Seconds from one question to Sentinel, whether the master is the same, to the next."""

_NOTHING = object()

REFUSAL = "Protocol error: unauthenticated"
"""What a server with a password says of a command that is long or has many parts: it does not even
read it, and closes the connection."""


class Wire(asyncio.Protocol):
    """A connection that is open."""

    def __init__(self, connection: Connection) -> None:
        writer, parser = connection._writer, connection._parser
        if writer is None:
            raise RedisConnectionError("the connection was closed while it was opened")
        self._connection = connection
        self.server: tuple[str, int] = (connection.host, connection.port)
        self._transport: Any = writer.transport
        self._reader = Reader(
            protocolError=InvalidResponse, replyError=parser.parse_error, notEnoughData=_NOTHING
        )
        self._replies: list[Any] = []
        self._wanted = 0
        self._asking: asyncio.Future[list[Any]] | None = None
        self._lost = False
        self._transport.set_protocol(self)

    @classmethod
    async def opened(cls, connection: Connection) -> Wire:
        """Connect.  Raises RedisError, OSError."""
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            return cls(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    async def ask(self, packed: bytes, count: int) -> list[Any]:
        """The replies to so many commands, error replies in place.

        Raises RedisConnectionError where they do not come; then, and where this is cancelled, the
        connection is of no more use.
        """
        if self._lost:
            raise RedisConnectionError("the server has closed the connection")
        self._asking = asyncio.get_running_loop().create_future()
        self._replies, self._wanted = [], count
        self._transport.write(packed)
        replies = await self._asking
        for reply in replies:
            if isinstance(reply, RedisError):
                _raise_connection_error(reply)
        return replies

    async def close(self) -> None:
        """Whoever asks gets RedisConnectionError."""
        self.connection_lost(None)
        await self._connection.disconnect(nowait=True)

    # What the transport calls

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                self._replies.append(reply)
        except InvalidResponse:
            return self._fail(RedisConnectionError("what answers there is no Redis"))
        if len(self._replies) >= self._wanted and self._asking and not self._asking.done():
            self._asking.set_result(self._replies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if any(_is_refusal(reply) for reply in self._replies):
            return self._fail(AuthenticationError("Authentication required."))
        self._fail(RedisConnectionError("the server has closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self._asking is not None and not self._asking.done():
            self._asking.set_exception(error)


def _raise_connection_error(error: RedisError) -> None:
    """Raise what concerns the connection and not the command alone."""
    if isinstance(error, ReadOnlyError):
        # The master has become a replica: another connection may lead to the new one.
        raise RedisConnectionError(str(error)) from error
    if _is_refusal(error):
        raise AuthenticationError("Authentication required.") from error
    if isinstance(error, RedisConnectionError):
        raise error


def _is_refusal(reply: object) -> bool:
    return isinstance(reply, RedisError) and str(reply).startswith(REFUSAL)


class Lane:
    """Connections to one server, opened when needed and kept.

    ``make`` gives a connection that is not yet open; behind Sentinel it may lead elsewhere.
    """

    def __init__(self, make: Callable[[], Connection]) -> None:
        self._make = make
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: deque[Wire] = deque()
        self._all: WeakSet[Wire] = WeakSet()
        self._server: Node | None = None

    def __repr__(self) -> str:
        return f"<Lane [{len(self._idle)} idle]>"

    async def run(self, *commands: Command) -> list[Any]:
        """Replies in order.  Raises RedisConnectionError where the server cannot be asked.

        A connection that was idle may have been closed by the server: then once more on a new one.
        What is sent twice must be harmless twice.
        """
        async with self._free:
            if self._idle:
                try:
                    return await self._exchange(self._idle.pop(), commands)
                except RedisConnectionError:
                    await self._close_idle()
            return await self._exchange(await self._opened(), commands)

    async def _opened(self) -> Wire:
        known = self._server
        wire = await Wire.opened(self._make())
        if wire.server != self._server:
            if known != self._server:
                await wire.close()
                raise RedisConnectionError("the master has changed while it was connected to")
            self._server = wire.server
            await self._leave()
        self._all.add(wire)
        return wire

    async def _leave(self) -> None:
        """Close what leads to another server, also where somebody waits for it: a master that hung
        takes writes when it wakes, and forgets them once it is a replica."""
        self._idle.clear()
        for wire in list(self._all):
            await wire.close()

    async def _exchange(self, wire: Wire, commands: Sequence[Command]) -> list[Any]:
        try:
            replies = await wire.ask(_packed(commands), len(commands))
        except BaseException as error:
            # Cancelled included: a reply that nobody has read must not be the next one's.
            await wire.close()
            if isinstance(error, asyncio.CancelledError):
                # The server may hang: those that are idle are no better.
                await self._close_idle()
            raise
        self._idle.append(wire)
        return replies

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """The keys of this server that match, some at a time, and some more than once."""
        cursor = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED_AT_ONCE)
            ((cursor, keys),) = raise_errors(await self.run(command))
            yield keys
            if cursor == b"0":
                return

    async def close(self) -> None:
        """Close what is idle."""
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


class GuardedLane(Lane):
    """Connections to the master that Sentinel guards, which may be another while the old one still
    takes writes: in a planned failover for some ten seconds, and then it forgets them.

    ``named`` asks Sentinel where the master is: beside commands, at most every ``pause`` seconds.
    """

    def __init__(
        self,
        make: Callable[[], Connection],
        named: Callable[[], Awaitable[Node]],
        pause: float = PAUSE_BETWEEN_LOOKS,
    ) -> None:
        super().__init__(make)
        self._named = named
        self._pause = pause
        self._due = 0.0
        self._look: asyncio.Task[None] | None = None

    async def run(self, *commands: Command) -> list[Any]:
        now = time.monotonic()
        if now >= self._due and (self._look is None or self._look.done()):
            self._due = now + self._pause
            self._look = asyncio.create_task(self._follow())
        return await super().run(*commands)

    async def _follow(self) -> None:
        known = self._server
        try:
            named = await self._named()
        except (RedisError, OSError):
            return  # Commands tell what they meet; the next look may do better.
        if self._server == known != named and known is not None:
            self._server = named
            await self._leave()

    async def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
        await super().close()


def raise_errors(replies: list[Any]) -> list[Any]:
    """The replies, if none of them is an error; raises the first that is."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _packed(commands: Sequence[Command]) -> bytes:
    """In the Redis protocol; by hiredis, which does it in a quarter of redis-py's time."""
    return b"".join([pack_command(tuple(command)) for command in commands])
