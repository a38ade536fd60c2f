"""What a connection carries: commands out, replies in, for one caller at a time.

redis-py connects and authenticates.  What it has between a command and its reply afterwards, a
stream, a buffer and a dozen coroutines, costs more than the command does; so its transport is taken
over, and with it the table by which it tells errors apart.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hiredis import Reader
from redis.asyncio.connection import Connection
from redis.exceptions import AuthenticationError, InvalidResponse, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

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
                _look_at(reply)
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
        except InvalidResponse as error:
            return self._fail(RedisConnectionError(str(error)))
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


def _look_at(error: RedisError) -> None:
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
