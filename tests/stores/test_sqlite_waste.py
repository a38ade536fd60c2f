"""What is removed bit by bit: nobody sees it meanwhile, nobody waits long, nothing of it stays."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from proxy.memory.model import LoadOptions, SessionKey
from proxy.recall.index import Owner, owner_of
from proxy.stores.sqlite import file, rows, waste
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.batches import batch
from tests.support.store.commits import chat, draft, record
from tests.support.store.files import opened
from tests.support.waiting import PATIENCE, eventually

ALL = LoadOptions(profile="default", whole=True)
KEY, OTHER = SessionKey("tenant", "session"), SessionKey("other", "session")
EXCHANGES = 5
TABLES = ("sessions", "messages", "exchanges", "windows", "keys", "summaries")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memory.db"


@pytest.fixture
async def store(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SQLiteStore]:
    """One to which two rows are many."""
    monkeypatch.setattr(rows, "REMOVED_ROWS", 2)
    async with opened(path, clock) as store:
        yield store


def left(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        counts = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in TABLES
        }
    return {name: count for name, count in counts.items() if count}


def indexes_left(path: Path) -> int:
    """What there is of indexes that are forgotten."""
    with closing(sqlite3.connect(path)) as connection:
        count = "SELECT (SELECT count(*) FROM waste) + (SELECT count(*) FROM postings)"
        return int(connection.execute(count).fetchone()[0])


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """To be filled by the steps of what takes many."""
    steps: list[bool] = []

    def sweep(connection: sqlite3.Connection) -> bool:
        steps.append(waste.sweep(connection))
        return steps[-1]

    monkeypatch.setattr(file, "sweep", sweep)
    return steps


async def grown(store: SQLiteStore, ttl: int = 0) -> None:
    for n in range(EXCHANGES):
        secret = msgspec.structs.replace(draft(f"x{n}", 0), body=b'{"content":"secret"}')
        commit = record(f"x{n}", secret, draft(f"x{n}", 1, "assistant"), user="kai")
        await store.commit(KEY, msgspec.structs.replace(commit, ttl=ttl, idempotency_key=f"k{n}"))


async def test_of_a_deleted_session_nothing_is_left_however_large_it_is(
    store: SQLiteStore, path: Path
) -> None:
    await grown(store)
    assert left(path)["messages"] == 2 * EXCHANGES
    assert await store.delete(KEY)
    assert left(path) == {}
    assert not any(b"secret" in each.read_bytes() for each in path.parent.iterdir())
    assert not await store.delete(KEY)


async def test_while_a_session_is_removed_others_commit_and_nobody_sees_the_rest(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await grown(store)
    steps = removals(monkeypatch)
    with pytest.raises(Killed):
        steps.fail_at(2)
        await store.delete(KEY)
    assert 0 < left(path)["messages"] < 2 * EXCHANGES
    assert await store.session(KEY) is None and (await store.load(KEY, ALL)).messages == 0
    assert await store.tenants() == [] and await store.people("tenant") == []
    assert await store.move("tenant", "new") == 0
    await store.commit(KEY, chat("y"))
    assert (await store.load(KEY, ALL)).messages == 2
    for n in range(EXCHANGES):
        await store.commit(OTHER, chat(f"z{n}"))
    assert left(path) == {"sessions": 2, "messages": 12, "exchanges": 6}


@pytest.mark.parametrize("again", [False, True], ids=["left alone", "begun again"])
async def test_an_expired_session_is_removed_by_the_commits_of_others_a_part_each(
    store: SQLiteStore, path: Path, clock: Clock, again: bool
) -> None:
    await grown(store, ttl=60)
    clock.now += 61
    if again:
        await store.commit(KEY, chat("again"))
        assert (await store.load(KEY, ALL)).messages == 2
    before = left(path)["messages"]
    for n in range(2 * EXCHANGES):
        await store.commit(OTHER, chat(f"z{n}"))
        now = left(path)["messages"] - 2 * (n + 1)
        assert now >= before - 2 * waste.PURGED_AT_ONCE
        before = now
    assert before == (2 if again else 0)
    assert left(path)["sessions"] == (2 if again else 1)


async def test_of_a_person_who_is_cleared_nothing_that_has_expired_is_left(
    store: SQLiteStore, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waste, "CLEARED_AT_ONCE", 1)
    for n in range(3):
        await store.commit(SessionKey("tenant", f"s{n}"), chat(f"y{n}", user="kai", ttl=60))
    await grown(store, ttl=60)
    await store.commit(OTHER, chat("z", user="kai", ttl=60))
    await store.commit(SessionKey("tenant", "eves"), chat("e", user="eve", ttl=60))
    clock.now += 61
    await store.clear("tenant", "kai")
    assert left(path) == {"sessions": 2, "messages": 4, "exchanges": 2}
    assert not any(b"secret" in each.read_bytes() for each in path.parent.iterdir())


async def test_of_many_small_sessions_many_are_removed_in_one_step(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waste, "REMOVE_SECONDS", PATIENCE)
    async with opened(path, clock) as store:
        for n in range(30):
            await store.commit(SessionKey("tenant", f"s{n}"), chat(f"y{n}", user="kai", ttl=60))
        clock.now += 61
        steps = counted(monkeypatch)
        await store.clear("tenant", "kai")
        assert left(path) == {}
        assert len(steps) < 5


async def test_indexes_go_as_fast_as_the_sessions_that_they_are_of(
    path: Path, clock: Clock
) -> None:
    async with opened(path, clock) as store:
        for n in range(30):
            key = SessionKey("tenant", f"s{n}")
            await store.commit(key, chat(f"y{n}", ttl=60))
            await store.write(owner_of(key, None), batch(0, [["a", "b", "c"]], ttl=60))
        clock.now += 61
        for n in range(16):
            await store.commit(OTHER, chat(f"z{n}"))
        assert indexes_left(path) == 0


async def test_of_many_small_indexes_many_are_removed_in_one_step(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, clock) as store:
        for n in range(30):
            await store.write(Owner("tenant", user=f"u{n}"), batch(0, [["a", "b", "c"]]))
        steps = counted(monkeypatch)
        await store.move("tenant", "new")
        assert indexes_left(path) == 0
        assert len(steps) < 5


async def test_a_move_removes_of_others_only_what_has_expired_in_its_way(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    there = SessionKey("new", KEY.session)
    await store.commit(KEY, chat("x"))
    for key in (there, OTHER):
        await store.commit(key, chat("y", ttl=60))
    clock.now += 61
    assert await store.move("tenant", "new") == 1
    moved = await store.exchange(there, "x")
    assert moved is not None and await store.exchange(there, "y") is None
    assert left(path) == {"sessions": 2, "messages": 4, "exchanges": 2}


async def test_the_file_is_free_between_two_steps_of_an_erasure_for_as_long_as_one_takes(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[float, float]] = []

    def sweep(connection: sqlite3.Connection) -> bool:
        began = time.monotonic()
        time.sleep(0.01)  # work
        more = waste.sweep(connection)
        steps.append((began, time.monotonic()))
        return more

    monkeypatch.setattr(file, "sweep", sweep)
    await grown(store)
    assert await store.delete(KEY)
    assert len(steps) > 3
    for (began, ended), (next_began, _) in pairwise(steps):
        assert next_began - ended >= ended - began


async def test_what_has_expired_goes_also_where_nobody_writes(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "REMOVED_ROWS", 2)
    monkeypatch.setattr(file, "TIDY_INTERVAL", 0.02)
    monkeypatch.setattr(file, "TIDY_PAUSE", 0.001)
    async with opened(path, clock) as store:
        await grown(store, ttl=60)
        await asyncio.sleep(0.1)
        assert left(path)["messages"] == 2 * EXCHANGES
        clock.now += 61

        async def gone() -> bool:
            return left(path) == {}

        await eventually(gone)


async def test_long_messages_are_many_too(
    store: SQLiteStore, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "REMOVED_ROWS", 1000)
    monkeypatch.setattr(rows, "REMOVED_BYTES", 1)
    await grown(store, ttl=60)
    clock.now += 61
    await store.commit(OTHER, chat("z"))
    assert left(path)["messages"] == 2 * EXCHANGES - 1 + 2


class Killed(Exception):
    pass


class Removals:
    def __init__(self, remove: Callable[[sqlite3.Connection, int], bool]) -> None:
        self._remove, self._calls, self._fails_at = remove, 0, 0

    def fail_at(self, call: int) -> None:
        self._fails_at = call

    def __call__(self, connection: sqlite3.Connection, session: int) -> bool:
        self._calls += 1
        if self._calls == self._fails_at:
            raise Killed
        return self._remove(connection, session)


def removals(monkeypatch: pytest.MonkeyPatch) -> Removals:
    """All but the first: what is left of what was removed."""
    counted = Removals(rows.remove)
    monkeypatch.setattr(waste, "remove", counted)
    return counted
