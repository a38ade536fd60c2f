"""The spool: durable, in order, shared by processes, bounded."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.memory.model import SessionKey
from proxy.memory.recording.place import file_lock
from proxy.memory.recording.spool import STAMP_SECONDS, Kind, Spool, SpoolError
from proxy.memory.recording.spool_file import Stamp
from tests.support.waiting import PATIENCE

STORE = "redis://127.0.0.1:6379"
ONE = SessionKey("tenant", "one")
TWO = SessionKey("tenant", "two")
MANY = 1 << 20


def opened(path: Path, store: str = STORE, max_bytes: int = MANY) -> Spool:
    spool = Spool(path, store, max_bytes)
    spool.open()
    return spool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "spool.db"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    made = opened(path)
    yield made
    made.close()


@pytest.fixture
def other_worker(path: Path, spool: Spool) -> Iterator[Spool]:
    made = opened(path)
    yield made
    made.close()


def exchanges(spool: Spool, key: SessionKey | None = None) -> list[str]:
    return [entry.exchange for entry in spool.entries(key)]


def test_what_was_put_is_there_for_another_worker(spool: Spool, other_worker: Spool) -> None:
    spool.put(ONE, "x1", "commit", b'{"a":"\xc3\xa9"}')
    (entry,) = other_worker.entries()
    assert (entry.key, entry.exchange, entry.kind) == (ONE, "x1", "commit")
    assert entry.payload == b'{"a":"\xc3\xa9"}'


def test_entries_come_in_the_order_in_which_they_came(spool: Spool, other_worker: Spool) -> None:
    for number in range(6):
        worker = (spool, other_worker)[number % 2]
        worker.put(ONE if number % 3 else TWO, f"x{number}", "commit", b"")
    assert exchanges(spool) == [f"x{number}" for number in range(6)]
    assert exchanges(spool, ONE) == ["x1", "x2", "x4", "x5"]
    assert exchanges(spool, TWO) == ["x0", "x3"]


def test_the_same_exchange_and_kind_again_is_one_entry(spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"first")
    spool.put(ONE, "x1", "commit", b"second")
    spool.put(ONE, "x1", "amendment", b"third")
    assert [(e.kind, e.payload) for e in spool.entries()] == [
        ("commit", b"first"),
        ("amendment", b"third"),
    ]


def test_entries_belong_to_one_store(path: Path, spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"")
    another = opened(path, "redis://elsewhere:6379")
    try:
        assert another.is_idle() and not another.has_waiting(ONE) and another.entries() == []
        another.put(ONE, "x1", "commit", b"")
        assert exchanges(spool) == exchanges(another) == ["x1"]
    finally:
        another.close()


def test_a_store_has_what_waits_under_the_names_that_it_had(path: Path, spool: Spool) -> None:
    older, another = opened(path, "older"), opened(path, "another")
    for exchange in ("x1", "x2"):
        older.put(ONE, exchange, "commit", b"")
    spool.put(ONE, "x2", "commit", b"")
    another.put(TWO, "y1", "commit", b"")
    assert spool.waiting_for_others() == {"another": 1, "older": 2}
    again = Spool(path, STORE, MANY, lambda name, other: {name, other} == {"older", STORE})
    again.open()
    assert exchanges(again) == ["x1", "x2"] and again.has_waiting(ONE)
    assert again.waiting_for_others() == {"another": 1} and older.entries() == []
    for made in (older, another, again):
        made.close()


def test_who_waits_is_known_to_every_worker(spool: Spool, other_worker: Spool) -> None:
    assert spool.is_idle() and other_worker.is_idle()
    spool.put(ONE, "x1", "commit", b"")
    for worker in (spool, other_worker):
        assert worker.has_waiting(ONE) and not worker.has_waiting(TWO) and not worker.is_idle()
    other_worker.remove(other_worker.entries()[0])
    for worker in (spool, other_worker):
        assert worker.is_idle() and not worker.has_waiting(ONE)


def test_what_is_quarantined_is_kept_out_of_the_way(spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"")
    spool.put(ONE, "x2", "commit", b"")
    spool.quarantine(spool.entries()[0], "foreign")
    assert exchanges(spool) == ["x2"]
    assert spool.depth() == (1, 1)
    spool.remove(spool.entries()[0])
    assert spool.is_idle() and spool.depth() == (0, 1)


def test_nobody_else_may_read_the_file(path: Path, spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(modes, 0o600)
    assert path.name in modes


def test_a_full_spool_refuses_and_takes_again_once_there_is_room(path: Path) -> None:
    spool = opened(path, max_bytes=200_000)
    with pytest.raises(SpoolError, match="full"):
        for number in range(10):
            spool.put(ONE, f"x{number}", "commit", bytes(50_000))
    held = spool.entries()
    assert 1 <= len(held) <= 4
    for entry in held:
        spool.remove(entry)
    spool.put(ONE, "later", "commit", bytes(50_000))
    assert exchanges(spool) == ["later"]
    spool.close()


@pytest.mark.parametrize("obstacle", ["a-folder", "below-a-file"])
def test_a_spool_that_cannot_be_opened_says_so(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / "taken"
    if obstacle == "a-folder":
        path.mkdir()
    else:
        path.write_text("")
        path /= "spool.db"
    spool = Spool(path, STORE, MANY)
    with pytest.raises(SpoolError):
        spool.open()
    with pytest.raises(SpoolError):
        spool.put(ONE, "x1", "commit", b"")
    assert not spool.has_waiting(ONE)
    spool.close()


def test_a_closed_spool_refuses(spool: Spool) -> None:
    spool.close()
    for use in (spool.check, spool.entries, spool.depth):
        with pytest.raises(SpoolError, match="not open"):
            use()


def test_a_spool_that_can_be_written_passes_its_check(spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"")
    spool.check()
    assert exchanges(spool) == ["x1"]


def test_many_threads_lose_nothing(spool: Spool, other_worker: Spool) -> None:
    def put(number: int) -> None:
        worker = (spool, other_worker)[number % 2]
        worker.put(SessionKey("t", f"s{number % 7}"), f"x{number}", "commit", b"%d" % number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(80)))
    assert sorted(exchanges(spool)) == sorted(f"x{number}" for number in range(80))


KEY, OTHER = SessionKey("tenant", "session"), SessionKey("tenant", "other")
KEYS = st.builds(SessionKey, st.text(max_size=5), st.text("{}:*%'\"\\\0 é", max_size=5))
KINDS = st.sampled_from(["commit", "deferred", "amendment"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.sampled_from("abc"), KINDS, st.binary(max_size=20)),
        st.tuples(st.sampled_from(["done", "quarantine"]), st.integers(0, 5)),
    ),
    max_size=12,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_a_spool_is_a_list_without_repetitions(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, ...]]
) -> None:
    spool = opened(tmp_path_factory.mktemp("spool") / "spool.db")
    waiting: list[tuple[SessionKey, str, Kind, bytes]] = []
    taken: set[tuple[str, Kind]] = set()
    for name, *arguments in steps:
        if name == "put":
            key, exchange, kind, payload = arguments
            spool.put(key, exchange, kind, payload)  # type: ignore[arg-type]
            if (exchange, kind) not in taken:
                waiting.append((key, exchange, kind, payload))  # type: ignore[arg-type]
            taken.add((exchange, kind))  # type: ignore[arg-type]
        elif waiting:
            at = int(str(arguments[0])) % len(waiting)
            entry = spool.entries()[at]
            if name == "done":
                spool.remove(entry)
                taken.discard((entry.exchange, entry.kind))
            else:
                spool.quarantine(entry, "foreign")
            del waiting[at]
    assert [entry[1:] for entry in spool.entries()] == waiting
    assert spool.is_idle() is not bool(waiting)
    assert all(spool.has_waiting(key) for key, *_ in waiting)
    spool.close()


def opens_all(paths: Sequence[Path], together: Barrier, told: SimpleQueue[str]) -> None:
    """What one of several processes sees of opening new spools."""
    for path in paths:
        spool = Spool(path, "store", 10**9)
        together.wait(PATIENCE)
        told.put(opens(spool))


def opens(spool: Spool) -> str:
    try:
        spool.open()
        spool.put(SessionKey("tenant", "session"), str(os.getpid()), "commit", b"{}")
    except SpoolError as failure:
        return str(failure)
    finally:
        spool.close()
    return ""


def test_workers_that_open_a_new_spool_at_once_all_get_it(tmp_path: Path) -> None:
    """One that did not would lose what it cannot keep for a store that is down."""
    spawned = get_context("spawn")
    paths = [tmp_path / f"{attempt}.db" for attempt in range(6)]
    told: SimpleQueue[str] = spawned.SimpleQueue()
    arguments = (paths, spawned.Barrier(3), told)
    workers = [spawned.Process(target=opens_all, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in paths:
        assert [told.get() for _ in workers] == ["", "", ""]
    for worker in workers:
        worker.join(PATIENCE)
    for path in paths:
        spool = Spool(path, "store", 10**9)
        spool.open()
        assert len(spool.entries()) == 3
        spool.close()


@pytest.mark.parametrize("how", ["deleted", "deleted with its log", "another process was first"])
def test_what_waits_is_taken_along_when_the_file_is_deleted_or_replaced(
    tmp_path: Path, how: str
) -> None:
    path = tmp_path / "spool.db"
    spool = Spool(path, "store", 1 << 20)
    spool.open()
    spool.put(KEY, "x1", "commit", b"1")
    path.unlink()
    if how != "deleted":
        for name in ("spool.db-wal", "spool.db-shm"):
            (tmp_path / name).unlink()
    if how == "another process was first":
        other = Spool(path, "store", 1 << 20)
        other.open()
        other.put(KEY, "y1", "commit", b"1")
        other.close()
    spool.put(KEY, "x2", "commit", b"2")
    expected = {"x1", "x2"} | ({"y1"} if how == "another process was first" else set())
    assert {entry.exchange for entry in spool.entries()} == expected
    assert spool.has_waiting(KEY)
    spool.close()
    again = Spool(path, "store", 1 << 20)
    again.open()
    assert {entry.exchange for entry in again.entries()} == expected
    again.close()


@pytest.mark.parametrize("behind", [True, False], ids=["one was behind", "both had followed"])
def test_workers_whose_file_is_deleted_again_and_again_lose_nothing(
    path: Path, spool: Spool, other_worker: Spool, behind: bool
) -> None:
    """What is left of a file that is gone is another worker's, who has not noticed yet."""
    spool.put(ONE, "x1", "commit", b"{}")
    for number in range(4):
        worker = (spool, other_worker)[number % 2]
        path.unlink()
        worker.put(TWO, f"y{number}", "commit", b"{}")
        if not behind:
            assert exchanges(spool) == exchanges(other_worker)
    for worker in (spool, other_worker):
        assert sorted(exchanges(worker)) == ["x1", "y0", "y1", "y2", "y3"]


