"""The spool's way into the store, and the recorder's end."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.memory.erasure import Subject
from proxy.memory.model import Amendment, Commit, Outcome, SessionKey, SessionVersion
from proxy.memory.planner import Planner
from proxy.memory.recording.spool import Kind, Spool, SpoolError
from proxy.memory.store import StoreError
from proxy.process.threads import SharedThreads
from tests.support.store.commits import chat, exchange
from tests.support.store.recording import (
    APART,
    ASK,
    KEY,
    OTHER,
    Workbench,
    deferred,
    recorder_over,
    said,
)
from tests.support.store.scanning import found_in_files
from tests.support.waiting import PATIENCE

DOWN = StoreError("connection refused")


@pytest.fixture(autouse=True)
def _failures_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "proxy.memory.recording.recorder")


async def test_nothing_leaves_the_spool_while_the_store_is_down(bench: Workbench) -> None:
    for number in range(3):
        bench.spool.put(KEY, f"x{number}", "commit", b"unread")
    bench.store.fail(DOWN)
    with pytest.raises(StoreError):
        await bench.recorder.replay()
    assert bench.spool.depth() == (3, 0)
    assert not bench.quarantined


@pytest.mark.parametrize("meanwhile", [False, True])
async def test_what_waits_for_a_server_that_is_away_holds_up_no_other(
    bench: Workbench, meanwhile: bool
) -> None:
    async def goes_away() -> None:
        bench.store.away = {APART.tenant}

    if meanwhile:
        bench.store.after_load = goes_away
    else:
        await goes_away()
    for number, key in enumerate((APART, KEY, APART, KEY)):
        await bench.recorder.defer(key, deferred(f"x{number}", said("hello")))
    with pytest.raises(StoreError, match="its server is away"):
        await bench.recorder.replay()
    assert await bench.history() == ["x1", "x3"]
    assert bench.spool.depth() == (2, 0)
    bench.store.away = set()
    await bench.recorder.replay()
    assert await bench.history(APART) == ["x0", "x2"]


async def test_it_is_logged_that_what_waited_is_in_the_store(
    bench: Workbench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "proxy.memory.recording.recorder")
    bench.store.fail(DOWN, "commit")
    for id in ("x1", "x2"):
        await bench.recorder.record(KEY, chat(id))
    bench.store.recover()
    caplog.clear()
    await bench.recorder.replay()
    await bench.recorder.replay()
    (line,) = caplog.records
    assert (line.levelname, vars(line)["fields"]) == ("INFO", {"exchanges": 2})


@pytest.mark.parametrize(
    ("after", "log"),
    [(1.0, "x1 x4"), (6.0, "x1 x3 x4")],
    ids=["answered-at-once", "others-have-gone-on"],
)
async def test_what_has_waited_is_settled_with_what_was_answered_meanwhile(
    bench: Workbench, after: float, log: str
) -> None:
    edit = ("x2.0", "x2.1")
    for commit in (chat("x1"), following("x2", "x1.1")):
        await bench.recorder.record(KEY, commit)
    seen = SessionVersion("x2", 0)
    await bench.recorder.record(KEY, following("x3", "x1.1", at=1000 + after, superseded=edit))
    bench.store.fail(DOWN, "commit")
    late = following("x4", "x1.1", superseded=edit, planned_for=seen)
    assert await bench.recorder.record(KEY, late) == "spooled"
    bench.store.recover()
    await bench.recorder.replay()
    found = (await bench.store.load(KEY, ASK)).log
    assert list(dict.fromkeys(entry.card.exchange for entry in found)) == log.split()


def following(id: str, follows: str, at: float = 1000.0, **fields: Any) -> Commit:
    return replace(chat(id, at, **fields), exchange=exchange(id, at, follows=follows))


@pytest.mark.parametrize("kind", ["commit", "deferred", "amendment", "more"])
async def test_a_large_entry_is_read_in_a_thread(bench: Workbench, kind: Kind) -> None:
    with CountingThreads() as threads:
        planner = Planner(bench.store, SharedThreads(threads))
        recorder = recorder_over(bench.store, bench.spool, planner)
        bench.spool.put(KEY, "x1", kind, b"{" * 1_000_000)
        await recorder.replay()
        assert threads.used == 1
    assert bench.spool.depth() == (0, 1)


class CountingThreads(ThreadPoolExecutor):
    used = 0

    def submit(self, *work: Any, **named: Any) -> Any:
        self.used += 1
        return super().submit(*work, **named)


async def test_an_exchange_of_another_user_is_quarantined(bench: Workbench) -> None:
    await bench.recorder.record(KEY, chat("x1", user="kai"))
    await bench.recorder.defer(KEY, deferred("x2", said("mine?"), user="eve"))
    await bench.recorder.defer(KEY, deferred("x3", said("and I?"), user="kai"))
    await bench.recorder.replay()
    assert await bench.history() == ["x1", "x3"]
    assert bench.spool.depth() == (0, 1) and bench.quarantined == ["one"]


async def test_a_session_that_the_store_refuses_holds_up_no_other(bench: Workbench) -> None:
    bench.store.fail(DOWN, "commit")
    for id, session in [("x1", KEY), ("y1", OTHER), ("x2", KEY)]:
        await bench.recorder.record(session, chat(id))
    bench.store.recover()
    bench.store.refuses = {KEY}
    await bench.recorder.replay()
    assert await bench.history(OTHER) == ["y1"]
    assert [entry.exchange for entry in bench.spool.entries()] == ["x1", "x2"]
    bench.store.refuses = set()
    await bench.recorder.replay()
    assert await bench.history() == ["x1", "x2"]


async def test_an_exchange_that_the_store_stumbles_over_is_quarantined(bench: Workbench) -> None:
    bench.store.fail(DOWN, "commit")
    await bench.recorder.record(KEY, chat("x1"))
    bench.store.fail(ValueError("never heard of"), "commit")
    await bench.recorder.replay()
    bench.store.recover()
    assert bench.spool.depth() == (0, 1) and bench.quarantined == ["one"]
    assert await bench.recorder.record(KEY, chat("x2")) == "recorded"


async def test_two_workers_replay_in_order_and_each_exchange_once(
    bench: Workbench, path: Path
) -> None:
    for number in range(20):
        await bench.recorder.defer(KEY, deferred(f"x{number}", said(f"question {number}")))
    other_spool = Spool(path, bench.store.name, 1 << 24)
    other_spool.open()
    other = recorder_over(bench.store, other_spool)
    both = (bench.recorder.replay(), other.replay())
    for failure in await asyncio.gather(*both, return_exceptions=True):
        # one of the two may not empty the log while the other reads
        assert failure is None or isinstance(failure, SpoolError)
    await bench.recorder.replay()
    assert await bench.history() == [f"x{number}" for number in range(20)]
    assert bench.spool.is_idle()
    await other.close(1)


async def test_the_spool_is_replayed_by_itself_when_the_store_is_back(bench: Workbench) -> None:
    bench.store.fail(DOWN)
    await bench.recorder.open()
    for number in range(3):
        await bench.recorder.record(KEY, chat(f"x{number}"))
    loop = asyncio.get_running_loop()
    bench.store.recover()
    back = loop.time()
    assert await bench.store.recorded(3) == ["x0", "x1", "x2"]
    assert loop.time() - back < 2
    assert (await bench.prepare()).snapshot.messages == 6


# The end


async def test_closing_finishes_what_is_being_written(bench: Workbench) -> None:
    bench.store.gate = asyncio.Event()
    recording = asyncio.create_task(bench.recorder.record(KEY, chat("x1")))
    while not bench.store.asked["commit"]:
        await asyncio.sleep(0)
    closing = asyncio.create_task(bench.recorder.close(5))
    await asyncio.sleep(0)
    bench.store.gate.set()
    await closing
    assert await recording == "recorded"
    assert await bench.history() == ["x1"]


async def test_closing_flushes_the_spool(bench: Workbench) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("hello")))
    await bench.recorder.close(5)
    assert await bench.history() == ["x1"]


async def test_closing_is_bounded_and_what_could_not_be_written_is_in_the_spool(
    bench: Workbench, path: Path
) -> None:
    bench.store.gate = asyncio.Event()
    recording = asyncio.create_task(bench.recorder.record(KEY, chat("x1")))
    while not bench.store.asked["commit"]:
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await bench.recorder.close(0.1)
    assert await recording == "spooled"
    left = Spool(path, bench.store.name, 1 << 20)
    left.open()
    assert [entry.exchange for entry in left.entries()] == ["x1"]
    left.close()


async def test_a_recorder_leaves_no_task_behind(bench: Workbench) -> None:
    before = asyncio.all_tasks()
    await bench.recorder.open()
    await bench.recorder.record(KEY, chat("x1"))
    await bench.prepare()
    await bench.recorder.close(1)
    assert asyncio.all_tasks() == before


# What was erased


async def test_what_began_before_an_erasure_is_not_replayed_and_leaves_the_spool(
    bench: Workbench, path: Path
) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("the-secret-marker"), user="kai", at=10.0))
    await bench.recorder.defer(KEY, deferred("x2", said("of nobody"), at=15.0))
    await bench.recorder.defer(KEY, deferred("x3", said("afterwards"), user="kai", at=30.0))
    await bench.store.mark([Subject("tenant", session="session")], 20.0)
    await bench.recorder.replay()
    assert await bench.history() == ["x3"]
    assert bench.spool.depth() == (0, 0) and not bench.quarantined
    tally = bench.recorder.tally
    assert (tally.spooled, tally.replayed, tally.lost) == (3, 1, 0)
    await bench.recorder.replay()
    assert found_in_files(path.parent, "the-secret-marker") == []


async def test_an_exchange_of_who_was_erased_is_not_recorded_and_not_spooled(
    bench: Workbench,
) -> None:
    await bench.store.mark([Subject("tenant", "kai")], 20.0)
    assert await bench.recorder.record(KEY, chat("x1", at=20.0, user="kai")) == "erased"
    assert await bench.recorder.amend(KEY, Amendment(exchange="x1", usage=b"{}")) == "recorded"
    assert await bench.recorder.record(KEY, chat("x2", at=20.5, user="kai")) == "recorded"
    assert await bench.history() == ["x2"]
    assert bench.spool.is_idle() and bench.recorder.tally.lost == 0


async def test_who_named_nobody_is_replayed_as_the_owner_of_the_session(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is erased meanwhile must not be made anew for nobody."""
    await bench.recorder.record(KEY, chat("x1", user="kai"))
    await bench.recorder.defer(KEY, deferred("x2", said("more")))
    commit = bench.store.commit
    seen: list[str | None] = []

    async def watched(key: SessionKey, made: Commit) -> Outcome:
        seen.append(made.user)
        return await commit(key, made)

    monkeypatch.setattr(bench.store, "commit", watched)
    await bench.recorder.replay()
    assert seen == ["kai"] and await bench.history() == ["x1", "x2"]


