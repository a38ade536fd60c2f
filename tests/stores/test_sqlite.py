"""What only the SQLite store promises: one private file, many processes, no half writes."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

from proxy.memory.model import IDEMPOTENCY_SECONDS, LoadOptions, SessionKey, WorkRequest
from proxy.memory.store import StoreError, StoreFull, StoreInUse, StoreTimeout
from proxy.stores.sqlite import file as sqlite_file
from proxy.stores.sqlite import schema, worker
from proxy.stores.sqlite.rows import ROWS
from proxy.stores.sqlite.schema import (
    MIGRATIONS,
    SCHEMA,
    Unusable,
    connect,
    migrate,
    schema_of,
    version,
)
from proxy.stores.sqlite.store import SQLiteStore
from proxy.stores.sqlite.worker import MAX_LATER_JOBS, Job, Jobs, Priority
from tests.support.clock import Clock
from tests.support.processes.program import ROOT
from tests.support.store.commits import chat, draft, exchange, record, summary
from tests.support.store.files import files_of_at_most, opened
from tests.support.waiting import PATIENCE, eventually

ALL = LoadOptions(profile="default", whole=True)
KEY = SessionKey("tenant", "session")

WRITER = """
import asyncio, pathlib, sys
from proxy.memory.model import SessionKey
from proxy.stores.sqlite.store import SQLiteStore
from tests.support.store.commits import chat

async def main(path, name, count):
    store = SQLiteStore(pathlib.Path(path), commit_timeout=20)
    await store.open()
    for n in range(count):
        await store.commit(SessionKey("tenant", "session"), chat(f"{name}{n}", 1000.0 + n))
        print(n, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memory.db"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with opened(path, clock) as store:
        yield store


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=root)


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_the_file_is_private_and_its_folder_is_made(store: SQLiteStore, path: Path) -> None:
    await store.ping()
    await store.commit(KEY, chat("x1"))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {file.suffix for file in path.parent.iterdir()} == {".db", ".db-wal", ".db-shm"}


async def test_commits_are_flushed_to_the_disk(path: Path) -> None:
    with closing(connect(path, 1)) as connection:
        pragmas = ("journal_mode", "synchronous", "secure_delete")
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert values == ["wal", 2, 1]


async def test_what_was_committed_is_there_after_reopening(store: SQLiteStore, path: Path) -> None:
    await store.commit(KEY, chat("x1"))
    before = await store.load(KEY, ALL)
    await store.close()
    with pytest.raises(StoreError, match="not open"):
        await store.load(KEY, ALL)
    await store.open()
    assert await store.load(KEY, ALL) == before


async def test_a_file_of_a_newer_version_is_refused_clearly(path: Path, clock: Clock) -> None:
    connect(path, 1).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    store = SQLiteStore(path, clock=clock)
    await store.open()
    for attempt in (store.ping(), store.load(KEY, ALL), store.commit(KEY, chat("x1"))):
        with pytest.raises(StoreError, match="newer release"):
            await attempt
    await store.close()


def test_a_file_of_an_older_version_is_brought_up_to_date(path: Path) -> None:
    with closing(connect(path, 1)) as connection:
        newer = (*MIGRATIONS, "ALTER TABLE sessions ADD COLUMN extra TEXT; CREATE TABLE t (a)")
        migrate(connection, newer)
        migrate(connection, newer)
        assert connection.execute("SELECT extra FROM sessions").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(newer)


