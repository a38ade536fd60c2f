"""Long texts lie apart in the SQLite file: nobody sees it, and no row of a table without rowids is
long, because whoever looks for another row there reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from proxy.memory.archive import Revision
from proxy.memory.items import Change, ItemOwner, Place
from proxy.memory.model import LoadOptions, SessionKey, State
from proxy.memory.store import StoreError
from proxy.stores.sqlite.rows import LONG_TEXT, text_in
from proxy.stores.sqlite.schema import MIGRATIONS, migrate
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.archives import edited, lines, revise, take_out
from tests.support.store.commits import chat, draft, record
from tests.support.store.files import opened
from tests.support.waiting import PATIENCE

ALL = LoadOptions(profile="default", whole=True)
KEY, OTHER = SessionKey("tenant", "session"), SessionKey("tenant", "other")
SHELF = ItemOwner("tenant", "kai")
BODY, WIRE = b"b" * LONG_TEXT, b"w" * LONG_TEXT
BOTH: tuple[State, ...] = ("active", "superseded")
PLACE = Place(("a",), "k")
LONG_ROWS = """
SELECT (SELECT count(*) FROM messages WHERE length(body) >= ?1 OR length(wire) >= ?1)
     + (SELECT count(*) FROM exchanges WHERE length(record) >= ?1)
     + (SELECT count(*) FROM items WHERE length(value) >= ?1)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with opened(path, clock) as store:
        yield store


def apart(path: Path) -> int:
    """The texts that lie apart; no row is long."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(LONG_ROWS, (LONG_TEXT,)).fetchone()[0] == 0
        return int(connection.execute("SELECT count(*) FROM texts").fetchone()[0])


def value(size: int) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode("v" * size))


async def told(store: SQLiteStore) -> None:
    """Two long texts of a message, one of the next, and a long record."""
    first = msgspec.structs.replace(draft("x1", 0, wire=WIRE), body=BODY)
    second = msgspec.structs.replace(draft("x1", 1, "assistant"), body=BODY)
    commit = record("x1", first, second, user="kai")
    exchange = msgspec.structs.replace(commit.exchange, requested_model="m" * LONG_TEXT)
    await store.commit(KEY, msgspec.structs.replace(commit, exchange=exchange))
    await store.commit(KEY, chat("x2"))


async def test_long_texts_are_read_as_if_they_lay_in_their_rows(
    store: SQLiteStore, path: Path
) -> None:
    await told(store)
    assert apart(path) == 4
    store._logs.clear()
    seen = await store.load(KEY, ALL)
    assert seen.bodies["x1.0"] == seen.bodies["x1.1"] == BODY
    page = await store.messages(KEY, BOTH, 0, 9)
    assert [message.wire for message in page.items[:2]] == [WIRE, BODY]
    assert [(x.body, x.wire) for x in await lines(store, KEY)][:2] == [(BODY, WIRE), (BODY, None)]
    found = await store.message(KEY, "x1.0")
    assert found is not None and (found.body, found.wire) == (BODY, WIRE)
    assert (await store.bodies(KEY, ["x1.0"]))["x1.0"] == BODY
    passages = await store.passages("tenant", "kai", {"session": [1]})
    assert passages["session", 1].wire == BODY
    placed = await store.exchange(KEY, "x1")
    assert placed is not None and placed[0].requested_model == "m" * LONG_TEXT
    assert (await store.exchanges(KEY, None, 9)).items[-1].exchange == placed[0]


async def test_what_is_appended_to_a_log_that_is_known_may_be_long(store: SQLiteStore) -> None:
    await store.commit(KEY, chat("x0"))
    await store.load(KEY, ALL)
    await told(store)
    assert (await store.load(KEY, ALL)).bodies["x1.0"] == BODY


async def test_a_long_text_goes_with_its_message(store: SQLiteStore, path: Path) -> None:
    await told(store)
    short = edited("x1", 0, replaced_wire=WIRE)
    assert await revise(store, KEY, edited=(short,))
    assert apart(path) == 2
    longer = msgspec.structs.replace(edited("x1", 1, replaced_wire=BODY), body=BODY, wire=WIRE)
    assert await store.revise(KEY, Revision(edited=(longer,)))
    assert apart(path) == 3
    assert await revise(store, KEY, removed=("x1.1",))
    assert apart(path) == 1
    assert await revise(store, KEY, removed=("x1.0",))
    assert apart(path) == 0


async def test_a_session_with_long_texts_goes_and_comes_back(
    store: SQLiteStore, path: Path
) -> None:
    await told(store)
    archived = await take_out(store, KEY)
    assert await store.restore(OTHER, archived)
    assert apart(path) == 8
    assert await store.delete(KEY)
    assert apart(path) == 4
    assert await take_out(store, OTHER) == msgspec.structs.replace(
        archived, session=msgspec.structs.replace(archived.session, id="other")
    )
    assert await store.delete(OTHER)
    assert apart(path) == 0


async def test_long_values_of_items_lie_apart_and_go_with_them(
    store: SQLiteStore, path: Path
) -> None:
    for size in (LONG_TEXT, 2 * LONG_TEXT, 1, LONG_TEXT):
        change = Change(namespace=PLACE.namespace, key=PLACE.key, value=value(size))
        assert await store.change_items(SHELF, [change])
        found = await store.items_at(SHELF, [PLACE])
        assert found[PLACE].value == value(size)
        assert apart(path) == (size > 1)
    brought = msgspec.structs.replace(found[PLACE], value=value(3 * LONG_TEXT))
    assert await store.adopt_items(SHELF, [brought]) == 0
    other = msgspec.structs.replace(brought, key="other")
    assert await store.adopt_items(SHELF, [other]) == 1
    assert apart(path) == 2
    assert [x.value for x in (await store.items(SHELF, (), None, 9)).items] == [
        value(LONG_TEXT),
        value(3 * LONG_TEXT),
    ]
    await store.drop_items(SHELF, ())
    assert apart(path) == 0


async def test_what_was_long_before_is_read_where_it_lies(path: Path, clock: Clock) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:5])
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await store.open()
    await told(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            f"UPDATE messages SET body = {text_in('body')}, wire = {text_in('wire')}"
        )
        connection.execute(f"UPDATE exchanges SET record = {text_in('record')}")
        assert connection.execute("SELECT count(*) FROM texts").fetchone()[0] == 0
    assert [(x.body, x.wire) for x in await lines(store, KEY)][:2] == [(BODY, WIRE), (BODY, None)]
    assert await store.delete(KEY)
    await store.close()


async def test_a_text_that_is_not_there_is_a_store_error(store: SQLiteStore, path: Path) -> None:
    await told(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM texts")
    store._logs.clear()
    with pytest.raises(StoreError):
        await store.load(KEY, ALL)
