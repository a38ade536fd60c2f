"""A store that is down, hangs, is full, read-only or locked: the chat goes on, nothing is lost."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.support.processes.redis import Server
from tests.support.processes.running import running, settings_for
from tests.support.store.inside import contents, store_at
from tests.support.talk.chatting import (
    chatting,
    history_with,
    memory_of,
    metric,
    seen_by,
)
from tests.support.upstream.scripted import ScriptedUpstream

TIMEOUT = 1.0
MARGIN = 0.9
"""Seconds beside the store's timeout that a failing store may cost."""
RETURN = 2.0 + 3.0
"""Seconds from the store's return to the last replay, and what a busy machine may add."""

Failing = AbstractContextManager[None]


@contextmanager
def down(server: Server) -> Iterator[None]:
    server.stop(kill=True)
    yield
    server.start()


@contextmanager
def hung(server: Server) -> Iterator[None]:
    with server.paused():
        yield


@contextmanager
def full(server: Server) -> Iterator[None]:
    with server.full():
        yield


@contextmanager
def read_only(server: Server) -> Iterator[None]:
    """A replica whose master is gone: it serves what it has and takes no writes."""
    server.ask("CONFIG", "SET", "replica-serve-stale-data", "yes")
    server.ask("REPLICAOF", "127.0.0.1", "1")
    yield
    server.ask("REPLICAOF", "NO", "ONE")


@contextmanager
def without_scripts(server: Server) -> Iterator[None]:
    """It answers plain commands, and its user may not run scripts."""
    server.ask("ACL", "SETUSER", "default", "-@scripting")
    yield
    server.ask("ACL", "SETUSER", "default", "+@all")


@contextmanager
def holding_scripts(server: Server) -> Iterator[None]:
    """It answers plain reads, and scripts only later, as during a failover by hand."""
    server.ask("CLIENT", "PAUSE", 600_000, "WRITE")
    yield
    server.ask("CLIENT", "UNPAUSE")


UNREADABLE = [
    pytest.param(down, "store_error", id="down"),
    pytest.param(hung, "store_timeout", id="hung"),
    pytest.param(without_scripts, "store_error", id="without-scripts"),
    pytest.param(holding_scripts, "store_timeout", id="holding-scripts"),
]
UNWRITABLE = [pytest.param(full, id="full"), pytest.param(read_only, id="read-only")]


@pytest.mark.parametrize(("broken", "reason"), UNREADABLE)
async def test_without_the_store_the_chat_goes_on_and_the_turns_follow_in_order(
    server: Server,
    up: ScriptedUpstream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    broken: Callable[[Server], Failing],
    reason: str,
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=TIMEOUT)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        for n in range(2):
            assert memory_of(await chat.say(f"u{n}"))[0] == 200
        costs = []
        with broken(server):
            for n in range(2, 7):
                assert memory_of(await chat.say(f"u{n}")) == (200, "degraded", reason)
                costs.append(chat.seconds)
        async with store_at(server.url) as store:
            found = await history_with(store, 7, RETURN)
        assert contents(found.said, "user") == [f"u{n}" for n in range(7)]
        assert found.seqs == list(range(1, 15)) and not any(found.incomplete)
        assert costs[0] < TIMEOUT + MARGIN
        assert statistics.median(costs[1:]) < MARGIN
        assert (await chat.say("last")).headers["x-memory-status"] == "applied"
        assert seen_by(up) == [*(f"u{n}" for n in range(7)), "last"]
    with capsys.disabled():
        first, others = costs[0] * 1000, statistics.median(costs[1:]) * 1000
        print(
            f"\nRedis {broken.__name__}: the first request waits {first:.0f} ms,"
            f" the others {others:.0f} ms"
        )


@pytest.mark.parametrize("hanging", [hung, holding_scripts])
async def test_a_store_that_hangs_costs_its_timeout_once_a_second(
    server: Server,
    up: ScriptedUpstream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hanging: Callable[[Server], Failing],
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=TIMEOUT)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        await chat.say("before")
        costly: list[float] = []
        asked = 0
        with hanging(server):
            while len(costly) < 2:
                began = time.perf_counter()
                await chat.say("hello", f"s{asked}")
                asked += 1
                assert chat.seconds < TIMEOUT + MARGIN
                if chat.seconds > TIMEOUT / 3:
                    costly.append(began)
        # Between them what a failure is remembered for, and those who need not wait; what is sent
        # just before that is over may arrive behind it.
        assert costly[1] - costly[0] > TIMEOUT + 0.9
        assert asked > len(costly)
        assert metric(proxy, "memory_session_failures_total") == 0
    with capsys.disabled():
        print(f"\nRedis hung: {len(costly)} of {asked} requests paid for it")


@pytest.mark.parametrize("broken", UNWRITABLE)
async def test_a_store_that_cannot_be_written_is_still_read_and_the_spool_laid_over_it(
    server: Server,
    up: ScriptedUpstream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    broken: Callable[[Server], Failing],
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=TIMEOUT)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        await chat.say("u0")
        costs = []
        with broken(server):
            for n in range(1, 6):
                # What a request does not know yet it cannot say: the first is recorded as usual.
                expected = None if n == 1 else "spooled"
                assert memory_of(await chat.say(f"u{n}")) == (200, "applied", expected)
                assert seen_by(up) == [f"u{k}" for k in range(n + 1)]
                costs.append(chat.seconds)
        async with store_at(server.url) as store:
            found = await history_with(store, 6, RETURN)
        assert contents(found.said, "user") == [f"u{n}" for n in range(6)]
        assert found.seqs == list(range(1, 13))
        assert max(costs) < TIMEOUT + MARGIN
        assert metric(proxy, "memory_lost_total") == 0
    with capsys.disabled():
        print(f"\nRedis {broken.__name__}: requests wait {statistics.median(costs) * 1000:.0f} ms")


async def test_a_restart_between_two_requests_is_not_noticed(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=TIMEOUT)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        for n in range(3):
            await chat.say(f"u{n}")
            server.restart()
        assert memory_of(await chat.say("u3")) == (200, "applied", None)
        assert seen_by(up) == ["u0", "u1", "u2", "u3"]


async def test_a_proxy_starts_without_its_store(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    server.stop()
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=TIMEOUT)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        assert memory_of(await chat.say("u0")) == (200, "degraded", "store_error")
        server.start()
        async with store_at(server.url) as store:
            assert contents((await history_with(store, 1, RETURN)).said, "user") == ["u0"]
