"""What a connection carries: commands out, replies in, for several callers in their order.

What they send in one turn of the loop goes out in one piece, and is synced together by a server
that syncs before it answers.

redis-py connects and authenticates.  What it has between a command and its reply afterwards, a
stream, a buffer and a dozen coroutines, costs more than the command does; so its transport is taken
over, and with it the table by which it tells errors apart.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from hiredis import Reader
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, ReadOnlyError

_NOTHING = object()


class PendingReplies:
    """``count`` commands, the replies ``found`` so far, and who waits for all of them."""

    __slots__ = ("count", "found", "replies")

    def __init__(self, count: int, replies: asyncio.Future[list[Any]]) -> None:
        self.count, self.replies = count, replies
        self.found: list[Any] = []


class Wire(asyncio.Protocol):
    """A connection that is open."""

    def __init__(self, connection: AbstractConnection) -> None:
        writer, parser = connection._writer, connection._parser
        if writer is None:
            raise RedisConnectionError("the connection was closed while it was opened")
        self._connection = connection
        self._transport: Any = writer.transport
        self._reader = Reader(
            protocolError=InvalidResponse, replyError=parser.parse_error, notEnoughData=_NOTHING
        )
        self._asked: deque[PendingReplies] = deque()
        self._lost = False
        self.retired = False
        """Whether nobody is to ask on it any more."""
        self._transport.set_protocol(self)

    @classmethod
    async def opened(cls, connection: AbstractConnection) -> Wire:
        """Connect.  Raises RedisError, OSError."""
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            return cls(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    @property
    def asked(self) -> int:
        """How many have asked and have no replies yet."""
        return len(self._asked)

    @property
    def awaited(self) -> bool:
        """Whether anybody waits for replies."""
        return any(not question.replies.done() for question in self._asked)

    async def ask(self, packed: bytes, count: int) -> list[Any]:
        """The replies to so many commands, error replies in place.

        Raises RedisConnectionError where they do not come.
        """
        if self._lost:
            raise RedisConnectionError("the server has closed the connection")
        question = PendingReplies(count, asyncio.get_running_loop().create_future())
        self._asked.append(question)
        self._transport.write(packed)
        replies = await question.replies
        for reply in replies:
            if isinstance(reply, ReadOnlyError):
                # The master has become a replica: another connection may lead to the new one.
                raise RedisConnectionError(str(reply)) from reply
            if isinstance(reply, RedisConnectionError):
                raise reply
        return replies

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)

    # What the transport calls

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                self._answered(reply)
        except InvalidResponse as error:
            self._fail(RedisConnectionError(str(error)))

    def _answered(self, reply: object) -> None:
        if not self._asked:
            raise InvalidResponse("a reply that nobody has asked for")
        question = self._asked[0]
        question.found.append(reply)
        if len(question.found) == question.count:
            self._asked.popleft()
            if not question.replies.done():  # else nobody waits for them any more
                question.replies.set_result(question.found)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._fail(RedisConnectionError("the server has closed the connection"))

    def _fail(self, error: RedisConnectionError) -> None:
        self._lost = self.retired = True
        asked, self._asked = self._asked, deque()
        for question in asked:
            if not question.replies.done():
                question.replies.set_exception(error)
