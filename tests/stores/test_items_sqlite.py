"""What only the SQLite store promises of items: nothing stays in the file, no look is long."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from proxy.memory.items import ItemOwner, OwnedPlace, Place
from proxy.memory.model import SessionKey
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.stores.sqlite import items as sqlite_items
from proxy.stores.sqlite.schema import MIGRATIONS, connect, migrate
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.commits import chat
from tests.support.store.files import opened
from tests.support.store.shelves import gone, places, put, value

KAI = ItemOwner("tenant", "kai")
SECRET = b'{"text":"secret-text %b"}' % (b"x" * 9000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with opened(path, clock) as store:
        yield store


def holds(path: Path, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in path.parent.iterdir())


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])


async def test_nothing_of_deleted_items_stays_in_the_files(store: SQLiteStore, path: Path) -> None:
    await store.change_items(KAI, [put(("a", f"{n}"), "secret-key", SECRET) for n in range(600)])
    assert await places(store, KAI, ("a",))
    await store.change_items(KAI, [put(("b",), "secret-key", SECRET)])
    assert holds(path, b"secret-text") and holds(path, b"secret-key")
    assert await store.drop_items(KAI, ("a",)) == 600
    assert await store.change_items(KAI, [gone(("b",), "secret-key"), put(("c",), "k")])
    assert not holds(path, b"secret")
    assert path.with_name("memory.db-wal").stat().st_size == 0


async def test_what_has_expired_is_removed_by_later_changes_and_commits(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    over = [put(("a",), f"{n:03d}", expires_at=clock.now + 1) for n in range(25)]
    await store.change_items(KAI, [*over, put(("a",), "k")])
    clock.now += 2
    assert len(await places(store, KAI)) == 1 and rows(path) == 26
    await store.change_items(ItemOwner("another"), [put(("a",), "k")])
    assert rows(path) == 26 + 1 - sqlite_items.PURGED_AT_ONCE
    for n in range(10):
        await store.commit(SessionKey("tenant", "s"), chat(f"x{n}"))
    assert rows(path) == 2


async def test_an_old_file_gets_items_and_usage(store: SQLiteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:2])
    assert await store.change_items(KAI, [put(("a",), "k", b"1")])
    assert await value(store, KAI, ("a",), "k") == b"1"
    await store.add_usage("tenant", UsageKey("2026-01-01", "facts"), UsageTotals(calls=1))
    assert await store.usage_of_days("tenant", ["2026-01-01"])


async def test_a_move_takes_items_and_usage_in_one_transaction(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(SessionKey("tenant", "s"), chat("x1"))
    await store.change_items(KAI, [put(("a",), "k")])
    await store.add_usage("tenant", UsageKey("2026-01-01", "facts"), UsageTotals(calls=1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        # The last step fails.
        other.execute(
            "CREATE TRIGGER stop BEFORE DELETE ON usage BEGIN SELECT RAISE(ABORT, 'stopped'); END"
        )
        with pytest.raises(Exception, match="stopped"):
            await store.move("tenant", "new")
        assert await places(store, KAI) and not await places(store, ItemOwner("new", "kai"))
        assert await store.session(SessionKey("tenant", "s"))
        other.execute("DROP TRIGGER stop")
    assert await store.move("tenant", "new") == 1
    assert await places(store, ItemOwner("new", "kai")) and not await places(store, KAI)


@pytest.fixture
def statements(path: Path) -> Iterable[list[str]]:
    """What is run on a connection, with its values in place."""
    run: list[str] = []
    with closing(connect(path, 5)) as connection:
        changes = [put(("a", f"{n % 100:02d}"), f"{n:05d}") for n in range(10_000)]
        sqlite_items.change_items(connection, 1.0, KAI, changes)
        connection.execute("ANALYZE")
        connection.set_trace_callback(run.append)
        sqlite_items.items(connection, 1.0, KAI, ("a", "07"), None, 10)
        sqlite_items.items_of(connection, 1.0, [OwnedPlace(KAI, Place(("a", "07"), "00007"))])
        sqlite_items.namespaces(connection, 1.0, KAI, ("a",), ("a", "20"), 30)
        sqlite_items.change_items(connection, 1.0, KAI, [put(("a",), "k", after=0)])
        sqlite_items.drop_some(connection, 1.0, KAI, ("a", "08"))
        connection.set_trace_callback(None)
        yield list(dict.fromkeys(run))  # one that has triggers is told for each row


def test_of_ten_thousand_items_only_those_asked_for_are_looked_at(
    statements: list[str], path: Path
) -> None:
    assert 30 < len(statements) < 50  # a step for each namespace that is asked for
    with closing(connect(path, 5)) as connection:
        for statement in set(statements):
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
            steps = [step for *_, step in plan if step.startswith(("SCAN", "SEARCH"))]
            assert all(step.startswith("SEARCH") for step in steps), (statement, steps)
            assert not any("TEMP B-TREE" in step for *_, step in plan), (statement, plan)