async def test_a_session_from_before_summaries_can_be_summarised(
    store: SQLiteStore, path: Path
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:2])
        connection.execute(
            "INSERT INTO sessions (id, tenant, session, system_tokens, next, messages, tokens,"
            " last, ttl, created_at, last_active_at)"
            " VALUES (1, 'tenant', 'session', 0, 3, 2, 20, 'x1', 0, 1, 1)"
        )
        connection.execute(
            "INSERT INTO exchanges VALUES (1, 'x1', 1, 2, 0, 'default', 1, 1, ?, NULL)",
            (msgspec.json.encode(exchange("x1", size=2)),),
        )
        for seq, each in enumerate(chat("x1").drafts, 1):
            entry = msgspec.json.encode(((1, seq), each.card))
            row = (1, seq, 1, each.card.tokens, 1, entry, each.body, None)
            connection.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    seen = await store.load(KEY, ALL)
    assert [entry.card.id for entry in seen.log] == ["x1.0", "x1.1"]
    assert (seen.summary, seen.changes, seen.stalled) == (None, 0, False)
    assert await store.put_summary(KEY, summary(3), 0, 0)
    due = WorkRequest(kind="summary", profile="default", due_at=1.0)
    assert (
        await store.commit(KEY, chat("x2", superseded=("x1.1",), work_requests=(due,)))
        == "recorded"
    )
    seen = await store.load(KEY, ALL)
    assert (seen.summary, seen.changes) == (None, 1)
    assert [work.session for work in await store.waiting(1.0, 10)] == [KEY.session]


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    with closing(connect(path, 1)) as connection:
        with pytest.raises(sqlite3.Error):
            migrate(connection, (*MIGRATIONS, "CREATE TABLE t (a); SELECT nonsense"))
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            connection.execute("SELECT * FROM t")


def test_a_migration_that_is_killed_leaves_the_file_as_it_was(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    script = f"""
        import os, sqlite3
        from proxy.stores.sqlite.schema import MIGRATIONS
        from proxy.stores.sqlite.schema import migrate
        connection = sqlite3.connect({str(path)!r}, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:4])
        connection.create_function("die", 0, lambda: os._exit(9))
        connection.execute("PRAGMA cache_size = 1")  # pages reach the disk before the end
        migrate(connection, (*MIGRATIONS, "SELECT die()"))
    """
    died = subprocess.run([sys.executable, "-c", dedent(script)], cwd=ROOT, timeout=PATIENCE)
    assert died.returncode == 9
    assert schema_of(path, PATIENCE) == 4
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        columns = {row[1] for row in connection.execute("PRAGMA table_info(sessions)")}
        assert "title" not in columns
    connect(path, PATIENCE).close()
    assert schema_of(path, PATIENCE) == SCHEMA


def test_bringing_a_file_up_to_date_is_said_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    older(path, 4)
    connect(path, PATIENCE).close()
    connect(path, PATIENCE).close()
    assert caplog.messages == [f"the database {path} was brought from schema 4 to {SCHEMA}"]


async def test_a_store_that_is_taken_as_it_is_makes_and_changes_no_file(path: Path) -> None:
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE, as_is=True)
    await store.open()
    try:
        with pytest.raises(StoreError):
            await store.ping()
        assert not path.parent.exists()
        older(path, 4)
        for attempt in (store.ping(), store.commit(KEY, chat("x1"))):
            with pytest.raises(StoreError, match=f"has schema 4, this release writes {SCHEMA}"):
                await attempt
        assert schema_of(path, PATIENCE) == 4
        connect(path, PATIENCE).close()
        assert await store.commit(KEY, chat("x1")) == "recorded"
    finally:
        await store.close()


