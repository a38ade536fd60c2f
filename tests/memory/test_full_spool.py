"""A spool that can be read and takes nothing: its disk is full.  The store takes what it can."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.memory.model import Amendment
from proxy.memory.recording.availability import PAUSE_SECONDS
from proxy.memory.recording.replay import ENTRIES_PER_TURN
from proxy.memory.recording.spool import Spool, SpoolError
from proxy.memory.store import StoreError, StoreTimeout
from tests.support.store.commits import chat
from tests.support.store.recording import COMMIT_TIMEOUT, KEY, OTHER, Workbench, deferred, said

DOWN = StoreError("connection refused")


@pytest.fixture(autouse=True)
def _failures_may_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "proxy.memory.recording")


@contextmanager
def full() -> Iterator[None]:
    """What is written to any spool fails."""

    def writing(_: Spool) -> None:
        raise SpoolError("database or disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spool, "_writing", writing)
        yield


async def test_what_waits_is_carried_out_though_it_cannot_leave_the_spool(
    bench: Workbench,
) -> None:
    wanted = [f"x{number}" for number in range(ENTRIES_PER_TURN + 3)]
    for id in wanted:
        await bench.recorder.defer(KEY, deferred(id, said(id)))
    await bench.recorder.defer(OTHER, deferred("y1", said("hello")))
    with full():
        await bench.recorder.replay()
        assert await bench.history() == wanted
        assert await bench.history(OTHER) == ["y1"]
        assert bench.spool.is_idle() and bench.recorder.tally.replayed == 0
        asked = bench.store.asked["commit"]
        await bench.recorder.replay()
        assert bench.store.asked["commit"] == asked


async def test_all_leave_once_it_can_be_written_and_count_once(bench: Workbench) -> None:
    for id in ("x1", "x2", "x3"):
        await bench.recorder.defer(KEY, deferred(id, said(id)))
    await bench.recorder.record(OTHER, chat("y1", user="kai"))
    await bench.recorder.defer(OTHER, deferred("y2", said("mine?"), user="eve"))
    with full():
        await bench.recorder.replay()
        assert bench.spool.depth() == (4, 0) and not bench.quarantined
    await bench.recorder.replay()
    assert bench.spool.depth() == (0, 1) and bench.quarantined == ["one"]
    assert await bench.history() == bench.store.order[1:] == ["x1", "x2", "x3"]
    assert bench.recorder.tally.replayed == 3


async def test_a_start_in_between_doubles_nothing(bench: Workbench, path: Path) -> None:
    for id in ("x1", "x2"):
        await bench.recorder.defer(KEY, deferred(id, said(id)))
    with full():
        await bench.recorder.replay()
        assert await bench.recorder.record(KEY, chat("x3")) == "recorded"
    await asyncio.to_thread(bench.spool.close)
    await asyncio.to_thread(bench.spool.open)
    assert [entry.exchange for entry in bench.spool.entries()] == ["x1", "x2"]
    await bench.recorder.replay()
    assert await bench.history() == ["x1", "x2", "x3"]
    assert bench.spool.depth() == (0, 0)


@pytest.mark.parametrize("replayed", [True, False], ids=["replayed", "not yet replayed"])
async def test_new_exchanges_go_to_the_store_behind_what_waits(
    bench: Workbench, replayed: bool
) -> None:
    for id in ("x1", "x2"):
        await bench.recorder.defer(KEY, deferred(id, said(id)))
    with full():
        if replayed:
            await bench.recorder.replay()
        assert await bench.recorder.record(KEY, chat("x3")) == "recorded"
        assert await bench.recorder.defer(KEY, deferred("x4", said("and?"))) == "recorded"
        assert await bench.recorder.amend(KEY, Amendment(exchange="x4", usage=b"{}")) == "recorded"
        assert await bench.history() == ["x1", "x2", "x3", "x4"]
        assert (await bench.prepare()).snapshot.messages == 8
    assert bench.recorder.tally.lost == 0


async def test_what_cannot_be_kept_does_not_overtake_what_waits(bench: Workbench) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("hello")))
    bench.store.refuses = {KEY}
    with full():
        assert await bench.recorder.record(KEY, chat("x2")) == "lost"
    bench.store.refuses = set()
    await bench.recorder.replay()
    assert await bench.history() == ["x1"] and bench.recorder.tally.lost == 1


async def test_a_store_that_is_away_too_is_asked_what_is_cheap(bench: Workbench) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("hello")))
    bench.store.fail(DOWN)
    with full():
        assert await bench.recorder.record(KEY, chat("x2")) == "lost"
    assert bench.store.asked["commit"] == 0 and bench.store.asked["ping"] == 1


@pytest.mark.parametrize("how", ["a load", "a commit", "what cannot be kept"])
async def test_a_store_that_hangs_costs_its_timeout_once_a_second_with_a_full_spool(
    bench: Workbench, how: str
) -> None:
    bench.store.hangs = True
    with full():
        if how == "a load":
            with pytest.raises(StoreError):
                await bench.prepare()
        elif how == "a commit":
            bench.store.hangs = False
            bench.store.fail(StoreTimeout("late"), "commit")
            await bench.recorder.record(OTHER, chat("y1"))
        else:
            await bench.recorder.defer(OTHER, deferred("y1", said("hello")))
        asked = bench.store.asked.copy()
        assert await bench.recorder.defer(KEY, deferred("x1", said("hello"))) == "lost"
        assert await bench.recorder.record(KEY, chat("x2")) == "lost"
        assert bench.store.asked == asked
        bench.store.recover()
        bench.clock.now += PAUSE_SECONDS
        assert await bench.recorder.record(KEY, chat("x3")) == "recorded"


async def test_a_client_waits_as_long_as_for_a_commit_and_those_of_other_sessions_do_not(
    bench: Workbench,
) -> None:
    await bench.recorder.defer(KEY, deferred("x1", said("hello")))
    bench.store.slow = {KEY}
    began = time.monotonic()
    with full():
        assert await bench.recorder.record(KEY, chat("x2")) == "lost"
        assert time.monotonic() - began < 3 * COMMIT_TIMEOUT
        assert await bench.recorder.record(OTHER, chat("y1")) == "recorded"
        bench.store.slow = set()
        assert await bench.recorder.record(KEY, chat("x3")) == "recorded"
    assert bench.store.order == ["y1", "x1", "x3"]


def test_an_entry_of_a_file_that_is_gone_removes_no_other(path: Path) -> None:
    spool = Spool(path, "store", 1 << 20)
    spool.open()
    for id in ("x1", "x2"):
        spool.put(KEY, id, "commit", b"{}")
    first, second = spool.entries()
    spool.remove(first)
    path.unlink()
    assert [(entry.id, entry.exchange) for entry in spool.entries()] == [(first.id, "x2")]
    spool.skip(first)
    spool.remove(first)
    spool.quarantine(first, "foreign")
    assert [entry.exchange for entry in spool.entries(KEY)] == ["x2"]
    assert spool.has_waiting(second.key) and spool.depth() == (1, 0)
    spool.close()
