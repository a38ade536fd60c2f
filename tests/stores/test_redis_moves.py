"""Where connections lead elsewhere than those before: Sentinel has named another master."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from proxy.stores.redis.wire import ConnectionPool, Node, SentinelPool
from tests.support.tcp import TcpServer


class Master(TcpServer):
    """Answers each command with its name, unless it hangs."""

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self._name = name
        self.asked, self.wake_at = asyncio.Event(), asyncio.Event()
        self.wake_at.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(65536):
                self.asked.set()
                await self.wake_at.wait()
                writer.write(b"+%s\r\n" % self._name)
        finally:
            writer.close()

    def connection(self) -> Connection:
        return Connection(host="127.0.0.1", port=self.port, protocol=2, driver_info=None)


class Slow(Connection):
    """Is open when it is let."""

    def __init__(self, port: int) -> None:
        super().__init__(host="127.0.0.1", port=port, protocol=2, driver_info=None)
        self.begun, self.let = asyncio.Event(), asyncio.Event()

    async def connect(self) -> None:
        self.begun.set()
        await super().connect()  # type: ignore[no-untyped-call]
        await self.let.wait()


@pytest.fixture
async def masters() -> AsyncIterator[tuple[Master, Master]]:
    async with Master(b"old") as old, Master(b"new") as new:
        yield old, new


async def test_whoever_waits_for_a_master_that_hangs_is_answered_by_the_next_one(
    masters: tuple[Master, Master],
) -> None:
    old, new = masters
    named = old
    pool = ConnectionPool(lambda: named.connection())
    assert await pool.run(("PING",)) == [b"old"]
    old.wake_at.clear()
    old.asked.clear()
    waiting = asyncio.create_task(pool.run(("PING",)))
    await old.asked.wait()
    named = new
    assert await pool.run(("PING",)) == [b"new"]
    assert await waiting == [b"new"]
    old.wake_at.set()
    assert await asyncio.gather(*(pool.run(("PING",)) for _ in range(4))) == [[b"new"]] * 4
    await pool.close()


async def test_connections_that_are_idle_lead_to_the_old_master_no_more(
    masters: tuple[Master, Master],
) -> None:
    old, new = masters
    named = old
    pool = ConnectionPool(lambda: named.connection())
    assert await asyncio.gather(*(pool.run(("PING",)) for _ in range(2))) == [[b"old"]] * 2
    named = new
    await asyncio.gather(*(pool.run(("PING",)) for _ in range(3)))  # one of them opens another
    assert await asyncio.gather(*(pool.run(("PING",)) for _ in range(3))) == [[b"new"]] * 3
    await pool.close()


async def test_a_connection_that_was_opened_to_the_old_master_meanwhile_is_not_used(
    masters: tuple[Master, Master],
) -> None:
    old, new = masters
    slow = Slow(old.port)
    coming = [new.connection(), slow, old.connection()]
    pool = ConnectionPool(coming.pop)
    assert await pool.run(("PING",)) == [b"old"]
    await pool.close()
    late = asyncio.create_task(pool.run(("PING",)))
    await slow.begun.wait()
    assert await pool.run(("PING",)) == [b"new"]
    slow.let.set()
    with pytest.raises(RedisConnectionError, match="the master has changed"):
        await late
    assert await pool.run(("PING",)) == [b"new"]
    await pool.close()


def _at(master: Master) -> Node:
    return "127.0.0.1", master.port


async def test_a_master_that_still_answers_is_left_when_sentinel_names_another(
    masters: tuple[Master, Master],
) -> None:
    old, new = masters
    named = old

    async def ask() -> Node:
        return _at(named)

    pool = SentinelPool(lambda: named.connection(), ask, pause=0)
    assert await asyncio.gather(*(pool.run(("PING",)) for _ in range(2))) == [[b"old"]] * 2
    named = new
    await pool.run(("PING",))  # finds out
    assert await asyncio.gather(*(pool.run(("PING",)) for _ in range(3))) == [[b"new"]] * 3
    await pool.close()


async def test_a_sentinel_that_hangs_or_fails_is_in_no_commands_way(
    masters: tuple[Master, Master],
) -> None:
    old, _ = masters
    asked = 0
    fails = asyncio.Event()

    async def ask() -> Node:
        nonlocal asked
        asked += 1
        await fails.wait()
        raise RedisConnectionError("no Sentinel knows the master")

    pool = SentinelPool(old.connection, ask, pause=0)
    assert [await pool.run(("PING",)) for _ in range(3)] == [[b"old"]] * 3
    assert asked == 1
    fails.set()
    assert [await pool.run(("PING",)) for _ in range(2)] == [[b"old"]] * 2
    assert asked > 1
    await pool.close()


async def test_sentinel_is_not_asked_with_every_command(masters: tuple[Master, Master]) -> None:
    old, _ = masters
    asked = 0

    async def ask() -> Node:
        nonlocal asked
        asked += 1
        return _at(old)

    pool = SentinelPool(old.connection, ask, pause=60)
    for _ in range(5):
        await pool.run(("PING",))
    assert asked == 1
    await pool.close()


async def test_a_look_that_is_under_way_ends_with_the_pool(masters: tuple[Master, Master]) -> None:
    old, _ = masters
    ended = asyncio.Event()

    async def ask() -> Node:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    pool = SentinelPool(old.connection, ask)
    await pool.run(("PING",))
    await pool.close()
    assert ended.is_set()
