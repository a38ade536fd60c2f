"""One session's trouble is nobody else's; a store is away where it does not answer at all."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from proxy.memory.limit import TimeLimit, wait_within
from proxy.memory.model import Commit, LoadOptions, SessionKey, Snapshot
from proxy.memory.planner import LONG_LOG, Planner
from proxy.memory.recording import availability, backlog, replay
from proxy.memory.recording.availability import (
    MAX_FAILING_SESSIONS,
    PAUSE_SECONDS,
    SESSION_PAUSES,
    FailingSessions,
    session_hash,
)
from proxy.memory.recording.recorder import LARGE_COMMIT
from proxy.memory.recording.replay import SESSIONS_AT_ONCE
from proxy.memory.store import StoreError, StoreTimeout
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.store.commits import chat, draft, record
from tests.support.store.recording import (
    APART,
    KEY,
    OTHER,
    Workbench,
    deferred,
    said,
)
from tests.support.waiting import PATIENCE


async def test_a_session_that_takes_too_long_pauses_nobody_else(bench: Workbench) -> None:
    bench.store.slow = {KEY}
    with pytest.raises(StoreTimeout):
        await bench.prepare()
    assert (await bench.prepare(key=OTHER)).snapshot.log == ()
    assert not bench.recorder.is_spooling(OTHER) and not bench.recorder.is_spooling(KEY)
    assert await bench.recorder.record(OTHER, chat("y1")) == "recorded"
    assert bench.recorder.failing_sessions == 1


def large(id: str) -> Commit:
    return record(id, *(draft(id, n) for n in range(LARGE_COMMIT + 1)))


async def test_large_commits_go_one_after_the_other_and_others_between_them(
    bench: Workbench,
) -> None:
    bench.store.gate = asyncio.Event()
    first = asyncio.create_task(bench.recorder.record(KEY, large("x1")))
    second = asyncio.create_task(bench.recorder.record(OTHER, large("y1")))
    await asyncio.sleep(0.01)
    small = asyncio.create_task(bench.recorder.record(OTHER, chat("y2")))
    await asyncio.sleep(0.01)
    assert bench.store.asked["commit"] == 2  # of the first large one, and of the small one
    bench.store.gate.set()
    assert set(await asyncio.gather(first, second, small)) == {"recorded"}
    assert bench.store.asked["commit"] == 3


@pytest.mark.parametrize(("commit", "spooled"), [(large("x1"), False), (chat("x1"), True)])
async def test_a_large_commit_that_is_late_pauses_nobody(
    bench: Workbench, commit: Commit, spooled: bool
) -> None:
    bench.store.fail(StoreTimeout("late"), "commit")
    assert await bench.recorder.record(KEY, commit) == "spooled"
    assert bench.recorder.is_spooling(OTHER) == spooled


async def test_large_commits_that_wait_at_the_end_are_spooled(bench: Workbench) -> None:
    bench.store.gate = asyncio.Event()
    keys = (KEY, OTHER)
    waiting = [asyncio.create_task(bench.recorder.record(key, large("x1"))) for key in keys]
    await asyncio.sleep(0.01)
    await bench.recorder.close(0.01)
    assert await asyncio.gather(*waiting) == ["spooled"] * 2


async def test_a_session_that_takes_too_long_is_left_alone_longer_each_time(
    bench: Workbench,
) -> None:
    bench.store.slow = {KEY}
    pause = SESSION_PAUSES[0]
    for attempt in (1, 2, 3):
        for _ in range(3):
            with pytest.raises(StoreTimeout):
                await bench.prepare()
        assert bench.store.asked["load"] == attempt
        bench.clock.now += pause
        pause *= 2
    bench.store.slow = set()
    assert (await bench.prepare()).snapshot == Snapshot()
    assert bench.recorder.failing_sessions == 0


async def test_a_store_that_does_not_answer_at_all_is_away_for_everybody(bench: Workbench) -> None:
    bench.store.hangs = True
    with pytest.raises(StoreTimeout):
        await bench.prepare()
    bench.store.recover()
    with pytest.raises(StoreTimeout):
        await bench.prepare(key=OTHER)
    assert bench.recorder.is_spooling(OTHER)
    bench.clock.now += PAUSE_SECONDS
    assert (await bench.prepare(key=OTHER)).snapshot == Snapshot()
    assert bench.recorder.failing_sessions == 0


async def test_a_server_that_is_away_is_so_for_the_sessions_that_lie_on_it(
    bench: Workbench,
) -> None:
    bench.store.away = {APART.tenant}
    for id in ("x1", "x2"):
        with pytest.raises(StoreError, match="its server is away"):
            await bench.prepare(key=APART)
        assert not (await bench.prepare()).will_spool
        assert await bench.recorder.record(KEY, chat(id)) == "recorded"
    assert bench.store.asked["load"] == 3  # of the session apart once
    assert bench.recorder.is_spooling(APART) and not bench.recorder.is_spooling(KEY)
    assert bench.recorder.failing_sessions == 0


async def test_those_who_fail_on_two_servers_ask_each_whether_it_answers(bench: Workbench) -> None:
    bench.store.hangs = True
    keys = (KEY, OTHER, APART)
    failures = await asyncio.gather(
        *(bench.prepare(key=key) for key in keys), return_exceptions=True
    )
    assert all(isinstance(failure, StoreTimeout) for failure in failures)
    assert bench.store.asked["peek"] == 2


async def test_those_who_fail_together_ask_once_whether_the_store_answers(
    bench: Workbench,
) -> None:
    bench.store.hangs = True
    keys = [SessionKey("tenant", f"session {n}") for n in range(20)]
    failures = await asyncio.gather(
        *(bench.prepare(key=key) for key in keys), return_exceptions=True
    )
    assert all(isinstance(failure, StoreTimeout) for failure in failures)
    assert bench.store.asked["peek"] == 1


@pytest.mark.parametrize("error", [ValueError("odd"), TypeError("odd"), KeyError("odd")])
async def test_whatever_a_load_raises_is_a_failure_of_that_session_s_memory(
    bench: Workbench, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    private = SessionKey("tenant", "the-name-of-it")
    bench.store.fail(error, "load")
    with pytest.raises(StoreError, match="cannot be used"):
        await bench.prepare(key=private)
    assert not bench.recorder.is_spooling(OTHER)
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert session_hash(private) in record.getMessage()
    assert private.session not in record.getMessage()
    assert record.exc_info is not None and record.exc_info[1] is error


async def test_a_session_that_cannot_be_replayed_in_time_holds_up_no_other(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.store.slow = {KEY}
    monkeypatch.setattr(FaultyStore, "load", _timely(FaultyStore.load))
    await bench.recorder.defer(KEY, deferred("x1", said("slow")))
    await bench.recorder.defer(OTHER, deferred("y1", said("fast")))
    await bench.recorder.replay()
    assert await bench.history(OTHER) == ["y1"]
    assert [entry.exchange for entry in bench.spool.entries()] == ["x1"]
    assert bench.recorder.failing_sessions == 1 and not bench.quarantined
    bench.store.slow = set()
    bench.clock.now += SESSION_PAUSES[0]
    await bench.recorder.replay()
    assert await bench.store.recorded(2) == ["y1", "x1"]


def _timely(
    load: Callable[[FaultyStore, SessionKey, LoadOptions], Awaitable[Snapshot]],
) -> Callable[[FaultyStore, SessionKey, LoadOptions], Awaitable[Snapshot]]:
    """As a store does: it gives up by itself."""

    async def timely(self: FaultyStore, key: SessionKey, options: LoadOptions) -> Snapshot:
        if key in self.slow:
            raise StoreTimeout("too long")
        return await load(self, key, options)

    return timely


async def test_what_is_slow_to_replay_has_a_limit_of_its_own(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.recorder._backlog._replay.slow.mark_failed(KEY, StoreTimeout("too long"))
    bench.clock.now += SESSION_PAUSES[0]
    monkeypatch.setattr(replay, "REPLAY_SECONDS", 0.05)
    bench.store.slow = {KEY}
    await bench.recorder.defer(KEY, deferred("x1", said("slow")))
    await bench.recorder.replay()
    beside = bench.recorder._backlog._replay._slow_task
    assert beside is not None
    await asyncio.wait_for(beside, PATIENCE)
    assert bench.recorder._backlog._replay.slow.pause_cause(KEY) is not None
    assert bench.spool.depth() == (1, 0)


async def test_a_thousand_entries_of_a_stuck_session_do_not_hide_another(
    bench: Workbench,
) -> None:
    payload = b"{}"
    with bench.spool._writing() as db:
        db.executemany(
            "INSERT INTO entries (store, tenant, session, exchange, kind, payload, created_at)"
            " VALUES (?, ?, ?, ?, 'commit', ?, 0)",
            [(bench.store.name, *KEY, f"x{n}", payload) for n in range(1200)],
        )
    bench.recorder._backlog._replay.slow.mark_failed(KEY, StoreTimeout("too long"))
    await bench.recorder.defer(OTHER, deferred("y1", said("hello")))
    await bench.recorder.replay()
    assert await bench.history(OTHER) == ["y1"]


async def test_a_thousand_stuck_sessions_do_not_hide_another(bench: Workbench) -> None:
    stuck = [SessionKey("tenant", f"stuck {n}") for n in range(SESSIONS_AT_ONCE + 5)]
    bench.store.refuses = set(stuck)
    for number, key in enumerate(stuck):
        bench.spool.put(key, f"x{number}", "amendment", b'{"exchange":"x"}')
    bench.recorder._backlog._replay.slow._known.update(
        {key: availability.FailingSession(StoreError(), 1.0, bench.clock.now + 60) for key in stuck}
    )
    await bench.recorder.defer(OTHER, deferred("y1", said("hello")))
    await bench.recorder.replay()
    assert await bench.history(OTHER) == ["y1"]


async def test_more_than_can_be_shown_in_time_is_a_matter_of_that_session(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "OVERLAY_LIMITS", (2, 1 << 20))
    for number in range(3):
        await bench.recorder.defer(KEY, deferred(f"x{number}", said(f"question {number}")))
    with pytest.raises(StoreTimeout, match="more waits"):
        await bench.prepare()
    assert (await bench.prepare(key=OTHER)).snapshot == Snapshot()


async def test_a_session_of_which_a_part_is_gone_goes_on_and_is_told_of_once(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load = FaultyStore.load

    async def halved(self: FaultyStore, key: SessionKey, options: LoadOptions) -> Snapshot:
        return replace(await load(self, key, options), missing_messages=3)

    monkeypatch.setattr(FaultyStore, "load", halved)
    for _ in range(3):
        assert (await bench.prepare()).snapshot.missing_messages == 3
    told = [r.getMessage() for r in caplog.records if "gone" in r.getMessage()]
    assert len(told) == 1 and session_hash(KEY) in told[0]
    assert bench.recorder.failing_sessions == 1


async def test_long_conversations_are_planned_beside_the_loop(bench: Workbench) -> None:
    planner = Planner(bench.store)
    here = threading.get_ident()
    assert await planner.run("t", LONG_LOG, threading.get_ident) == here
    assert await planner.run("t", LONG_LOG + 1, threading.get_ident) != here


def test_the_sessions_in_trouble_that_are_remembered_are_bounded() -> None:
    troubles = FailingSessions(Clock())
    for number in range(MAX_FAILING_SESSIONS + 50):
        troubles.mark_failed(SessionKey("tenant", str(number)), StoreError("no"))
    assert len(troubles._known) == MAX_FAILING_SESSIONS
    assert SessionKey("tenant", "0") not in troubles


def test_a_pause_is_doubled_up_to_a_bound() -> None:
    clock = Clock()
    troubles = FailingSessions(clock)
    for _ in range(20):
        troubles.mark_failed(KEY, StoreError("no"))
    assert troubles._known[KEY].until == clock.now + SESSION_PAUSES[1]


# Limits of time


async def test_a_limit_is_kept() -> None:
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.02):
            await asyncio.Event().wait()


async def test_an_answer_that_came_while_the_process_was_held_up_counts() -> None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def hold_up() -> None:
        time.sleep(0.2)
        loop.call_later(0.01, answer.set_result, "here")

    loop.call_soon(hold_up)
    async with TimeLimit(0.1):
        assert await answer == "here"


async def test_a_limit_is_extended_once_at_most() -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(time.sleep, 0.1)
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.05):
            await asyncio.Event().wait()


async def test_who_is_cancelled_under_a_limit_is_not_late() -> None:
    async def waiting() -> None:
        async with TimeLimit(PATIENCE):
            await asyncio.Event().wait()

    task = asyncio.create_task(waiting())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_future_is_waited_for_within_a_limit() -> None:
    late: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        await wait_within(late, 0.02)
    assert late.done()  # whoever would settle it sees that nobody waits


async def test_a_future_that_was_settled_while_the_process_was_held_up_counts() -> None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def hold_up() -> None:
        time.sleep(0.2)
        loop.call_later(0.01, answer.set_result, "here")

    loop.call_soon(hold_up)
    assert await wait_within(answer, 0.1) == "here"
