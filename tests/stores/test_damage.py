"""What lies in a store is not what was written there: a failure of the store, never another's."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.model import LoadOptions, SessionKey, Snapshot, State
from proxy.memory.store import StoreError, StoreTimeout
from proxy.stores.open import Backend, open_store
from proxy.stores.redis.base import session_keys
from proxy.stores.redis.store import RedisStore
from proxy.stores.redis.wire import Command
from proxy.stores.sqlite.file import READERS, SQLiteOpener
from proxy.stores.sqlite.schema import connect
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.processes import redis as servers
from tests.support.processes.redis import Server
from tests.support.store.archives import revise, take_out
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

KEY = SessionKey("tenant", "session")
BOTH: tuple[State, ...] = ("active", "superseded")
WHOLE = LoadOptions(profile="default", whole=True)
WINDOW = LoadOptions(profile="default", max_messages=40)
ENDLESS = """
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000000)
SELECT count(*) FROM n
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def sqlite(path: Path) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with servers.standalone() as server:
        yield server


@pytest.fixture
async def redis(server: Server) -> AsyncIterator[Backend]:
    server.ask("FLUSHALL")
    store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


# SQLite


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET system = 5",
        "UPDATE sessions SET messages = 'many'",
        "UPDATE sessions SET tokens = x'00'",
        "UPDATE sessions SET changes = 'some'",
        "UPDATE messages SET body = 7",
        "UPDATE messages SET entry = 7",
        "UPDATE messages SET entry = '[[1,1],3]'",
    ],
)
async def test_a_row_of_another_type_is_a_store_error(
    sqlite: SQLiteStore, path: Path, change: str
) -> None:
    await sqlite.commit(KEY, chat("x1"))
    with closing(sqlite3.connect(path)) as other:
        other.execute(change)
        other.commit()
    for options in (WHOLE, WINDOW):
        with pytest.raises(StoreError):
            await sqlite.load(KEY, options)
    assert (await sqlite.load(SessionKey("tenant", "other"), WHOLE)).log == ()


async def test_long_pages_of_the_patient_keep_no_lists_waiting(sqlite: SQLiteStore) -> None:
    await sqlite.commit(KEY, chat("x1"))
    patient = sqlite.with_long_timeout(PATIENCE)
    await patient.open()
    busy = asyncio.create_task(patient._page(lambda c: c.execute(ENDLESS).fetchone()))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        assert (await sqlite.lines(KEY, 0, 10)).items
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    await patient.close()


async def test_reading_that_nobody_waits_for_any_more_is_broken_off(path: Path) -> None:
    store = SQLiteStore(path, timeout=0.3, commit_timeout=PATIENCE)
    await store.open()
    with pytest.raises(StoreTimeout):
        await store._list(lambda c: c.execute(ENDLESS).fetchone())
    patient = store.with_long_timeout(PATIENCE)
    store._timeout = PATIENCE
    assert (await store.sessions("tenant", None, None, 10)).items == ()
    await patient.close()
    await store.close()


async def test_long_reads_keep_neither_a_probe_nor_the_lists_nor_the_patient_waiting(
    sqlite: SQLiteStore,
) -> None:
    await sqlite.commit(KEY, chat("x1"))
    patient = sqlite.with_long_timeout(PATIENCE)
    await patient.open()
    busy = [
        asyncio.create_task(sqlite._read(lambda c: c.execute(ENDLESS).fetchone()))
        for _ in range(READERS)
    ]
    await asyncio.sleep(0)
    await sqlite.peek(KEY)
    assert (await sqlite.sessions("tenant", None, None, 10)).items
    assert len((await patient.load(KEY, WHOLE)).log) == 2
    assert await patient.commit(KEY, chat("x2")) == "recorded"
    assert not any(task.done() for task in busy)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    assert len((await sqlite.load(KEY, WHOLE)).log) == 4
    await patient.close()
    assert await sqlite.commit(KEY, chat("x3")) == "recorded"