def test_a_worker_that_follows_waits_for_the_one_that_does(path: Path, spool: Spool) -> None:
    spool.put(ONE, "x1", "commit", b"{}")
    path.unlink()
    with ThreadPoolExecutor(1) as pool, file_lock(path.with_name("spool.db-lock"), PATIENCE):
        following = pool.submit(spool.entries)
        assert wait([following], STAMP_SECONDS).not_done and not path.exists()
    assert [entry.exchange for entry in following.result()] == ["x1"]


def test_a_spool_that_nobody_uses_is_not_open_once_its_file_is_gone(
    path: Path, spool: Spool
) -> None:
    """So that whoever replays opens it again, and takes along what only this process has."""
    spool.put(ONE, "x1", "commit", b"{}")
    path.unlink()
    noticed = not spool.is_open
    spool.open()
    assert noticed and spool.is_open and exchanges(spool) == ["x1"]


def test_what_waits_is_kept_and_read_where_it_cannot_be_taken_along_yet(
    path: Path,
    spool: Spool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def copies(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    spool.put(ONE, "x1", "commit", b"{}")
    path.unlink()
    with monkeypatch.context() as full:
        full.setattr("proxy.memory.recording.spool.copy_entries", copies)
        with pytest.raises(SpoolError, match="full"):
            spool.put(ONE, "x2", "commit", b"{}")
        spool.open()
        assert exchanges(spool) == ["x1"] and spool.has_waiting(ONE)
        assert spool.depth() == (1, 0) and spool.size_of(ONE) == (1, 2)
        spool.skip(spool.entries()[0])
        assert exchanges(spool, ONE) == [] and spool.is_idle()
        with pytest.raises(SpoolError, match="full"):
            spool.check()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    spool.put(ONE, "x3", "commit", b"{}")
    assert exchanges(spool) == ["x1", "x3"]


def test_a_file_put_beside_the_log_of_the_old_one_is_not_touched(tmp_path: Path) -> None:
    """SQLite would read the old log into it."""
    path, away = tmp_path / "spool.db", tmp_path / "away"
    spool = Spool(path, "store", 1 << 20)
    spool.open()
    spool.put(KEY, "x1", "commit", b"1")
    path.rename(away)
    path.write_bytes(b"SQLite format 3\x00 and what an operator has put there")
    with pytest.raises(SpoolError, match="replaced"):
        spool.put(KEY, "x2", "commit", b"2")
    away.replace(path)
    spool.put(KEY, "x2", "commit", b"2")
    assert [entry.exchange for entry in spool.entries()] == ["x1", "x2"]
    spool.close()


def test_what_is_read_at_once_is_bounded_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory.recording.spool.PAGE_BYTES", 25)
    spool = Spool(tmp_path / "spool.db", "store", 1 << 20)
    spool.open()
    for number in range(5):
        spool.put(KEY, f"x{number}", "commit", b"x" * 10)
    assert [entry.exchange for entry in spool.entries()] == ["x0", "x1"]
    spool.put(OTHER, "y0", "commit", b"x" * 100)
    assert [entry.exchange for entry in spool.entries(OTHER)] == ["y0"]
    assert [head.key for head in spool.oldest_by_session(-1, 10)] == [KEY, OTHER]
    assert spool.size_of(KEY) == (5, 50)
    spool.close()


def test_what_another_worker_puts_is_seen_at_once(spool: Spool, other_worker: Spool) -> None:
    for n in range(20):
        key = SessionKey("tenant", f"session-{n}")
        assert not spool.has_waiting(key)
        other_worker.put(key, f"x{n}", "commit", b"{}")
        assert spool.has_waiting(key)
    for entry in other_worker.entries():
        other_worker.remove(entry)
    assert spool.is_idle()


def test_what_a_worker_had_no_time_to_tell_of_is_seen_a_moment_later(
    spool: Spool, other_worker: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SessionKey("tenant", "session")
    assert not spool.has_waiting(key)
    monkeypatch.setattr(Stamp, "update", lambda self: None)
    other_worker.put(key, "x1", "commit", b"{}")
    time.sleep(STAMP_SECONDS)
    assert spool.has_waiting(key)


def test_a_disk_without_room_for_the_stamp_is_an_error_and_no_signal(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("spool.db-stamp").symlink_to("/dev/full")
    spool = opened(path)
    with pytest.raises(SpoolError, match="No space left"):
        spool.check()
    assert spool.entries() == [] and not spool.has_waiting(ONE)
    spool.close()


def empties_the_stamp(path: Path) -> None:
    spool = opened(path)
    os.truncate(path.with_name("spool.db-stamp"), 0)
    assert spool.is_idle()
    spool.put(ONE, "x1", "commit", b"{}")
    assert spool.has_waiting(ONE)


def test_a_stamp_that_somebody_has_emptied_ends_no_process(path: Path) -> None:
    worker = get_context("spawn").Process(target=empties_the_stamp, args=(path,))
    worker.start()
    worker.join(PATIENCE)
    assert worker.exitcode == 0
