"""What only the SQLite store promises of its indexes: nothing of them stays in the file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from proxy.memory.archive import Details
from proxy.memory.model import LoadOptions, SessionKey
from proxy.memory.store import StoreFull
from proxy.recall.index import IndexLookup, Owner, owner_of
from proxy.stores.sqlite.index import reading
from proxy.stores.sqlite.schema import MIGRATIONS, connect, migrate
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.archives import revise
from tests.support.store.batches import batch, term
from tests.support.store.commits import chat
from tests.support.store.files import opened
from tests.support.waiting import PATIENCE

KEY = SessionKey("tenant", "session")
KAI = Owner("tenant", user="kai")
EVE = Owner("tenant", user="eve")
TABLES = ("owners", "marks", "passages", "postings", "vectors", "waste")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with opened(path, clock) as store:
        yield store


def counts(path: Path) -> list[int]:
    """The rows of each table of the indexes."""
    with closing(sqlite3.connect(path)) as connection:
        queries = (f"SELECT count(*) FROM {table}" for table in TABLES)
        return [int(connection.execute(query).fetchone()[0]) for query in queries]


async def test_a_file_of_the_first_version_gets_indexes(store: SQLiteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:1])
        connection.execute(
            "INSERT INTO sessions (tenant, session, system_tokens, next, messages, tokens, ttl,"
            " created_at, last_active_at) VALUES ('tenant', 'session', 0, 1, 0, 0, 0, 1, 1)"
        )
    assert (await store.load(KEY, LoadOptions(profile="default"))).exists
    assert await store.write(KAI, batch(0, [["a"]]))


@pytest.mark.parametrize(
    ("user", "before", "ttl", "lives"),
    [
        *[(user, 1_000, 0, True) for user in ("kai", None)],
        *[(user, 1_000, 5_000, True) for user in ("kai", None)],
        *[(user, 1_000, 2_000, False) for user in ("kai", None)],
        ("kai", 5_000, 2_000, True),
        (None, 5_000, 2_000, False),
        ("kai", 0, 2_000, True),
        (None, 0, 2_000, False),
    ],
)
async def test_an_index_lives_as_long_as_a_session_is_to_live_now(
    store: SQLiteStore, clock: Clock, user: str | None, before: int, ttl: int, lives: bool
) -> None:
    """A person's not shorter than it did, as they may have other sessions."""
    owner = owner_of(KEY, user)
    await store.commit(KEY, chat("x1", user=user, ttl=before))
    await store.write(owner, batch(0, [["a"]], ttl=before))
    assert await revise(store, KEY, details=Details(ttl=ttl))
    clock.now += 3_000
    assert bool((await store.lookup(owner, (), 0)).revision) is lives


async def test_nothing_of_a_dropped_index_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    secret = batch(0, [range(3000), ["a"]], session="secret-name")
    for owner in (KAI, EVE):
        await store.write(owner, secret)
        await store.put_vectors(owner, "model", 100, dict.fromkeys(range(400), b"secret-text" * 9))
    await store.drop(KAI)
    assert counts(path) == [1, 1, 2, 3001, 3, 0]
    await store.drop(EVE)
    assert counts(path) == [0] * len(TABLES)
    hidden = (term(2999), b"secret-name", b"secret-text")
    for file in path.parent.iterdir():
        assert not [text for text in hidden if text in file.read_bytes()]


async def test_deleting_a_session_removes_its_index(store: SQLiteStore, path: Path) -> None:
    await store.commit(KEY, chat("x1"))
    await store.write(Owner("tenant", session="session"), batch(0, [range(3000)]))
    await store.delete(KEY)
    assert counts(path) == [0] * len(TABLES)


async def test_an_expired_index_is_removed_bit_by_bit_by_later_commits(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    await store.write(KAI, batch(0, [range(250)], ttl=10))
    await store.write(EVE, batch(0, [["a"]]))
    await store.commit(KEY, chat("x0"))
    assert counts(path)[3] == 251
    clock.now += 10
    left = []
    for n in range(1, 8):
        await store.commit(KEY, chat(f"x{n}"))
        left.append(counts(path)[3])
    assert left[:3] == [151, 51, 1]
    assert counts(path) == [1, 1, 1, 1, 0, 0]
    assert (await store.lookup(EVE, [], 1)).revision == 1


async def test_what_is_left_of_an_expired_index_is_no_part_of_its_successor(
    store: SQLiteStore, clock: Clock
) -> None:
    await store.write(KAI, batch(0, [["a", "b"]], ttl=10))
    clock.now += 10
    assert await store.write(KAI, batch(0, [["b"]], ttl=10))
    counted = [
        found.count for found in (await store.lookup(KAI, [term("a"), term("b")], 9)).postings
    ]
    assert counted == [0, 1]


async def test_what_is_indexed_waits_where_the_disk_is_nearly_full(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that can be recorded is worth more.  What an erasure changes of an index goes on."""
    assert await store.write(KAI, batch(0, [["a"]]))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2048))
    with pytest.raises(StoreFull, match="2 KiB left"):
        await store.write(KAI, batch(1, [["a"]], first=1))
    assert await store.write(KAI, batch(1, [], first=1))


async def test_postings_stay_whole_when_two_stores_write_in_turns(
    store: SQLiteStore, path: Path
) -> None:
    other = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await other.open()
    for revision in range(40):
        writer = (store, other)[revision % 2]
        assert await writer.write(KAI, batch(revision, [["a"]] * 9, first=9 * revision))
    assert (await store.lookup(KAI, [term("a")], 1)).postings[0].count == 360
    await other.close()
    assert await store.lookup(EVE, [], 1) == IndexLookup()


def test_looking_for_rows_begins_with_those_asked_for(path: Path) -> None:
    """Else each of an owner's passages would be compared with the whole list."""
    query = "EXPLAIN QUERY PLAN " + reading.ROWS
    with closing(connect(path, 1)) as connection:
        plan = [row[3] for row in connection.execute(query, ("[1, 2]", 1))]
    assert "asked" in plan[0] and "owner=? AND number=?" in plan[1]
