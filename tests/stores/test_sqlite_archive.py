"""What only the SQLite store promises of the archive: nothing stays in files, no look is long."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from proxy.memory.archive import (
    Details,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.erasure import MARK_SECONDS, Subject
from proxy.memory.model import LoadOptions, Position, SessionKey
from proxy.memory.store import StoreError
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.stores.sqlite import archive as sqlite_archive
from proxy.stores.sqlite import marks as sqlite_marks
from proxy.stores.sqlite import read as sqlite_read
from proxy.stores.sqlite import restore as sqlite_restore
from proxy.stores.sqlite import revise as sqlite_revise
from proxy.stores.sqlite import waste as sqlite_waste
from proxy.stores.sqlite import write as sqlite_write
from proxy.stores.sqlite.schema import MIGRATIONS, connect, migrate
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.store.archives import edited, exchanges, lines, revise
from tests.support.store.commits import card, chat, draft, exchange, record, summary
from tests.support.store.files import opened

ALL = LoadOptions(profile="default", whole=True)
KEY = SessionKey("tenant", "session")
LONG = " and so on" * 2000
EXCHANGES = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memory.db"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with opened(path, clock) as store:
        yield store


def holds(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.parent.iterdir())


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


# Erasing


@pytest.mark.parametrize("size", ["short", "long"])
async def test_nothing_of_a_removed_message_stays_in_the_files(
    store: SQLiteStore, path: Path, size: str
) -> None:
    text = "secret-text" + (LONG if size == "long" else "")
    body, wire = f'{{"content":"{text}"}}'.encode(), f'{{"extra":"{text}"}}'.encode()
    secret = msgspec.structs.replace(draft("x1", 0, wire=wire, digest="secret-text"), body=body)
    await store.commit(KEY, record("x1", secret, draft("x1", 1, "assistant")))
    await store.commit(KEY, chat("x2"))
    assert holds(path, "secret-text")
    assert await revise(store, KEY, removed=("x1.0",))
    assert not holds(path, "secret-text")
    assert path.with_name("memory.db-wal").stat().st_size == 0
    assert (await store.load(KEY, ALL)).messages == 3


@pytest.mark.parametrize("size", ["short", "long"])
async def test_nothing_of_a_message_before_its_edit_stays_in_the_files(
    store: SQLiteStore, path: Path, size: str
) -> None:
    text = "secret-text" + (LONG if size == "long" else "")
    body = f'{{"content":"{text}"}}'.encode()
    secret = msgspec.structs.replace(draft("x1", 0, digest="secret-text"), body=body)
    await store.commit(KEY, record("x1", secret))
    assert holds(path, "secret-text")
    assert await revise(store, KEY, edited=(edited("x1", 0, replaced_wire=body),))
    assert not holds(path, "secret-text")
    assert holds(path, "edited")


async def test_nothing_of_an_exchange_that_is_gone_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("secret-x", model="secret-model", idempotency_key="secret-key"))
    assert holds(path, "secret-x") and holds(path, "secret-model") and holds(path, "secret-key")
    assert await revise(store, KEY, removed=("secret-x.0", "secret-x.1"))
    assert not holds(path, "secret")
    assert [count(path, name) for name in ("messages", "exchanges", "keys")] == [0, 0, 0]


async def test_nothing_of_earlier_details_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("x1", system=b'["secret-system"]'))
    await revise(store, KEY, details=Details(title="secret-title", metadata=b'{"secret-meta":1}'))
    assert not holds(path, "secret-system")
    await revise(store, KEY, details=Details(title="t"))
    assert not holds(path, "secret")


async def test_nothing_of_the_summaries_that_a_removal_drops_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("x1"))
    await store.put_summary(KEY, summary(3, "secret-summary"), 0, None)
    assert await revise(store, KEY, removed=("x1.0",))
    assert not holds(path, "secret-summary")


async def test_a_mark_does_not_tell_who_was_erased(store: SQLiteStore, path: Path) -> None:
    await store.mark([Subject("tenant", "secret-person")], 1000.0)
    await store.mark([Subject("tenant", session="secret-session")], 1000.0)
    assert count(path, "erasures") == 2
    assert not holds(path, "secret")
    await store.commit(SessionKey("tenant", "secret-session"), chat("x1", user="secret-person"))
    assert not holds(path, "secret")


async def test_marks_are_removed_bit_by_bit_when_their_time_is_over(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    clock.now = 1000.0
    for n in range(5):
        await store.mark([Subject("tenant", f"u{n}")], 1000.0 + n)
    clock.now += MARK_SECONDS + 3
    await store.commit(KEY, chat("x1"))
    assert count(path, "erasures") == 5 - sqlite_waste.PURGED_AT_ONCE
    for n in range(5):
        await store.commit(KEY, chat(f"y{n}"))
    assert count(path, "erasures") == 1


# All or nothing


async def test_what_days_have_cost_is_forgotten_when_nobody_is_told_of_it_any_more(
    store: SQLiteStore, path: Path
) -> None:
    days = ("2026-01-31", "2024-12-27", "2024-12-26")
    for day in reversed(days):
        await store.add_usage("tenant", UsageKey(day, "facts"), UsageTotals(calls=1))
    await store.add_usage("other", UsageKey(days[2], "facts"), UsageTotals(calls=1))
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT tenant, day FROM usage ORDER BY day, tenant").fetchall()
    assert kept == [("other", days[2]), ("tenant", days[1]), ("tenant", days[0])]


async def test_a_restore_that_fails_halfway_leaves_nothing(store: SQLiteStore, path: Path) -> None:
    line = StoredMessage(Position(1, 1), card("x1", 0), "active", b"{}")
    broken = SessionArchive(
        Session("", None, 0, 0, 0, 1.0, 1.0),
        (line, line),
        (PlacedExchange(1, exchange("x1", size=1), ("x1.0",)),),
    )
    with pytest.raises(StoreError):
        await store.restore(KEY, broken)
    assert [count(path, name) for name in ("sessions", "messages", "exchanges")] == [0, 0, 0]


async def test_a_session_from_before_titles_is_read_and_revised(
    store: SQLiteStore, path: Path
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:4])
        connection.execute(
            "INSERT INTO sessions (id, tenant, session, system, system_tokens, next, messages,"
            " tokens, last, ttl, created_at, last_active_at)"
            " VALUES (1, 'tenant', 'session', x'5b5d', 3, 3, 2, 20, 'x1', 0, 1, 1)"
        )
        connection.execute("INSERT INTO windows VALUES (1, 'default', 1, 1)")
        connection.execute(
            "INSERT INTO exchanges VALUES (1, 'x1', 1, 2, 0, 'default', 1, 1, ?, NULL)",
            (msgspec.json.encode(exchange("x1", size=2)),),
        )
        for seq, each in enumerate(chat("x1").drafts, 1):
            entry = msgspec.json.encode(((1, seq), each.card))
            row = (1, seq, 1, each.card.tokens, 1, entry, each.body, None)
            connection.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    session = await store.session(KEY)
    assert session is not None
    assert session.details == Details(system=b"[]", system_tokens=3)
    assert (session.end, session.last, session.windows) == (2, "x1", {"default": Position(1, 1)})
    assert [x.card.id for x in await lines(store, KEY)] == ["x1.0", "x1.1"]
    assert [x.messages for x in await exchanges(store, KEY)] == [("x1.0", "x1.1")]
    titled = Details(title="old", system=b"[]", system_tokens=3)
    assert await revise(
        store, KEY, details=titled, expected_details=session.details, removed=("x1.0",)
    )
    after = await store.session(KEY)
    assert after is not None and (after.details, after.messages) == (titled, 1)


# Plans


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file with two sessions of many exchanges among others, and marks."""
    path = tmp_path_factory.mktemp("large") / "memory.db"
    with closing(connect(path, 5)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for name in ("session", "other"):
            key = SessionKey("tenant", name)
            for n in range(EXCHANGES):
                commit = chat(f"x{n}", user="kai", idempotency_key=f"k{n}")
                sqlite_write.commit(connection, 1.0, key, commit)
        for n in range(100):  # of a few rows SQLite may look at all
            sqlite_write.commit(connection, 1.0, SessionKey("tenant", f"s{n}"), chat("x"))
        connection.executemany(
            "INSERT INTO erasures VALUES (?, 1, 1e9)", [(b"%d" % n,) for n in range(2000)]
        )
        connection.execute("ANALYZE")
        yield connection


def archived() -> SessionArchive:
    line = StoredMessage(Position(1, 1), card("x1", 0), "active", b"{}")
    session = Session("", None, 0, 0, 0, 1.0, 1.0, windows={"p": Position(1, 1)})
    placed = PlacedExchange(1, exchange("x1", size=1), ("x1.0",))
    return SessionArchive(session, (line,), (placed,), (summary(1),))


EVERYTHING = Revision(
    edited=(edited("x9", 0, replaced_wire=chat("x9").drafts[0].body),),
    removed=("x5.0", f"x{EXCHANGES - 1}.0", f"x{EXCHANGES - 1}.1"),
    superseded=("x7.0",),
    activated=("x8.0", "x7.0"),
    details=Details(title="t"),
    expected_details=Details(),
)
NEW = SessionKey("tenant", "new")
KAIS = msgspec.structs.replace(chat("x"), user="kai")
SUBJECTS = [Subject("tenant", "kai"), Subject("tenant", session="s")]


IN_ONE_PROCESS = pytest.mark.xdist_group("a large file")
"""It takes seconds to fill."""


@IN_ONE_PROCESS
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda c: sqlite_archive.session(c, 1.0, KEY), id="session"),
        pytest.param(lambda c: sqlite_archive.message(c, 1.0, KEY, "x7.1"), id="message"),
        pytest.param(lambda c: sqlite_archive.lines(c, 1.0, KEY, 100, 50), id="lines"),
        pytest.param(lambda c: sqlite_archive.exchanges(c, 1.0, KEY, None, 50), id="exchanges"),
        pytest.param(lambda c: sqlite_archive.exchanges(c, 1.0, KEY, 99, 50), id="before"),
        pytest.param(lambda c: sqlite_revise.revise(c, 1.0, KEY, EVERYTHING), id="revise"),
        pytest.param(lambda c: sqlite_restore.restore(c, 1.0, NEW, archived()), id="restore"),
        pytest.param(lambda c: sqlite_marks.mark_of(c, SUBJECTS, 1.0), id="marks"),
        pytest.param(lambda c: sqlite_marks.purge(c, 1.0, 2), id="purge"),
    ],
)
def test_no_read_and_no_change_looks_at_more_than_it_is_asked_for(
    large: sqlite3.Connection, work: Callable[[sqlite3.Connection], object]
) -> None:
    run: list[str] = []
    large.execute("BEGIN IMMEDIATE")
    large.set_trace_callback(run.append)
    assert work(large) is not False
    large.set_trace_callback(None)
    large.execute("ROLLBACK")
    assert run
    for statement in set(run):
        plan = [step for *_, step in large.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert not [step for step in plan if step.startswith("SCAN")], (statement, plan)
        assert not [step for step in plan if "TEMP B-TREE" in step], (statement, plan)


@IN_ONE_PROCESS
@pytest.mark.parametrize(
    ("work", "most"),
    [
        pytest.param(lambda c: sqlite_archive.lines(c, 1.0, KEY, 100, 500), 2, id="lines"),
        pytest.param(lambda c: sqlite_archive.exchanges(c, 1.0, KEY, None, 500), 2, id="exchanges"),
        pytest.param(lambda c: sqlite_archive.session(c, 1.0, KEY), 1, id="session"),
        pytest.param(
            lambda c: sqlite_archive.sessions(c, 1.0, "tenant", "kai", None, 9), 1, id="sessions"
        ),
    ],
)
def test_a_page_takes_few_queries(
    large: sqlite3.Connection, work: Callable[[sqlite3.Connection], object], most: int
) -> None:
    run: list[str] = []
    large.set_trace_callback(run.append)
    assert work(large)
    large.set_trace_callback(None)
    asked = [each for each in run if not each.startswith("--")]
    assert len(asked) <= most


@IN_ONE_PROCESS
@pytest.mark.parametrize(
    ("work", "most"),
    [
        pytest.param(
            lambda c: sqlite_read.load(c, 1.0, NEW, LoadOptions("default"), None), 1, id="load"
        ),
        pytest.param(lambda c: sqlite_write.commit(c, 1.0, NEW, chat("x")), 4, id="commit"),
        pytest.param(lambda c: sqlite_write.commit(c, 1.0, KEY, KAIS), 4, id="next commit"),
    ],
)
def test_a_turn_takes_few_statements(
    large: sqlite3.Connection, work: Callable[[sqlite3.Connection], object], most: int
) -> None:
    run: list[str] = []
    large.execute("BEGIN IMMEDIATE")
    large.set_trace_callback(run.append)
    assert work(large)
    large.set_trace_callback(None)
    large.execute("ROLLBACK")
    assert 0 < len(run) <= most
