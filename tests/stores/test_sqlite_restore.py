"""A large session is put back into SQLite in steps, and is there whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from proxy.memory.archive import SessionArchive
from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull, StoreTimeout
from proxy.stores.sqlite import archive as sqlite_archive
from proxy.stores.sqlite import marks as sqlite_marks
from proxy.stores.sqlite import restore as sqlite_restore
from proxy.stores.sqlite import waste as sqlite_waste
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.archives import take_out
from tests.support.store.commits import chat
from tests.support.store.files import opened

KEY = SessionKey("tenant", "session")
TABLES = ("sessions", "messages", "exchanges", "windows", "summaries")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SQLiteStore]:
    monkeypatch.setattr(sqlite_restore, "STEP_MESSAGES", 2)
    async with opened(path, clock) as store:
        yield store


async def taken_out(store: SQLiteStore) -> SessionArchive:
    """A session of ten messages, that is not there any more."""
    for n in range(5):
        await store.commit(KEY, chat(f"x{n}", 1000.0 + n, user="kai", ttl=3600))
    archived = await take_out(store, KEY)
    await store.delete(KEY)
    return archived


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)


class Steps:
    """Does something in the thread of the store before a step."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        self.tenants: list[str] = []
        self.fails_at = self.expires_at = self.erased_at = self.late_at = -1
        self._bring = sqlite_restore.write_step
        patch.setattr(sqlite_restore, "write_step", self)

    def __call__(
        self, brought: sqlite_restore.StagedSession, step: int, connection: sqlite3.Connection
    ) -> None:
        self.taken += 1
        self.tenants += sqlite_archive.tenants(connection, 0.0)
        if step == self.fails_at:
            raise sqlite3.OperationalError("disk I/O error")
        if step == self.expires_at:
            sqlite_waste.purge(connection, 1e12)
        if step == self.erased_at:
            sqlite_restore.cancel_all(connection, "tenant", "kai")
        self._bring(brought, step, connection)
        self._bring(brought, step, connection)  # as after one that was late
        if step == self.late_at:
            self.late_at = -1
            raise StoreTimeout


async def test_long_messages_take_steps_of_their_own(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_restore, "STEP_BYTES", 1)
    archived, steps = await taken_out(store), Steps(monkeypatch)
    assert await store.restore(KEY, archived)
    assert await take_out(store, KEY) == archived
    assert steps.taken == 10


async def test_others_write_between_the_steps_and_nobody_sees_what_is_not_complete(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, steps = await taken_out(store), Steps(monkeypatch)
    assert await store.restore(KEY, archived)
    assert await take_out(store, KEY) == archived
    assert (steps.taken, steps.tenants) == (5, [])
    assert not await store.restore(KEY, archived)


@pytest.mark.parametrize("at_once", [2, 100])
async def test_what_is_brought_leaves_room_for_turns_and_removing(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(sqlite_restore, "STEP_MESSAGES", at_once)
    archived = await taken_out(store)
    before = rows(path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2048))
    with pytest.raises(StoreFull, match="2 KiB left"):
        await store.restore(KEY, archived)
    assert rows(path) == before
    assert await store.commit(KEY, chat("x", 2000.0)) == "recorded"
    assert await store.delete(KEY)


async def test_a_step_that_is_late_is_tried_again_and_written_once(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, steps = await taken_out(store), Steps(monkeypatch)
    steps.late_at = 2
    assert await store.restore(KEY, archived)
    assert (steps.taken, await take_out(store, KEY)) == (6, archived)


async def test_one_that_cannot_be_completed_leaves_nothing(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, steps = await taken_out(store), Steps(monkeypatch)
    steps.fails_at = 3
    with pytest.raises(StoreError):
        await store.restore(KEY, archived)
    assert (steps.taken, rows(path)) == (4, 0)


@pytest.mark.parametrize("erased", ["the person", "the session", "somebody else"])
async def test_what_a_process_that_was_killed_had_brought_goes_with_whose_it_is(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch, erased: str
) -> None:
    archived = await taken_out(store)
    with monkeypatch.context() as patch:
        Steps(patch).fails_at = 3
        patch.setattr(sqlite_restore, "discard", lambda connection, name: None)
        with pytest.raises(StoreError):
            await store.restore(KEY, archived)
    brought = rows(path)
    assert brought > 6
    if erased == "the person":
        await store.clear("tenant", "kai")
    elif erased == "the session":
        assert not await store.delete(KEY)
    else:
        await store.clear("tenant", "eve")
        await store.clear("other", "kai")
        await store.delete(SessionKey("tenant", "another"))
        await store.delete(SessionKey("other", "session"))
    assert rows(path) == (brought if erased == "somebody else" else 0)
    assert await store.restore(KEY, archived)
    assert await take_out(store, KEY) == archived


async def test_what_is_erased_while_it_is_brought_does_not_become_a_session(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, steps = await taken_out(store), Steps(monkeypatch)
    steps.erased_at = 2
    with pytest.raises(StoreError):
        await store.restore(KEY, archived)
    assert rows(path) == 0


async def test_one_that_expires_meanwhile_leaves_nothing(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, steps = await taken_out(store), Steps(monkeypatch)
    steps.expires_at = 2
    with pytest.raises(StoreError, match="expired"):
        await store.restore(KEY, archived)
    assert rows(path) == 0


async def test_one_whose_user_is_erased_meanwhile_leaves_nothing_in_the_files(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived, settle = await taken_out(store), sqlite_restore.publish

    def late(
        brought: sqlite_restore.StagedSession,
        key: SessionKey,
        now: float,
        connection: sqlite3.Connection,
    ) -> bool:
        sqlite_marks.mark(connection, [Subject(key.tenant, "kai")], now)
        return settle(brought, key, now, connection)

    monkeypatch.setattr(sqlite_restore, "publish", late)
    assert not await store.restore(KEY, archived, 1.0)
    assert rows(path) == 0
    said = archived.lines[0].body
    assert not [name for name in path.parent.iterdir() if said in name.read_bytes()]


async def test_a_session_that_begins_meanwhile_stays(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived = await taken_out(store)
    settle = sqlite_restore.publish

    def late(
        brought: sqlite_restore.StagedSession,
        key: SessionKey,
        now: float,
        connection: sqlite3.Connection,
    ) -> bool:
        connection.execute(
            "INSERT INTO sessions (tenant, session, system_tokens, next, messages, tokens, ttl,"
            " created_at, last_active_at) VALUES (?, ?, 0, 1, 0, 0, 0, 1, 1)",
            KEY,
        )
        return settle(brought, key, now, connection)

    monkeypatch.setattr(sqlite_restore, "publish", late)
    assert not await store.restore(KEY, archived)
    assert rows(path) == 1