@pytest.mark.parametrize("spoilt", ["text", "foreign", "cut"])
def test_a_file_that_can_never_be_used_is_told_apart(path: Path, spoilt: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if spoilt == "text":
        path.write_text("no database" * 100)
    elif spoilt == "foreign":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE bookmarks (url TEXT)")
    else:
        connect(path, PATIENCE).close()
        path.write_bytes(path.read_bytes()[:4096].replace(b"CREATE", b"\0\0\0\0\0\0"))
    before = path.read_bytes()
    with pytest.raises(Unusable, match="another file"):
        schema_of(path, PATIENCE)
    assert path.read_bytes() == before


def test_a_file_that_another_process_is_just_making_is_no_foreign_one(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)

    class Overtaken(sqlite3.Connection):
        def execute(self, *statement: Any) -> sqlite3.Cursor:
            rows = super().execute(*statement).fetchall()
            connect(path, PATIENCE).close()
            return super().execute("SELECT ?", rows[0])

    with closing(sqlite3.connect(path, factory=Overtaken)) as connection:
        assert version(connection) in (0, SCHEMA)


def older(path: Path, schema: int) -> None:
    """A file as an older release left it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, MIGRATIONS[:schema])


async def test_a_path_that_cannot_be_written_is_an_error_of_each_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SQLiteStore(tmp_path / "file" / "memory.db")
    await store.open()
    with pytest.raises(StoreError, match="file"):
        await store.ping()
    (tmp_path / "file").unlink()
    await store.ping()
    await store.close()


async def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    store = SQLiteStore(path)
    await store.open()
    with pytest.raises(StoreError, match="not a database"):
        await store.commit(KEY, chat("x1"))
    await store.close()


async def test_a_job_that_fails_undoes_its_own_writes_and_no_others(store: SQLiteStore) -> None:
    # A message without a body is refused when its exchange is written already.
    broken = record("bad", msgspec.structs.replace(draft("bad", 0), body=None))
    good = [chat(f"x{n}") for n in range(5)]
    commits = [*good[:3], broken, *good[3:]]
    results = await asyncio.gather(
        *(store.commit(KEY, commit) for commit in commits), return_exceptions=True
    )
    assert [result for result in results if result == "recorded"] == ["recorded"] * 5
    assert isinstance(results[3], StoreError)
    seen = await store.load(KEY, ALL)
    assert [entry.position.seq for entry in seen.log] == list(range(1, 11))
    assert await store.exchange(KEY, "bad") is None


async def test_commits_that_wait_together_share_a_transaction(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("first"))
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    frames = (path.parent / "memory.db-wal").stat().st_size
    waiting = [asyncio.create_task(store.commit(KEY, chat(f"x{n}"))) for n in range(30)]
    await asyncio.wait(waiting, timeout=0.05)
    assert not any(task.done() for task in waiting)
    lock.execute("ROLLBACK")
    lock.close()
    assert await asyncio.gather(*waiting) == ["recorded"] * 30
    grown = (path.parent / "memory.db-wal").stat().st_size - frames
    # 30 transactions would write each of the pages they share, some ten, once each.
    assert 0 < grown < 30 * 5 * 4096


async def test_what_nobody_waits_for_gives_way() -> None:
    loop = asyncio.get_running_loop()
    jobs = Jobs()
    turns: dict[Priority, int] = {"later": MAX_LATER_JOBS + 2, "soon": 2}
    for turn in (turn for turn, count in turns.items() for _ in range(count)):
        jobs.put(Job(lambda c: None, loop, loop.create_future(), turn))
    jobs.put(None)
    first, second = jobs.take(64), jobs.take(64)
    assert [job and job.priority for job in first] == ["soon", "soon", *["later"] * MAX_LATER_JOBS]
    assert [job and job.priority for job in second] == ["later", "later", None]


async def test_what_is_large_is_alone_and_takes_turns_with_the_others() -> None:
    jobs, loop = Jobs(), asyncio.get_running_loop()

    def put(turn: Priority = "soon") -> Job:
        job = Job(lambda c: None, loop, loop.create_future(), turn)
        jobs.put(job)
        return job

    large = [put("large") for _ in range(3)]
    small, later = [put(), put()], put("later")
    assert jobs.take(64) == [*small, later]
    more = put()
    assert jobs.take(64) == [large[0]]
    assert jobs.take(64) == [more]
    jobs.put(None)
    assert [jobs.take(64) for _ in range(3)] == [[large[1]], [large[2]], [None]]


@pytest.mark.parametrize("count", [ROWS - 1, ROWS, 2 * ROWS + 1])
async def test_all_of_many_messages_are_written(store: SQLiteStore, count: int) -> None:
    drafts = [draft("x", n, wire=b"{}" if n % 2 else None) for n in range(count)]
    await store.commit(KEY, record("x", *drafts))
    lines = (await store.lines(KEY, 0, 1000)).items
    assert [line.card.id for line in lines] == [f"x.{n}" for n in range(count)]
    assert [line.wire for line in lines] == [each.wire for each in drafts]


async def test_a_caller_that_gives_up_leaves_nothing_half_written(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("first"))
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    tasks = [asyncio.create_task(store.commit(KEY, chat(f"x{n}"))) for n in range(20)]
    await asyncio.wait(tasks, timeout=0.02)
    for task in tasks[::2]:
        task.cancel()
    lock.execute("ROLLBACK")
    lock.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[1::2] == ["recorded"] * 10
    log = (await store.load(KEY, ALL)).log
    whole = {entry.card.exchange for entry in log}
    assert len(log) == 2 * len(whole)
    assert {f"x{n}" for n in range(1, 20, 2)} <= whole


SLOW = """
WITH RECURSIVE n(i) AS (SELECT begun() UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
SELECT sum(length(hex(randomblob(1000000)))) FROM n
"""
"""Few instructions of SQLite's, and each takes milliseconds."""


@pytest.mark.parametrize("leaves", [False, True], ids=["out of time", "cancelled"])
async def test_what_nobody_waits_for_any_more_is_not_read_to_its_end(
    path: Path, leaves: bool
) -> None:
    store = SQLiteStore(path, timeout=PATIENCE if leaves else 0.05)
    await store.open()
    begun, ended = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def begins() -> int:
        loop.call_soon_threadsafe(begun.set)
        return 1

    def slow(connection: sqlite3.Connection) -> None:
        connection.create_function("begun", 0, begins)
        try:
            connection.execute(SLOW).fetchone()
        except sqlite3.OperationalError as error:
            ended.append(str(error))
            raise

    reading = asyncio.ensure_future(store._list(slow))
    await begun.wait()
    if leaves:
        reading.cancel()
    with pytest.raises(asyncio.CancelledError if leaves else StoreTimeout):
        await reading
    async with asyncio.timeout(PATIENCE):
        while not ended:
            with suppress(StoreTimeout):
                await store._list(lambda connection: None)
    assert ended == ["interrupted"]
    await store.close()


async def test_a_read_that_is_left_holds_no_old_state_for_those_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "STEPS", 1)  # else one of thousands is interrupted as it ends
    store = SQLiteStore(path, timeout=PATIENCE)
    await store.open()
    begun, left, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def slow(connection: sqlite3.Connection) -> None:
        connection.execute("SELECT count(*) FROM sessions").fetchone()
        loop.call_soon_threadsafe(begun.set)
        left.wait(PATIENCE)

    reading = asyncio.ensure_future(store._list(partial(worker.consistent_read, work=slow)))
    await begun.wait()
    reading.cancel()
    await asyncio.wait({reading})
    left.set()
    await store.commit(KEY, chat("said later"))
    assert await store.session(KEY) is not None
    await store.close()


async def test_pages_that_take_long_have_their_time_one_after_the_other(path: Path) -> None:
    store = SQLiteStore(path, timeout=0.5)
    await store.open()
    await asyncio.gather(*(store._page(lambda connection: time.sleep(0.2)) for _ in range(6)))
    await store.close()


async def test_a_file_that_stays_locked_is_a_timeout(path: Path) -> None:
    store = SQLiteStore(path, commit_timeout=1)
    await store.open()
    await store.commit(KEY, chat("x1"))
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreTimeout):
            await store.commit(KEY, chat("x2"))
        assert (await store.load(KEY, ALL)).messages == 2
        lock.execute("ROLLBACK")
    assert await store.commit(KEY, chat("x2")) in ("recorded", "duplicate")
    await store.close()