async def refuses(sqlite: SQLiteStore, options: LoadOptions) -> None:
    """Neither writes nor reads, nor is it ready."""
    for work in (sqlite.commit(KEY, chat("x2")), sqlite.load(KEY, options), sqlite.ping()):
        with pytest.raises(StoreError, match="deleted or replaced"):
            await work


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_file_that_was_deleted_or_replaced_is_not_written_into(
    sqlite: SQLiteStore, path: Path, how: str
) -> None:
    await sqlite.commit(KEY, chat("x1"))
    away = path.with_suffix(".away")
    path.rename(away)
    if how == "replaced":
        path.write_bytes(b"")
    await refuses(sqlite, WHOLE)
    assert path.exists() == (how == "replaced")
    os.replace(away, path)
    assert await sqlite.commit(KEY, chat("x2")) == "recorded"
    assert len((await sqlite.load(KEY, WHOLE)).log) == 4


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a restore does under a proxy that just starts."""
    path, new = tmp_path / "m.db", tmp_path / "new.db"
    for each in (path, new):
        connect(each, PATIENCE).close()

    def late(opened: Path, patience: float) -> sqlite3.Connection:
        connection = connect(opened, patience)
        if new.exists():
            os.replace(new, path)
        return connection

    monkeypatch.setattr("proxy.stores.sqlite.file.connect", late)
    opener = SQLiteOpener(path, PATIENCE, as_is=False)
    with pytest.raises(StoreError, match="replaced while it was being opened"):
        opener.connect()
    opened = opener.connect()
    opened.execute("PRAGMA user_version = 77")
    opener.close(opened)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (77,)


async def test_a_log_is_known_beside_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "m.db"
    link.symlink_to(tmp_path / "real" / "m.db")
    linked = SQLiteStore(link, timeout=PATIENCE, commit_timeout=PATIENCE)
    await linked.open()
    await linked.commit(KEY, chat("x1"))
    (tmp_path / "real" / "m.db-wal").unlink()
    with pytest.raises(StoreError, match="deleted or replaced"):
        await linked.commit(KEY, chat("x2"))
    await linked.close()


@pytest.mark.parametrize("which", ["wal", "shm"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_log_that_was_deleted_or_replaced_is_not_written_into(
    sqlite: SQLiteStore, path: Path, which: str, how: str
) -> None:
    await sqlite.commit(KEY, chat("x1"))
    beside, away = path.with_name(f"{path.name}-{which}"), path.with_suffix(".away")
    beside.rename(away)
    if how == "replaced":
        beside.write_bytes(b"")
    await refuses(sqlite, WINDOW)
    again = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await again.open()
    assert len((await again.load(KEY, WHOLE)).log) == 2
    await again.close()


async def test_what_a_deleted_log_had_is_in_the_file_afterwards(
    sqlite: SQLiteStore, path: Path, tmp_path: Path
) -> None:
    """Also where the proxy is killed then: its threads that had nothing to do have the log open."""
    await sqlite.commit(KEY, chat("x1"))
    await sqlite.sessions("tenant", None, None, 10)
    path.with_name(f"{path.name}-wal").unlink()
    with pytest.raises(StoreError, match="start the proxy again"):
        await sqlite.commit(KEY, chat("x2"))
    left = tmp_path / "left" / path.name
    left.parent.mkdir()
    left.write_bytes(path.read_bytes())
    again = SQLiteStore(left, timeout=PATIENCE, commit_timeout=PATIENCE)
    await again.open()
    assert len((await again.load(KEY, WHOLE)).log) == 2
    assert await again.commit(KEY, chat("x2")) == "recorded"
    await again.close()


async def test_a_log_that_goes_with_its_last_connection_is_nobodys_fault(
    sqlite: SQLiteStore, path: Path
) -> None:
    await sqlite.commit(KEY, chat("x1"))
    await sqlite.close()
    assert not path.with_name(f"{path.name}-wal").exists()
    await sqlite.open()
    for exchange in ("x2", "x3"):
        assert await sqlite.commit(KEY, chat(exchange)) == "recorded"


# Redis


@pytest.mark.parametrize("part", range(8))
async def test_a_session_of_which_a_key_was_evicted_goes_on_with_the_rest(
    redis: Backend, server: Server, part: int
) -> None:
    for number in range(3):
        await redis.commit(KEY, chat(f"x{number}"))
    server.ask("DEL", session_keys(KEY)[part])
    for options in (WHOLE, WINDOW):
        snapshot = await redis.load(KEY, options)
        assert len(snapshot.log) == len(snapshot.bodies)
        if part in (0, 1, 2, 3):  # the head, cards, texts, the log itself
            assert (len(snapshot.log), snapshot.missing_messages) == (0, 6)
    assert await redis.commit(KEY, chat("x9")) == "recorded"
    assert [e.card.id for e in (await redis.load(KEY, WHOLE)).log][-2:] == ["x9.0", "x9.1"]


@pytest.mark.parametrize("user", ["", "kai"], ids=["nobody's", "a person's"])
@pytest.mark.parametrize("part", range(1, 8))
async def test_what_is_left_of_a_session_of_which_a_key_was_evicted_is_found_exported_and_changed(
    redis: Backend, server: Server, part: int, user: str
) -> None:
    for number in range(3):
        await redis.commit(KEY, chat(f"x{number}", user=user or None))
    server.ask("DEL", session_keys(KEY)[part])
    await redis.commit(KEY, chat("x9", user=user or None))
    left = 2 if part in (1, 2) else 8  # cards, texts
    assert len((await redis.messages(KEY, BOTH, 0, 100)).items) == left
    behind = await redis.unindexed(KEY, BOTH, 100)
    assert behind is not None and len(behind.page.items) == left
    found = await redis.passages(KEY.tenant, user or None, {KEY.session: range(1, 9)})
    assert len(found) == (2 if part == 3 else left)  # not in the log, they are not active
    archived = await take_out(redis, KEY)
    assert len(archived.lines) == left
    assert len(archived.exchanges) == (1 if part in (1, 4) else 4)  # cards, exchanges
    assert await revise(redis, KEY, removed=("x9.0", "x9.1"))


@pytest.mark.parametrize(("ttl", "left", "lost"), [(0, 0, 4), (3600, 0, 4), (3600, 5, 0)])
async def test_a_session_whose_head_was_evicted_begins_anew_and_what_is_gone_with_it_is_counted(
    redis: Backend, server: Server, ttl: int, left: int, lost: int
) -> None:
    """Not what is left of one that has expired."""
    head, *rest = session_keys(KEY)
    for id in ("x1", "x2"):
        await redis.commit(KEY, chat(id, user="kai", ttl=ttl))
    for name in rest if left else ():
        server.ask("EXPIRE", name, left)
    server.ask("DEL", head)
    assert await redis.load(KEY, WINDOW) == Snapshot(missing_messages=lost)
    assert await redis.commit(KEY, chat("x3", user="lou")) == "recorded"
    snapshot = await redis.load(KEY, WHOLE)
    assert (snapshot.owner, len(snapshot.log), snapshot.missing_messages) == ("lou", 2, 0)


class Odd:
    """A way to a server that answers whatever it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        return [self.answer for _ in commands]

    def server_of(self, key: bytes) -> str:
        return ""

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        return [self.answer for _ in commands]

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [[self.answer for _ in commands]]

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        yield []

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.mark.parametrize(
    "answer", [1, b"OK", [b"a", b"b", b"c"], {b"a": 1}, [None] * 21, [b"x"] * 21, [[]] * 21]
)
async def test_an_answer_of_another_shape_is_a_store_error(answer: object) -> None:
    store = RedisStore("redis://odd", Odd(answer), one_slot=True)
    with pytest.raises(StoreError):
        await store.load(KEY, WHOLE)
    with pytest.raises(StoreError):
        await store.commit(KEY, chat("x1"))
    assert list(await store.warnings()) == []
