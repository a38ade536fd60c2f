"""memory://: SQLite's database in RAM, of one process and of one store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.memory.model import LoadOptions, SessionKey
from proxy.memory.store import StoreError
from proxy.stores.sqlite.store import SQLiteMemory
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

ALL = LoadOptions(profile="default", whole=True)
KEY = SessionKey("tenant", "session")


def made() -> SQLiteMemory:
    return SQLiteMemory(timeout=PATIENCE, commit_timeout=PATIENCE)


@pytest.fixture
async def store() -> AsyncIterator[SQLiteMemory]:
    store = made()
    await store.open()
    yield store
    await store.close()


async def messages(store: SQLiteMemory) -> int:
    return (await store.load(KEY, ALL)).messages


def open_files() -> set[str]:
    folder = Path("/proc/self/fd")
    links = [os.readlink(each) for each in folder.iterdir() if each.is_symlink()]
    return {link for link in links if link.startswith("/") and not Path(link).is_char_device()}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux tells which files are open")
async def test_it_has_no_file(store: SQLiteMemory) -> None:
    before = open_files()
    for number in range(20):
        await store.commit(KEY, chat(f"x{number}", system=b"[%s]" % (b"1" * 1_000_000)))
    # A sort that does not fit into SQLite's cache.
    await store._list(lambda c: c.execute("SELECT body FROM messages ORDER BY body").fetchall())
    assert open_files() <= before


async def test_two_of_them_share_nothing(store: SQLiteMemory) -> None:
    await store.commit(KEY, chat("x1"))
    other = made()
    await other.open()
    assert await messages(other) == 0
    await other.close()
    assert await messages(store) == 2


async def test_it_is_gone_when_it_is_closed(store: SQLiteMemory) -> None:
    await store.commit(KEY, chat("x1"))
    await store.close()
    with pytest.raises(StoreError, match="not open"):
        await messages(store)
    await store.open()
    assert await messages(store) == 0


async def test_a_patient_one_is_the_same(store: SQLiteMemory) -> None:
    patient = store.with_long_timeout(PATIENCE)
    await patient.open()
    await patient.commit(KEY, chat("x1"))
    await patient.close()
    assert await messages(store) == 2


async def test_a_transaction_that_fails_takes_nothing_along(store: SQLiteMemory) -> None:
    await store.commit(KEY, chat("x1"))
    with pytest.raises(StoreError):
        await store._write(lambda c: c.execute("ROLLBACK").fetchone())
    assert await messages(store) == 2


async def test_it_is_never_in_danger(store: SQLiteMemory) -> None:
    await store.ping()
    await store.peek(KEY)
    assert await store.warnings() == ()
