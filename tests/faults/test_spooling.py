"""What goes through the spool: kept, in order, once, or counted as lost."""

from __future__ import annotations

import re
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.processes import redis as servers
from tests.support.processes.redis import Server
from tests.support.processes.running import running, settings_for
from tests.support.store.inside import contents, recorded, store_at
from tests.support.talk.chatting import (
    chatting,
    history_with,
    memory_of,
    metric,
    seen_by,
)
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE, eventually

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"

RETURN = 2.0 + 3.0
"""Seconds from the store's return to the last replay, and what a busy machine may add."""

MARGIN = 0.9
"""Seconds that a busy machine may add; less than what it would cost twice."""


async def test_what_was_spooled_is_replayed_by_the_next_process(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url)
    server.stop()
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        for n in range(3):
            assert memory_of(await chat.say(f"u{n}")) == (200, "degraded", "store_error")
    server.start()
    async with running(settings), store_at(server.url) as store:
        found = await history_with(store, 3, RETURN)
    assert contents(found.said, "user") == ["u0", "u1", "u2"]


async def test_with_neither_store_nor_spool_the_chat_goes_on_and_losses_are_counted(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    settings = settings_for(tmp_path, up.url, store__url=server.url, spool__path=str(taken))
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        assert memory_of(await chat.say("u0")) == (200, "empty", None)
        server.stop()
        for n in range(1, 4):
            assert memory_of(await chat.say(f"u{n}")) == (200, "degraded", "store_error")
        assert metric(proxy, "memory_lost_total") == 3
        assert metric(proxy, "memory_commits_total") == 1
        server.start()

        async def remembers() -> bool:
            return memory_of(await chat.say("again"))[1] == "applied"

        await eventually(remembers, RETURN)
        assert seen_by(up)[0] == "u0"


async def test_where_memory_must_not_fail_the_upstream_is_not_called(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__on_failure="closed")
    server.stop()
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        for _ in range(2):
            refused = await chat.say("u0")
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "memory_unavailable"
        assert up.requests == []
        server.start()

        async def works() -> bool:
            return (await chat.say("u1")).status_code == 200

        await eventually(works, RETURN)
        assert seen_by(up) == ["u1"]


async def test_what_another_user_said_meanwhile_is_quarantined_and_counted(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url)
    server.stop()
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        for text, user in [("mine", "kai"), ("yours", "eve"), ("mine too", "kai")]:
            assert memory_of(await chat.say(text, x_user_id=user))[:2] == (200, "degraded")
        server.start()
        async with store_at(server.url) as store:
            await history_with(store, 2, RETURN)

        async def counted() -> bool:
            return metric(proxy, "memory_quarantined_total") == 1

        await eventually(counted, RETURN)
        assert (await chat.say("hello", x_user_id="eve")).status_code == 403
        assert memory_of(await chat.say("hello", x_user_id="kai"))[:2] == (200, "applied")
        assert seen_by(up) == ["mine", "mine too", "hello"]


LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
db.execute("COMMIT")
"""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process has the database to itself."""
    command = [sys.executable, "-c", LOCK, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield
            process.communicate("", timeout=PATIENCE)
        finally:
            process.kill()


async def test_a_database_locked_for_long_is_read_and_written_later(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = 1.0
    settings = settings_for(tmp_path, up.url, store__commit_timeout=limit)
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        await chat.say("u0")
        costs = []
        with locked(tmp_path / "memory.db"):
            for n in range(1, 5):
                expected = None if n == 1 else "spooled"
                assert memory_of(await chat.say(f"u{n}")) == (200, "applied", expected)
                assert seen_by(up) == [f"u{k}" for k in range(n + 1)]
                costs.append(chat.seconds)
        async with store_at(settings.store.url) as store:
            found = await history_with(store, 5, RETURN)
            assert contents(found.said, "user") == [f"u{n}" for n in range(5)]
            assert found == await recorded(store, "s")
        assert costs[0] < limit + MARGIN
        assert max(costs[1:]) < limit
    with capsys.disabled():
        print(
            f"\nSQLite locked: the first commit waits {costs[0] * 1000:.0f} ms, the others"
            f" {statistics.median(costs[1:]) * 1000:.0f} ms"
        )


async def test_the_spool_belongs_to_its_store(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    """What was meant for one store never goes to another."""
    settings = settings_for(tmp_path, up.url, store__url=server.url)
    server.stop()
    async with running(settings) as proxy, chatting(proxy.url) as chat:
        await chat.say("for the first")
    with servers.standalone() as another:
        settings = settings_for(tmp_path, up.url, store__url=another.url)
        async with running(settings) as proxy, chatting(proxy.url) as chat:
            assert memory_of(await chat.say("for the second")) == (200, "empty", None)
            async with store_at(another.url) as store:
                found = await history_with(store, 1, RETURN)
        assert contents(found.said, "user") == ["for the second"]


async def test_what_waits_for_an_address_goes_to_another_once_it_is_given_its_name(
    server: Server, up: ScriptedUpstream, tmp_path: Path
) -> None:
    """A replica is promoted by hand, and the documentation followed."""
    settings = settings_for(tmp_path, up.url, store__url=server.url)
    follow = {"replicaof": f"{servers.HOST} {server.port}", "repl_diskless_sync_delay": "0"}
    with servers.standalone(**follow) as replica:
        async with running(settings) as proxy, chatting(proxy.url) as chat:
            await chat.say("u0")
            servers.wait_until(lambda: replica.ask("DBSIZE") == server.ask("DBSIZE"), "replication")
            server.stop(kill=True)
            await chat.say("u1")
        replica.ask("REPLICAOF", "NO", "ONE")
        (told,) = re.findall(r'`sqlite3 \S+ "(UPDATE .*)"`', OPERATIONS.read_text("utf-8"))
        for host, at in (("OLD:6379", server.address), ("NEW:6379", replica.address)):
            told = told.replace(host, at)
        with closing(sqlite3.connect(settings.spool.path)) as db, db:
            db.execute(told)
        settings = settings_for(tmp_path, up.url, store__url=replica.url)
        async with running(settings), store_at(replica.url) as store:
            found = await history_with(store, 2, RETURN)
        assert contents(found.said, "user") == ["u0", "u1"]
