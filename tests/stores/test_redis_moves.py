"""Where connections lead elsewhere than those before: another server is the master now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio.connection import Connection
from redis.exceptions import ClusterDownError
from redis.exceptions import ConnectionError as RedisConnectionError

from proxy.stores.redis.connection import Cluster
from proxy.stores.redis.wire import ConnectionPool, Node, SentinelPool
from tests.support.processes.redis import Server
from tests.support.tcp import TcpServer
from tests.support.waiting import PATIENCE


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


@pytest.mark.parametrize("answers", [True, False])
async def test_who_gives_up_closes_connections_of_others_only_if_nobody_is_answered(
    server: Server, answers: bool
) -> None:
    pool = ConnectionPool(
        lambda: Connection(host="127.0.0.1", port=server.port, protocol=2, driver_info=None)
    )
    await asyncio.gather(*(pool.run(("PING",)) for _ in range(3)))
    assert repr(pool) == "<ConnectionPool [3 idle]>"
    slow = asyncio.create_task(pool.run(("BLPOP", "nothing", 0)))
    await asyncio.sleep(0)
    if answers:
        await pool.run(("PING",))
    slow.cancel()
    await asyncio.wait({slow})
    assert repr(pool) == f"<ConnectionPool [{2 if answers else 0} idle]>"
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


class ClusterServer(TcpServer):
    """Says that all slots are its own, and answers commands; not if it is ``cut_off``.

    ``faster``: a server that it asks itself before each answer.
    """

    def __init__(self, *, cut_off: bool = False, faster: ClusterServer | None = None) -> None:
        super().__init__()
        self._cut_off, self._faster = cut_off, faster

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if self._faster is not None:
                    await self._faster.ask()
                writer.write(self._reply(data))
        finally:
            writer.close()

    async def ask(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"PING\r\n")
        await reader.read(65536)
        writer.close()

    def _reply(self, data: bytes) -> bytes:
        state = b"cluster_state:fail" if self._cut_off else b"cluster_state:ok"
        info = b"$%d\r\n%s\r\n" % (len(state), state) if b"INFO" in data else b""
        if b"SLOTS" in data:
            slots = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % self.port
            return info + slots
        return b"-CLUSTERDOWN The cluster is down\r\n" if self._cut_off else b"+served\r\n"


@pytest.fixture
async def cut_off() -> AsyncIterator[ClusterServer]:
    async with ClusterServer(cut_off=True) as server:
        yield server


def cluster_of(*servers: ClusterServer) -> Cluster:
    def make(node: Node) -> Connection:
        return Connection(host=node[0], port=node[1], protocol=2, driver_info=None)

    return Cluster([("127.0.0.1", server.port) for server in servers], make, PATIENCE)


async def test_a_server_that_is_cut_off_from_its_cluster_is_not_believed(
    cut_off: ClusterServer,
) -> None:
    async with ClusterServer(faster=cut_off) as other:
        link = cluster_of(cut_off, other)
        assert await link.run(b"key", ("PING",)) == [b"served"]
        assert link.server_of(b"key") == f"127.0.0.1:{other.port}"
        await link.close()


async def test_where_all_are_cut_off_what_they_say_is_all_there_is(cut_off: ClusterServer) -> None:
    link = cluster_of(cut_off)
    with pytest.raises(ClusterDownError):
        await link.run(b"key", ("PING",))
    await link.close()
