"""Who asks again sees what is there, whoever has written meanwhile; it is read once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from proxy.memory.model import (
    Amendment,
    Entry,
    LoadOptions,
    Position,
    SessionKey,
    Snapshot,
    WindowMove,
)
from proxy.memory.store import Store, StoreError
from proxy.stores.common.log_cache import ENTRY_BYTES, CachedLog, LogCache
from proxy.stores.sqlite import read as sqlite_read
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.store.archives import edited, revise, take_out
from tests.support.store.commits import card, chat, draft, record
from tests.support.waiting import PATIENCE

NEAR = LoadOptions(profile="default", max_messages=6)
FAR = LoadOptions(profile="other", max_tokens=10_000)
KEY = SessionKey("tenant", "session")

Write = Callable[[Store, SessionKey], Awaitable[object]]


async def restore_other_words(store: Store, key: SessionKey) -> None:
    archived = await take_out(store, key)
    lines = [line._replace(body=b'{"role":"user","content":"else"}') for line in archived.lines]
    await store.delete(key)
    assert await store.restore(key, replace(archived, lines=tuple(lines)))


WRITES: dict[str, Write] = {
    "nothing": lambda store, key: store.load(key, NEAR),
    "appended": lambda store, key: store.commit(key, chat("y1")),
    "appended thousands": lambda store, key: store.commit(
        key, record("y1", *(draft("y1", n) for n in range(2_500)))
    ),
    "moved": lambda store, key: store.commit(
        key, chat("y1", window=WindowMove(profile="default", start="x4.0"))
    ),
    "superseded": lambda store, key: store.commit(key, chat("y1", superseded=("x5.0", "x5.1"))),
    "joined": lambda store, key: store.commit(
        key, record("y1", draft("y1", 0, "tool", turn="x4.0"))
    ),
    "amended": lambda store, key: store.amend(
        key, Amendment(exchange="x5", drafts=(draft("x5", 2, "assistant"),))
    ),
    "amended in what it says": lambda store, key: store.amend(
        key,
        Amendment(
            exchange="x5",
            edited=edited("x5", 1, "assistant", replaced_wire=chat("x5").drafts[1].body),
        ),
    ),
    "edited": lambda store, key: revise(store, key, superseded=("x5.1",)),
    "removed": lambda store, key: revise(store, key, removed=("x3.0",)),
    "deleted": lambda store, key: store.delete(key),
    "put back": restore_other_words,
}


async def unread(store: Store, key: SessionKey, options: LoadOptions) -> Snapshot:
    """As who has never asked sees it."""
    store._logs.clear()  # type: ignore[attr-defined]
    return await store.load(key, options)


@pytest.mark.parametrize("first", [NEAR, FAR], ids=["near", "far"])
@pytest.mark.parametrize("write", WRITES)
async def test_who_asks_again_sees_what_another_process_has_written(
    store: Store, other: Store, key: SessionKey, first: LoadOptions, write: str
) -> None:
    for n in range(6):
        await store.commit(key, chat(f"x{n}", reserved=1))
    await store.load(key, first)
    await WRITES[write](other, key)
    last_load = [await store.load(key, options) for options in (NEAR, FAR, NEAR)]
    assert last_load == [await unread(store, key, options) for options in (NEAR, FAR, NEAR)]
    if write == "put back":
        assert {*last_load[0].bodies.values()} == {b'{"role":"user","content":"else"}'}


async def test_what_is_known_is_not_read_again(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("known") / "memory.db"
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    for n in range(20):
        await store.commit(KEY, chat(f"x{n}"))
    before = await store.load(KEY, FAR)
    await store.commit(KEY, chat("y1"))

    def refused(*_: object) -> None:
        raise AssertionError("all was read")

    monkeypatch.setattr(sqlite_read, "_load", refused)
    after = await store.load(KEY, FAR)
    assert [e.card.id for e in after.log[len(before.log) :]] == ["y1.0", "y1.1"]
    store._logs.clear()
    with pytest.raises((AssertionError, StoreError)):
        await store.load(KEY, FAR)
    await store.close()


@pytest.mark.parametrize("gone", ["deleted", "removed"])
async def test_what_is_erased_is_not_kept_in_mind(store: Store, key: SessionKey, gone: str) -> None:
    logs: LogCache = store._logs  # type: ignore[attr-defined]
    for n in range(6):
        await store.commit(key, chat(f"x{n}"))
    await store.load(key, FAR)
    assert logs.get(key) is not None
    await WRITES[gone](store, key)
    assert logs.get(key) is None


def log_of(name: str, messages: int, body: int = 100, end: int | None = None) -> CachedLog:
    entries = tuple(Entry(Position(n, n), card(name, n)) for n in range(1, messages + 1))
    bodies = {entry.card.id: b"x" * body for entry in entries}
    return CachedLog(b"stamp", end or messages + 1, messages, 0, entries, bodies)


def test_so_much_is_kept_of_who_asked_last() -> None:
    logs = LogCache(max_bytes=3 * (ENTRY_BYTES + 100))
    for name in ("a", "b", "c"):
        logs.put(SessionKey("t", name), log_of(name, 1), logs.era)
    logs.put(SessionKey("t", "a"), log_of("a", 2), logs.era)
    assert [logs.get(SessionKey("t", name)) is not None for name in "abc"] == [True, False, True]
    # What is more than all that may be kept is not, and nothing goes for it.
    logs.put(SessionKey("t", "d"), log_of("d", 4), logs.era)
    kept = [logs.get(SessionKey("t", name)) is not None for name in "abcd"]
    assert kept == [True, False, True, False]
    logs.put(SessionKey("t", "a"), log_of("a", 4), logs.era)
    assert logs.get(SessionKey("t", "a")) is None


def test_what_was_read_before_all_was_forgotten_does_not_come_back() -> None:
    logs = LogCache()
    era = logs.era
    logs.clear()
    logs.put(KEY, log_of("a", 2), era)
    assert logs.get(KEY) is None


def test_of_two_looks_the_later_counts() -> None:
    logs = LogCache()
    logs.put(KEY, log_of("a", 4), logs.era)
    logs.put(KEY, log_of("a", 2), logs.era)
    known = logs.get(KEY)
    assert known is not None and known.messages == 4
