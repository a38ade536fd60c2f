"""A turn that goes on asks the SQLite file nothing, and sees whatever anybody has written."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.memory.items import Change, Item, ItemOwner, OwnedPlace, Place
from proxy.memory.model import Amendment, LoadOptions, SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import IndexBatch, IndexLookup, IndexMark, Owner
from proxy.stores.sqlite import read as sqlite_read
from proxy.stores.sqlite import write as sqlite_write
from proxy.stores.sqlite.caches.heads import IndexHeadCache
from proxy.stores.sqlite.caches.items import ITEM_BYTES, ItemCache
from proxy.stores.sqlite.caches.wal_index import HEADER, acquire, release
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.store.archives import revise
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

NEAR = LoadOptions(profile="default", max_messages=6)
KEY, ANOTHER = SessionKey("tenant", "session"), SessionKey("tenant", "another")
OWNER = Owner("tenant", session="session")
PLACES = {"session": {1, 2, 3}}
SHELF, CARD = ItemOwner("tenant", "kai"), Place(("a",), "card")
AT = OwnedPlace(SHELF, CARD)

Read = Callable[[SQLiteStore], Awaitable[object]]

READS: dict[str, Read] = {
    "load": lambda store: store.load(KEY, NEAR),
    "passages": lambda store: store.passages("tenant", None, PLACES),
    "lookup": lambda store: store.lookup(OWNER, (), 0, session="session"),
    "items": lambda store: store.items_at(SHELF, [CARD, Place(("b",), "none")]),
}


def opened(path: Path) -> SQLiteStore:
    return SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    """With three turns, an index, and all of it known."""
    store = opened(tmp_path / "memory.db")
    await store.open()
    for n in range(3):
        await store.commit(KEY, chat(f"x{n}"))
    await store.write(OWNER, batch(0))
    await store.change_items(SHELF, [card(b'{"a":1}')])
    for read in READS.values():
        await read(store)
    await store.commit(KEY, chat("x3"))
    yield store
    await store.close()


@pytest.fixture
async def other(tmp_path: Path, store: SQLiteStore) -> AsyncIterator[SQLiteStore]:
    """Of another process."""
    other = opened(tmp_path / "memory.db")
    await other.open()
    yield other
    await other.close()


def card(value: bytes, expires_at: float | None = None) -> Change:
    namespace, key = CARD
    return Change(namespace=namespace, key=key, value=value, expires_at=expires_at)


def item(value: bytes) -> Item:
    namespace, key = CARD
    raw = msgspec.Raw(value)
    return Item(namespace=namespace, key=key, value=raw, version=1, created_at=1, updated_at=1)


def batch(revision: int, seq: int = 1) -> IndexBatch:
    mark = IndexMark(1, seq, 0)
    return IndexBatch(revision=revision, state=b"[%d]" % revision, session="session", mark=mark)


def unread(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing can be read."""

    def refused(*_: object) -> None:
        raise AssertionError("the file was read")

    monkeypatch.setattr(store, "_run_in", refused)