async def test_what_was_carried_out_is_not_left_in_the_spools_files(
    bench: Workbench, path: Path
) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("the-secret-marker")))
    assert found_in_files(path.parent, "the-secret-marker")
    await bench.recorder.replay()
    assert await bench.history() == ["x1"]
    assert found_in_files(path.parent, "the-secret-marker") == []


async def test_quarantine_is_left_by_who_was_erased(bench: Workbench, path: Path) -> None:
    await bench.recorder.record(KEY, chat("x1", user="kai"))
    for id, user, at in [("x2", "eve", 10.0), ("x3", "eve", 30.0), ("x4", "ann", 10.0)]:
        await bench.recorder.defer(KEY, deferred(id, said(f"{id}-is-the-marker"), user=user, at=at))
    await bench.recorder.replay()
    assert bench.spool.depth() == (0, 3)
    await bench.store.mark([Subject("tenant", "eve")], 20.0)
    await bench.recorder._backlog.review()
    await bench.recorder.replay()
    assert bench.spool.depth() == (0, 2)
    assert found_in_files(path.parent, "x2-is-the-marker") == []
    assert found_in_files(path.parent, "x3-is-the-marker", "x4-is-the-marker")


async def test_quarantine_is_left_by_what_was_said_in_an_erased_session(
    bench: Workbench, path: Path
) -> None:
    """Whether or not it names somebody, and though nobody can read it."""
    await bench.recorder.record(KEY, chat("x1", user="kai"))
    await bench.recorder.defer(KEY, deferred("x2", said("x2-is-the-marker"), user="eve", at=10.0))
    bench.spool.put(KEY, "x3", "amendment", b"x3-is-the-marker")
    bench.spool.put(SessionKey("tenant", "other"), "x4", "commit", b"x4-is-the-marker")
    await bench.recorder.replay()
    assert bench.spool.depth() == (0, 3)
    await bench.store.mark([Subject("tenant", session=KEY.session)], time.time())
    await bench.recorder._backlog.review()
    await bench.recorder.replay()
    assert bench.spool.depth() == (0, 1)
    assert found_in_files(path.parent, "x2-is-the-marker", "x3-is-the-marker") == []
    assert found_in_files(path.parent, "x4-is-the-marker")
