"""Connections to one server, each of which sends commands for one caller at a time.

redis-py connects and authenticates.  Afterwards its stream, buffer and dozen coroutines between a
command and its reply would cost more than the command itself; so its transport is taken over, and
the table by which it maps error replies to exceptions.
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
"""Connections to one server; a caller that needs one more waits, within its own timeout."""

SCANNED_AT_ONCE = 1000
"""Keys that a server examines before it serves others."""

PACKED_AT_ONCE, MANY_ARGUMENTS = 500, 5000
"""Arguments that one call encodes; more than so many are encoded in a thread."""

CHECK_SECONDS = 1.0
"""Seconds between two checks with Sentinel whether the master is still the same."""

_NOTHING = object()

UNAUTHENTICATED = "Protocol error: unauthenticated"
"""The error of a server with a password for a long command, or one with many arguments, before
authentication: it does not read it, and closes the connection."""


class OpenConnection(asyncio.Protocol):
    """A connection that is open and authenticated."""

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
        self._expected = 0
        self._pending: asyncio.Future[list[Any]] | None = None
        self._lost = False
        self._transport.set_protocol(self)

    @classmethod
    async def open(cls, connection: Connection) -> OpenConnection:
        """Connect.  Raises RedisError, OSError."""
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            return cls(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    async def request(self, packed: bytes, count: int) -> list[Any]:
        """Send ``count`` encoded commands; their replies, error replies in place.

        Raises RedisConnectionError if they do not arrive; then, and if this is cancelled, the
        connection cannot be used any more.
        """
        if self._lost:
            raise RedisConnectionError("the server has closed the connection")
        self._pending = asyncio.get_running_loop().create_future()
        self._replies, self._expected = [], count
        self._transport.write(packed)
        replies = await self._pending
        for reply in replies:
            if isinstance(reply, RedisError):
                _raise_if_unusable(reply)
        return replies

    async def close(self) -> None:
        """A pending request fails with RedisConnectionError."""
        self.connection_lost(None)
        await self._connection.disconnect(nowait=True)

    # Called by the transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                self._replies.append(reply)
        except InvalidResponse:
            return self._fail(RedisConnectionError("what answers there is no Redis"))
        if len(self._replies) >= self._expected and self._pending and not self._pending.done():
            self._pending.set_result(self._replies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if any(_is_unauthenticated(reply) for reply in self._replies):
            return self._fail(AuthenticationError("Authentication required."))
        self._fail(RedisConnectionError("the server has closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self._pending is not None and not self._pending.done():
            self._pending.set_exception(error)


def _raise_if_unusable(error: RedisError) -> None:
    """Raise errors that concern the connection, not only the command."""
    if isinstance(error, ReadOnlyError):
        # The master has become a replica: another connection may lead to the new one.
        raise RedisConnectionError(str(error)) from error
    if _is_unauthenticated(error):
        raise AuthenticationError("Authentication required.") from error
    if isinstance(error, RedisConnectionError):
        raise error


def _is_unauthenticated(reply: object) -> bool:
    return isinstance(reply, RedisError) and str(reply).startswith(UNAUTHENTICATED)


class ConnectionPool:
    """Connections to one server, opened when needed and reused.

    ``make`` returns a connection that is not yet open; behind Sentinel it may be to another server.
    """

    def __init__(self, make: Callable[[], Connection]) -> None:
        self._make = make
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: deque[OpenConnection] = deque()
        self._open: WeakSet[OpenConnection] = WeakSet()
        self._server: Node | None = None
        self._answered = 0
        """Requests that were answered."""

    def __repr__(self) -> str:
        return f"<ConnectionPool [{len(self._idle)} idle]>"

    async def run(self, *commands: Command) -> list[Any]:
        """Replies in order.  Raises RedisConnectionError if the server cannot be reached.

        The server may have closed a connection that was idle: then the commands are sent once more
        on a new one, so they must be idempotent.
        """
        async with self._slots:
            if self._idle:
                try:
                    return await self._exchange(self._idle.pop(), commands)
                except RedisConnectionError:
                    await self._close_idle()
            return await self._exchange(await self._connect(), commands)

    async def _connect(self) -> OpenConnection:
        known = self._server
        connection = await OpenConnection.open(self._make())
        if connection.server != self._server:
            if known != self._server:
                await connection.close()
                raise RedisConnectionError("the master has changed while it was connected to")
            self._server = connection.server
            await self._close_all()
        self._open.add(connection)
        return connection

    async def _close_all(self) -> None:
        """Close all connections because the server is another one, pending requests included: a
        master that hung accepts writes when it wakes, and loses them once it is a replica."""
        self._idle.clear()
        for connection in list(self._open):
            await connection.close()

    async def _exchange(self, connection: OpenConnection, commands: Sequence[Command]) -> list[Any]:
        answered = self._answered
        try:
            if sum(map(len, commands)) > MANY_ARGUMENTS:
                packed = await asyncio.to_thread(encode_in_pieces, commands)
            else:
                packed = encode(commands)
            replies = await connection.request(packed, len(commands))
        except BaseException as error:
            # Also if cancelled: an unread reply must not be taken for that of the next request.
            await connection.close()
            if isinstance(error, asyncio.CancelledError) and answered == self._answered:
                # Nobody was answered meanwhile: if the server hangs, idle connections are unusable.
                await self._close_idle()
            raise
        self._answered += 1
        self._idle.append(connection)
        return replies

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """The keys of this server that match, in batches; a key may come more than once."""
        cursor = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED_AT_ONCE)
            ((cursor, keys),) = raise_errors(await self.run(command))
            yield keys
            if cursor == b"0":
                return

    async def close(self) -> None:
        """Close the idle connections."""
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


class SentinelPool(ConnectionPool):
    """Connections to the current master according to Sentinel.

    In a planned failover the old master accepts writes for some ten seconds more, and then loses
    them.  So ``find_master`` asks Sentinel for the master, concurrently with commands and at most
    every ``pause`` seconds.
    """

    def __init__(
        self,
        make: Callable[[], Connection],
        find_master: Callable[[], Awaitable[Node]],
        pause: float = CHECK_SECONDS,
    ) -> None:
        super().__init__(make)
        self._find_master = find_master
        self._pause = pause
        self._due = 0.0
        self._check: asyncio.Task[None] | None = None

    async def run(self, *commands: Command) -> list[Any]:
        now = time.monotonic()
        if now >= self._due and (self._check is None or self._check.done()):
            self._due = now + self._pause
            self._check = asyncio.create_task(self._follow())
        return await super().run(*commands)

    async def _follow(self) -> None:
        known = self._server
        try:
            master = await self._find_master()
        except (RedisError, OSError):
            return  # commands raise their own errors; the next check may succeed
        if self._server == known != master and known is not None:
            self._server = master
            await self._close_all()

    async def close(self) -> None:
        if self._check is not None:
            self._check.cancel()
            await asyncio.wait([self._check])
        await super().close()


def raise_errors(replies: list[Any]) -> list[Any]:
    """The replies; raises the first one that is an error."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def encode(commands: Sequence[Command]) -> bytes:
    """The commands in the Redis protocol, by hiredis: four times as fast as redis-py."""
    return b"".join([pack_command(tuple(command)) for command in commands])


def encode_in_pieces(commands: Sequence[Command]) -> bytes:
    """The same; other threads run in between, and what grows is not copied again and again."""
    pieces: list[bytes] = []
    for command in commands:
        pieces.append(b"*%d\r\n" % len(command))
        for at in range(0, len(command), PACKED_AT_ONCE):
            packed = pack_command(tuple(command[at : at + PACKED_AT_ONCE]))
            pieces.append(packed[packed.index(b"\n") + 1 :])  # without the number of arguments
    return b"".join(pieces)