@pytest.mark.parametrize("read", READS)
async def test_what_is_known_is_not_read_again(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    unread(store, monkeypatch)
    await READS[read](store)


async def test_what_this_process_writes_is_known(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(OWNER, batch(1, seq=7))
    await store.commit(ANOTHER, chat("z0"))
    await store.commit(KEY, chat("x4"))
    unread(store, monkeypatch)
    snapshot = await store.load(KEY, NEAR)
    assert snapshot.last is not None and snapshot.last.id == "x4"
    assert await store.lookup(OWNER, (), 0, session="session") == IndexLookup(
        2, b"[1]", (), IndexMark(1, 7, 0)
    )


async def test_an_item_that_is_put_makes_nothing_else_unknown(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        await store.change_items(ItemOwner("tenant", "eve"), [card(b'{"a":%d}' % n)])
    with monkeypatch.context() as patch:
        unread(store, patch)
        for read in READS.values():
            await read(store)
    assert await store.change_items(SHELF, [card(b'{"a":2}')])
    assert bytes((await store.items_at(SHELF, [CARD]))[CARD].value) == b'{"a":2}'


async def test_an_item_that_is_put_while_it_is_read_is_seen(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, was_read = store._read_items, asyncio.Event()
    written = asyncio.Event()

    async def late(places: Sequence[OwnedPlace]) -> object:
        found = await read(places)
        was_read.set()
        await written.wait()
        return found

    await store.change_items(SHELF, [card(b'{"a":2}')])
    monkeypatch.setattr(store, "_read_items", late)
    reading = asyncio.create_task(store.items_at(SHELF, [CARD]))
    await was_read.wait()
    await store.change_items(SHELF, [card(b'{"a":3}')])
    written.set()
    assert bytes((await reading)[CARD].value) == b'{"a":2}'
    assert bytes((await store.items_at(SHELF, [CARD]))[CARD].value) == b'{"a":3}'


async def test_an_item_whose_writer_has_gone_is_seen(store: SQLiteStore) -> None:
    await store.items_at(SHELF, [CARD])
    begun, loop, go_on = asyncio.Event(), asyncio.get_running_loop(), threading.Event()

    def held(connection: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(PATIENCE)

    first = asyncio.create_task(store._write_large(held))
    await begun.wait()
    late = asyncio.create_task(store.change_items(SHELF, [card(b'{"a":2}')]))
    await asyncio.sleep(0)
    go_on.set()
    await first
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    await store.items_at(SHELF, [CARD])
    await store._active_writer.run(lambda connection: None, PATIENCE, keeps_caches=True)
    seen = await store.items_at(SHELF, [CARD])
    another = opened(store._path)
    await another.open()
    assert seen == await another.items_at(SHELF, [CARD])
    await another.close()


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("once_more", [False, True], ids=["at once", "after a write of its own"])
async def test_what_another_process_writes_is_seen(
    store: SQLiteStore, other: SQLiteStore, read: str, once_more: bool
) -> None:
    before = await READS[read](store)
    await revise(other, KEY, superseded=("x0.0",))
    await other.drop_session(OWNER, "session")
    await other.change_items(SHELF, [card(b'{"a":2}')])
    if once_more:
        await store.commit(ANOTHER, chat("z0"))
    seen = await READS[read](store)
    assert seen == await READS[read](other) != before


async def test_a_turn_that_is_taken_back_is_recalled_no_more(store: SQLiteStore) -> None:
    assert {seq for _, seq in await store.passages("tenant", None, PLACES)} == {1, 2, 3}
    await store.commit(KEY, chat("x4", superseded=("x0.0", "x0.1")))
    assert {seq for _, seq in await store.passages("tenant", None, PLACES)} == {3}


async def test_usage_that_comes_late_is_seen(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.amend(KEY, Amendment(exchange="x3", usage=b'{"a":1}'))
    unread(store, monkeypatch)
    snapshot = await store.load(KEY, NEAR)
    assert snapshot.last is not None and snapshot.last.usage == b'{"a":1}'


async def test_a_session_with_an_end_is_asked_for_each_time(tmp_path: Path) -> None:
    now = [1000.0]
    store = SQLiteStore(tmp_path / "m.db", timeout=PATIENCE, clock=lambda: now[0])
    await store.open()
    for n in range(3):
        await store.commit(KEY, chat(f"x{n}", ttl=60))
        await store.load(KEY, NEAR)
        await store.passages("tenant", None, PLACES)
    now[0] += 61
    assert not (await store.load(KEY, NEAR)).exists
    assert not await store.passages("tenant", None, PLACES)
    await store.close()


async def test_a_write_that_nobody_waits_for_any_more_is_seen(store: SQLiteStore) -> None:
    """Its caller had no patience; it was under way, and takes effect."""
    begun, loop, go_on = asyncio.Event(), asyncio.get_running_loop(), threading.Event()

    def held(connection: sqlite3.Connection, now: float, key: SessionKey) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(PATIENCE)
        sqlite_write.commit(connection, now, key, chat("x4"))

    late = asyncio.create_task(store._write_and_reload(KEY, held))
    await begun.wait()
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    before = await store.load(KEY, NEAR)
    go_on.set()
    await store._active_writer.run(lambda connection: None, PATIENCE, keeps_caches=True)
    seen = await store.load(KEY, NEAR)
    assert seen == await fresh(store, KEY) != before


async def fresh(store: SQLiteStore, key: SessionKey) -> object:
    """As who has never asked sees it."""
    another = opened(store._path)
    await another.open()
    try:
        return await another.load(key, NEAR)
    finally:
        await another.close()


async def test_many_turns_at_once_all_see_what_was_answered_before(store: SQLiteStore) -> None:
    async def talk(n: int) -> None:
        for turn in range(20):
            id = f"t{n}-{turn}"
            await store.commit(KEY, chat(id))
            seen = await store.load(KEY, NEAR)
            newest = [entry.card.exchange for entry in seen.log]
            later = await store.load(KEY, LoadOptions(profile="default", whole=True))
            assert id in newest or len(later.log) - places(later, id) > len(seen.log)

    def places(snapshot: object, id: str) -> int:
        log = snapshot.log  # type: ignore[attr-defined]
        return next(n for n, entry in enumerate(log) if entry.card.exchange == id)

    await asyncio.gather(*(talk(n) for n in range(8)))


async def test_of_many_commits_at_once_the_last_one_looks(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, since = list[object](), sqlite_read.load_from_cache

    def counted(*arguments: Any) -> Any:
        looks.append(arguments)
        return since(*arguments)

    monkeypatch.setattr(sqlite_read, "load_from_cache", counted)
    await asyncio.gather(*(store.commit(KEY, chat(f"t{n}")) for n in range(16)))
    assert len(looks) < 16
    expected = await fresh(store, KEY)
    unread(store, monkeypatch)
    assert await store.load(KEY, NEAR) == expected
    assert not store._latest_writes


async def test_a_look_that_undoes_the_write_fails_it_and_nobody_else_writes_halves(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, where what is written is moved out of the way of what is read."""

    def full(connection: sqlite3.Connection, *arguments: object) -> None:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite_read, "load_from_cache", full)
    go_on = threading.Event()
    held = asyncio.create_task(store._write_large(lambda connection: go_on.wait(PATIENCE)))
    commits = [asyncio.create_task(store.commit(key, chat("x4"))) for key in (KEY, ANOTHER)]
    await asyncio.sleep(0)  # both are in the queue, and so share a transaction
    go_on.set()
    await held
    outcomes = await asyncio.gather(*commits, return_exceptions=True)
    assert await store.session(ANOTHER) is None
    assert [str(each) for each in outcomes] == ["SQLite: database or disk is full"] * 2


async def test_a_file_without_a_log_is_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.stores.sqlite.file.acquire", lambda path: None)
    store = opened(tmp_path / "m.db")
    await store.open()
    await store.commit(KEY, chat("x0"))
    await store.load(KEY, NEAR)
    await store.commit(KEY, chat("x1"))
    assert len((await store.load(KEY, NEAR)).log) == 4
    unread(store, monkeypatch)
    with pytest.raises((AssertionError, StoreError)):
        await store.load(KEY, NEAR)
    monkeypatch.undo()
    await store.close()


async def test_the_header_is_open_once_and_as_long_as_any_connection(tmp_path: Path) -> None:
    """Closing a descriptor would drop the locks of all connections to the file."""
    path = tmp_path / "m.db"
    first, second = opened(path), opened(path)
    for each in (first, second):
        await each.open()
        await each.commit(KEY, chat(f"x-{id(each)}"))
        await each.load(KEY, NEAR)
    index = acquire(path)
    assert index is not None and len(index.header()) == HEADER
    release(index)
    await first.close()
    assert len(index.header()) == HEADER
    assert os.fstat(index._file)
    await second.close()
    assert index.header() == b""
    assert acquire(path) is None


async def test_what_is_known_is_bounded(store: SQLiteStore) -> None:
    era = store._changes.era()
    assert era is not None
    items = ItemCache(max_bytes=10 * ITEM_BYTES)
    for n in range(50):
        items.put([OwnedPlace(ItemOwner("tenant", str(n)), CARD)], {}, era)
    assert len(items._items) == 10 and items._bytes == 10 * ITEM_BYTES
    large = {AT: item(b"1" * 3 * ITEM_BYTES)}
    items.put([AT], large, era)
    assert items.get([AT], era) is None
    heads = IndexHeadCache(max_owners=10)
    for n in range(50):
        heads.put(Owner("tenant", session=str(n)), str(n), IndexLookup(1, b"[]"), era)
    assert len(heads._heads) == 10


async def test_erasing_forgets_what_is_known(store: SQLiteStore) -> None:
    assert store._passages._sessions
    await store.delete(KEY)
    assert not store._passages._sessions
    assert not store._items._items
    assert not store._heads._heads


async def test_an_item_with_an_end_is_asked_for_each_time(tmp_path: Path) -> None:
    now = [1000.0]
    store = SQLiteStore(tmp_path / "m.db", timeout=PATIENCE, clock=lambda: now[0])
    await store.open()
    await store.change_items(SHELF, [card(b"{}", expires_at=1060.0)])
    await store.commit(KEY, chat("x0"))
    for _ in range(2):
        assert CARD in await store.items_at(SHELF, [CARD])
    now[0] += 61
    assert not await store.items_at(SHELF, [CARD])
    await store.close()
