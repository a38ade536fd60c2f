"""Connections to Redis: how commands get there and replies come back.  Knows no chats.

redis-py connects, authenticates and parses; its pools and its retries are left out: a pool costs as
much per command as the command, and ten retries with backoff are no use to a request that waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from proxy.memory.limit import Limit
from proxy.memory.store import StoreError, StoreTimeout
from proxy.stores.damage import SIGNS, damage_in

T = TypeVar("T")
Command = Sequence[Any]

MAX_CONNECTIONS = 32
"""Most connections to one server; who needs one more waits, within its own time limit."""

SCANNED_AT_ONCE = 1000
"""Keys that a server looks at before it turns to others."""


class Link(Protocol):
    """The way to wherever the keys are."""

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        """Send commands for one slot together; the replies in order, error replies in place."""
        ...

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send commands for any keys; the replies in order.  Raises the first error reply."""
        ...

    async def each(self, *commands: Command) -> list[list[Any]]:
        """Ask every server that has keys; the replies of each, error replies in place."""
        ...

    async def scan(self, pattern: bytes) -> list[bytes]:
        """All keys that match, of all servers.  Goes through every key: not for requests."""
        ...

    async def close(self) -> None: ...


class Lane:
    """Connections to one server, opened when needed and kept.

    ``make`` gives a connection that is not yet open.
    """

    def __init__(
        self, make: Callable[[], AbstractConnection], limit: int = MAX_CONNECTIONS
    ) -> None:
        self._make = make
        self._free = asyncio.Semaphore(limit)
        self._idle: deque[AbstractConnection] = deque()

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
                    await self.close()
            return await self._exchange(self._make(), commands)

    async def _exchange(
        self, connection: AbstractConnection, commands: Sequence[Command]
    ) -> list[Any]:
        try:
            if not connection.is_connected:
                await connection.connect()  # type: ignore[no-untyped-call]
            await connection.send_packed_command(_packed(commands), check_health=False)
            replies = [await _reply(connection) for _ in commands]
        except BaseException as error:
            # Cancelled included: a reply that nobody has read must not be the next one's.
            await connection.disconnect(nowait=True)
            if isinstance(error, asyncio.CancelledError):
                # The server may hang: those that are idle are no better.
                await self.close()
            raise
        self._idle.append(connection)
        return replies

    async def scan(self, pattern: bytes) -> list[bytes]:
        """The keys of this server that match, some more than once."""
        found: list[bytes] = []
        cursor = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED_AT_ONCE)
            ((cursor, keys),) = checked(await self.run(command))
            found += keys
            if cursor == b"0":
                return found

    async def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            await self._idle.pop().disconnect(nowait=True)


class Direct:
    """A single server: standalone, or the master that Sentinel names."""

    def __init__(
        self, make: Callable[[], AbstractConnection], sentinel: Sentinel | None = None
    ) -> None:
        self._lane = Lane(make)
        self._sentinel = sentinel

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        return await self._lane.run(*commands)

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        if not commands:
            return []
        return checked(await self._lane.run(*(command for _, command in commands)))

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._lane.run(*commands)]

    async def scan(self, pattern: bytes) -> list[bytes]:
        return await self._lane.scan(pattern)

    async def close(self) -> None:
        await self._lane.close()
        if self._sentinel is not None:
            for client in self._sentinel.sentinels:
                await client.aclose()


def checked(replies: list[Any]) -> list[Any]:
    """The replies, if none of them is an error; raises the first that is."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


async def bounded(work: Awaitable[T], seconds: float) -> T:
    """The result of ``work``.  The one place where Redis' errors become StoreError."""
    try:
        async with Limit(seconds):
            return await work
    except (TimeoutError, RedisTimeoutError) as error:
        raise StoreTimeout(f"Redis took longer than {seconds:g} s") from error
    except (RedisError, RedisClusterException, OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"Redis: {error}") from error
    except SIGNS as error:
        raise damage_in(error) or error from error.__cause__


def _packed(commands: Sequence[Command]) -> bytes:
    """In the Redis protocol; by hiredis, which does it in a quarter of redis-py's time."""
    return b"".join([pack_command(tuple(command)) for command in commands])


async def _reply(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ReadOnlyError as error:
        # The master has become a replica: another connection may lead to the new one.
        raise RedisConnectionError(str(error)) from error
    except ResponseError as error:
        return error