async def test_expired_sessions_are_invisible_at_once_and_removed_by_later_commits(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    keys = [SessionKey("tenant", f"s{n}") for n in range(3)]
    for key in keys:
        await store.commit(key, chat("x1", user="kai", ttl=10))
    clock.now += 9
    await store.commit(keys[2], chat("x2"))
    clock.now += 1
    assert not (await store.load(keys[0], ALL)).exists
    assert await store.session(keys[0]) is None
    assert await store.bodies(keys[0], ["x1.0"]) == {}
    assert [s.id for s in (await store.sessions("tenant", "kai", None, 9)).items] == ["s2"]
    assert (await store.load(keys[2], ALL)).messages == 4
    assert await store.commit(keys[0], chat("x1", user="eve")) == "recorded"
    assert (await store.load(keys[0], ALL)).owner == "eve"
    clock.now += 1000
    await store.commit(KEY, chat("x1"))
    await store.commit(KEY, chat("x2"))
    assert count(path, "sessions") == 2


async def test_old_idempotency_keys_are_removed(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    await store.commit(KEY, chat("x1", 0.0, idempotency_key="old"))
    await store.commit(KEY, chat("x2", 2.0 * IDEMPOTENCY_SECONDS, idempotency_key="new"))
    assert count(path, "keys") == 1


async def test_nothing_of_a_deleted_session_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    secret = draft("secret-text", 0)
    await store.commit(KEY, record("secret-text", secret, user="kai"))
    assert any(b"secret-text" in file.read_bytes() for file in path.parent.iterdir())
    assert await store.delete(KEY) is True
    for file in path.parent.iterdir():
        assert b"secret-text" not in file.read_bytes()


async def test_nothing_of_a_summary_that_is_gone_stays_in_the_files(
    store: SQLiteStore, path: Path
) -> None:
    def in_the_files(text: bytes) -> bool:
        return any(text in file.read_bytes() for file in path.parent.iterdir())

    other = SessionKey("tenant", "other")
    for key in (KEY, other):
        await store.commit(key, chat("x1"))
        for after in range(3):
            secret = f"secret-{key.session} " * 500
            await store.put_summary(key, summary(3, secret), after, None)
        assert in_the_files(f"secret-{key.session}".encode())
    assert await store.drop_summaries(KEY)
    assert not in_the_files(b"secret-session") and in_the_files(b"secret-other")
    assert await store.delete(other)
    assert not in_the_files(b"secret-other")
    assert count(path, "summaries") == 0


async def test_several_processes_write_one_session_without_gaps(
    store: SQLiteStore, path: Path
) -> None:
    await store.ping()
    writers = [writer(path, name, 30) for name in ("a", "b")]
    for process in writers:
        out, _ = await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == 0 and out.count("\n") == 30
    log = (await store.load(KEY, ALL)).log
    assert [entry.position.seq for entry in log] == list(range(1, 121))
    pairs = [entry.card.exchange for entry in log]
    assert pairs[::2] == pairs[1::2] and len(set(pairs)) == 60


async def test_another_process_that_comes_and_goes_leaves_the_log_alone(
    store: SQLiteStore, path: Path
) -> None:
    """The last connection to close removes the log: it must not take itself for the last."""
    await store.commit(KEY, chat("x1"))
    await store.load(KEY, ALL)
    log = path.with_name("memory.db-wal").stat().st_ino
    visitor = await asyncio.to_thread(writer(path, "visitor", 1).communicate, timeout=30)
    assert visitor[0] == "0\n"
    assert path.with_name("memory.db-wal").stat().st_ino == log
    await store.commit(KEY, chat("x2"))
    assert (await store.load(KEY, ALL)).messages == 6


async def test_what_was_acknowledged_survives_a_kill(store: SQLiteStore, path: Path) -> None:
    process = writer(path, "x", 10_000)
    assert process.stdout is not None
    for _ in range(25):
        acknowledged = int(await asyncio.to_thread(process.stdout.readline))
    process.kill()
    rest = await asyncio.to_thread(process.stdout.read)
    await asyncio.to_thread(process.wait)
    process.stdout.close()
    acknowledged += rest.count("\n")
    log = (await store.load(KEY, ALL)).log
    assert len(log) >= 2 * (acknowledged + 1) and len(log) % 2 == 0
    assert [entry.position.seq for entry in log] == list(range(1, len(log) + 1))


async def test_an_idle_store_keeps_no_look_at_the_file_open(store: SQLiteStore, path: Path) -> None:
    """One that did would keep the log of a deleted session from being emptied."""
    idle = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await idle.open()
    await store.commit(KEY, chat("x0", 1000.0))
    await idle.load(KEY, ALL)
    await idle.sessions("tenant", None, None, 10)
    await idle.ping()
    await store.delete(KEY)
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0
    await idle.close()


async def test_a_full_disk_is_told_from_a_store_that_is_away(store: SQLiteStore) -> None:
    key = SessionKey("t", "s")
    await store.commit(key, chat("a", 1.0))
    await store._write(lambda c: c.execute("PRAGMA max_page_count = 1").fetchone())
    long = draft("b", 0, wire=b'{"role":"user","content":"%b"}' % (b"x" * 100_000))
    with pytest.raises(StoreFull):
        await store.commit(key, record("b", long, at=2.0))
    several = [store.commit(key, record(f"c{n}", long, at=2.0)) for n in range(4)]
    outcomes = await asyncio.gather(*several, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreFull}
    assert (await store.load(key, LoadOptions(profile=""))).messages == 2


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Somebody who stays in the log, as a backup does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchone()
        yield


async def test_a_reader_that_stays_in_the_log_does_not_undo_a_delete(
    store: SQLiteStore, path: Path
) -> None:
    await store.commit(KEY, chat("x0", 1000.0))
    with reading(path):
        assert await store.delete(KEY)
    assert await store.session(KEY) is None


async def test_a_text_that_a_reader_keeps_in_the_log_is_told_until_it_is_gone(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "WIPE_PAUSE", 0.001)
    await store.commit(KEY, chat("x0", 1000.0))
    await store.purge_files()
    with reading(path):
        await store.delete(KEY)
        for _ in range(2):
            with pytest.raises(StoreInUse):
                await store.purge_files()
        assert log_of(path).stat().st_size > 0
    await store.purge_files()
    assert log_of(path).stat().st_size == 0


async def test_a_disk_that_keeps_a_text_in_the_log_is_told_as_such(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file cannot grow, so that what the log has cannot be written into it."""
    monkeypatch.setattr(sqlite_file, "WIPE_PAUSE", 0.001)
    large, larger = (b'{"role":"user","content":"%b"}' % (b"x" * n) for n in (100_000, 1_000_000))
    await store.commit(SessionKey("t", "in the file"), record("x0", draft("x0", 0, wire=larger)))
    await store._empty_log()
    await store.commit(SessionKey("t", "in the log"), record("x1", draft("x1", 0, wire=large)))
    await store.commit(KEY, chat("x2", 1000.0))
    with files_of_at_most(path.stat().st_size):
        await store.delete(KEY)
        with pytest.raises(StoreError, match="disk I/O error"):
            await store.purge_files()
    await store.purge_files()
    assert log_of(path).stat().st_size == 0


async def test_who_wipes_waits_for_a_reader_that_leaves_soon(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(KEY, chat("x0", 1000.0))
    with reading(path):
        await store.delete(KEY)
        wiping = asyncio.create_task(store.purge_files())
        await asyncio.sleep(0)
    await wiping
    assert log_of(path).stat().st_size == 0


async def test_a_log_that_a_reader_kept_is_emptied_when_it_has_left(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "TIDY_INTERVAL", 0.02)
    async with opened(path, clock) as store:
        await store.commit(KEY, chat("x0", 1000.0))
        with reading(path):
            await store.delete(KEY)
            assert log_of(path).stat().st_size > 0

        async def empty() -> bool:
            return log_of(path).stat().st_size == 0

        await eventually(empty)


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


async def test_a_log_that_has_grown_under_a_reader_goes_back_to_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a backup that takes minutes, or a shell that somebody left open."""
    monkeypatch.setattr(schema, "MAX_IDLE_LOG", 100_000)
    async with opened(path, Clock()) as store:
        await store.commit(KEY, chat("x0", 1000.0))
        with reading(path):
            await store._write(lambda c: c.execute("PRAGMA wal_autocheckpoint = 1").fetchone())
            long = draft("x1", 0, wire=b'{"role":"user","content":"%b"}' % (b"x" * 1_000_000))
            await store.commit(KEY, record("x1", long, at=1001.0))
            assert log_of(path).stat().st_size > 1_000_000
        for n in range(2, 5):
            await store.commit(KEY, chat(f"x{n}", 1000.0 + n))
        assert log_of(path).stat().st_size <= 100_000


async def test_processes_that_make_the_file_at_once_all_commit(path: Path) -> None:
    writers = [writer(path, name, 3) for name in "abcd"]
    for process in writers:
        assert await asyncio.to_thread(process.wait, 60) == 0
        assert process.stdout is not None
        assert process.stdout.read().split() == ["0", "1", "2"]
        process.stdout.close()
    assert count(path, "messages") == 2 * 3 * len(writers)


async def test_what_can_be_made_anew_is_synced_with_what_comes_next(path: Path) -> None:
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()

    def synchronous(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA synchronous").fetchone()[0])

    found = [await store._write_later(synchronous), await store._write(synchronous)]
    found += [await store._write_later(synchronous), await store._write_later(synchronous)]
    assert found == [1, 2, 1, 1]
    both = await asyncio.gather(store._write_later(synchronous), store._write(synchronous))
    assert both[1] == 2
    await store.close()
