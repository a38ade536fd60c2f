"""The background work of indexing: once for each need, again after failures, never for ever."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import Owner
from proxy.recall.indexing import index_updater as following
from proxy.recall.indexing.index_updater import (
    CHECK_INTERVAL,
    CONCURRENCY,
    MAX_DELAYS,
    MAX_REMEMBERED,
    IndexUpdater,
)
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE

KEY = SessionKey("tenant", "session")
KAI = Owner("tenant", user="kai")


class Indexer:
    """Notes what it is asked to do, and fails when it is told to."""

    def __init__(self) -> None:
        self.done: list[tuple[str, object]] = []
        self.failures: list[BaseException] = []
        self.gate: asyncio.Event | None = None
        self.busy = self.most_busy = 0
        self.changed = asyncio.Condition()

    async def index_session(self, key: SessionKey) -> int:
        return await self._do("index_session", key)

    async def index_edited(self, key: SessionKey, seq: int) -> int:
        return await self._do("index_edited", (key, seq))

    async def catch_up(self, owner: Owner) -> int:
        return await self._do("catch up", owner)

    async def rebuild(self, owner: Owner) -> int:
        return await self._do("rebuild", owner)

    async def _do(self, what: str, work: object) -> int:
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.failures:
                raise self.failures.pop(0)
            self.done.append((what, work))
        finally:
            self.busy -= 1
            async with self.changed:
                self.changed.notify_all()
        return 2

    async def begun(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.busy:
                await asyncio.sleep(0)

    async def until(self, count: int) -> list[tuple[str, object]]:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: len(self.done) >= count)
        return self.done


class Bench:
    def __init__(self) -> None:
        self.indexer, self.clock, self.indexed = Indexer(), Clock(), 0
        self.index_updater = IndexUpdater(self.indexer, self.clock, self._count, delay=0)  # type: ignore[arg-type]

    def _count(self, messages: int) -> None:
        self.indexed += messages

    @asynccontextmanager
    async def open(self) -> AsyncIterator[IndexUpdater]:
        self.index_updater.open()
        try:
            yield self.index_updater
        finally:
            await self.index_updater.close(PATIENCE)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_what_was_recorded_is_indexed_and_counted(bench: Bench) -> None:
    async with bench.open() as index_updater:
        index_updater.on_recorded(KEY)
        assert await bench.indexer.until(1) == [("index_session", KEY)]
    assert bench.indexed == 2


async def test_what_was_edited_is_indexed_again_once_for_each_message(bench: Bench) -> None:
    bench.index_updater.on_edited(KEY, (3, 5))
    bench.index_updater.on_edited(KEY, (3,))
    bench.index_updater.on_recorded(KEY)
    async with bench.open():
        done = await bench.indexer.until(3)
    assert done == [("index_edited", (KEY, 3)), ("index_edited", (KEY, 5)), ("index_session", KEY)]


async def test_an_edit_that_could_not_be_indexed_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "RETRY", 0.0)
    bench.indexer.failures = [StoreError("away")]
    async with bench.open() as index_updater:
        index_updater.on_edited(KEY, (3,))
        assert await bench.indexer.until(1) == [("index_edited", (KEY, 3))]


async def test_the_same_work_waits_once(bench: Bench) -> None:
    for _ in range(5):
        bench.index_updater.on_recorded(KEY)
        bench.index_updater.on_stale_index(KAI)
    assert repr(bench.index_updater) == "<IndexUpdater [waiting: 2]>"
    async with bench.open():
        await bench.indexer.until(2)
    assert bench.indexer.done == [("index_session", KEY), ("rebuild", KAI)]


async def test_what_is_recorded_while_its_session_is_indexed_is_indexed_after(
    bench: Bench,
) -> None:
    bench.indexer.gate = asyncio.Event()
    async with bench.open() as index_updater:
        index_updater.on_recorded(KEY)
        await bench.indexer.begun()
        index_updater.on_recorded(KEY)
        bench.indexer.gate.set()
        assert await bench.indexer.until(2) == [("index_session", KEY)] * 2


async def test_an_owner_is_caught_up_with_when_heard_of_and_again_after_a_while(
    bench: Bench,
) -> None:
    async with bench.open() as index_updater:
        index_updater.check_soon(KAI)
        await bench.indexer.until(1)
        index_updater.check_soon(KAI)
        assert repr(index_updater) == "<IndexUpdater [waiting: 0]>"
        bench.clock.now += CHECK_INTERVAL
        index_updater.check_soon(KAI)
        assert await bench.indexer.until(2) == [("catch up", KAI)] * 2


async def test_a_session_that_is_nobody_s_is_looked_at_once_when_it_is_new(bench: Bench) -> None:
    bench.index_updater.check_soon(Owner(KEY.tenant, session=KEY.session))
    bench.index_updater.on_recorded(KEY)
    async with bench.open():
        await bench.indexer.until(1)
    assert bench.indexer.done == [("index_session", KEY)]


async def test_only_so_many_owners_are_kept_in_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_REMEMBERED", 3)
    bench = Bench()
    owners = [Owner("tenant", user=f"{n}") for n in range(4)]
    async with bench.open() as index_updater:
        for owner in owners:
            index_updater.check_soon(owner)
        await bench.indexer.until(4)
        index_updater.check_soon(owners[3])
        assert repr(index_updater) == "<IndexUpdater [waiting: 0]>"
        index_updater.check_soon(owners[0])
        assert repr(index_updater) == "<IndexUpdater [waiting: 1]>"
    assert MAX_REMEMBERED > 1000


async def test_a_failure_of_the_store_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "RETRY", 0.0)
    bench.indexer.failures = [StoreError("down")] * 5
    async with bench.open() as index_updater:
        index_updater.on_recorded(KEY)
        index_updater.on_stale_index(KAI)
        done = await bench.indexer.until(2)
    assert sorted(done, key=str) == [("index_session", KEY), ("rebuild", KAI)]


async def test_a_stale_index_stays_so_until_it_was_made_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "RETRY", 0.0)
    bench.indexer.failures = [StoreError("down")]
    async with bench.open() as index_updater:
        index_updater.on_stale_index(KAI)
        assert await bench.indexer.until(1) == [("rebuild", KAI)]
        bench.clock.now += CHECK_INTERVAL
        index_updater.check_soon(KAI)
        assert (await bench.indexer.until(2))[1] == ("catch up", KAI)


async def test_what_cannot_be_indexed_is_left_out_and_the_rest_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.indexer.failures = [ValueError("secret words")]
    async with bench.open() as index_updater:
        index_updater.on_recorded(KEY)
        index_updater.on_recorded(SessionKey("tenant", "other"))
        done = await bench.indexer.until(1)
    assert done == [("index_session", SessionKey("tenant", "other"))]
    assert "could not be indexed" in caplog.text


async def test_several_sessions_are_indexed_side_by_side_and_not_more(bench: Bench) -> None:
    bench.indexer.gate = asyncio.Event()
    async with bench.open() as index_updater:
        for n in range(3 * CONCURRENCY):
            index_updater.on_recorded(SessionKey("tenant", f"{n}"))
        async with asyncio.timeout(PATIENCE):
            while bench.indexer.busy < CONCURRENCY:
                await asyncio.sleep(0)
        bench.indexer.gate.set()
        await bench.indexer.until(3 * CONCURRENCY)
    assert bench.indexer.most_busy == CONCURRENCY


# Gathering


async def test_the_turns_of_a_session_gather_until_it_is_quiet(bench: Bench) -> None:
    index_updater = bench.index_updater
    index_updater.on_recorded(KEY)
    index_updater._round += 1
    assert index_updater._is_due(KEY)
    index_updater.on_recorded(KEY)
    assert not index_updater._is_due(KEY)
    index_updater._round += 1
    assert index_updater._is_due(KEY)


async def test_a_session_that_is_never_quiet_is_indexed_after_a_while(bench: Bench) -> None:
    index_updater, rounds = bench.index_updater, 0
    index_updater.on_recorded(KEY)
    while not index_updater._is_due(KEY):
        rounds += 1
        index_updater._round += 1
        index_updater.on_recorded(KEY)
    assert rounds == MAX_DELAYS


OTHER = SessionKey("tenant", "other")


async def test_who_asks_has_their_other_sessions_indexed_first(bench: Bench) -> None:
    index_updater = bench.index_updater
    for key in (KEY, OTHER):
        index_updater.on_query(key, KAI)
        index_updater.on_recorded(key)
    index_updater.on_recorded(SessionKey("tenant", "another's"))
    await index_updater.flush(KAI, but=KEY)
    assert bench.indexer.done == [("index_session", OTHER)]
    assert index_updater.has_unindexed(KEY) and not index_updater.has_unindexed(OTHER)
    await index_updater.flush(KAI)
    await index_updater.flush(KAI)
    assert bench.indexer.done == [("index_session", OTHER), ("index_session", KEY)]


async def test_of_those_who_ask_together_one_has_it_indexed_and_the_others_wait(
    bench: Bench,
) -> None:
    index_updater = bench.index_updater
    bench.indexer.gate = asyncio.Event()
    index_updater.on_query(KEY, KAI)
    index_updater.on_recorded(KEY)
    asking = [asyncio.create_task(index_updater.flush(KAI)) for _ in range(16)]
    await bench.indexer.begun()
    assert not any(task.done() for task in asking)
    bench.indexer.gate.set()
    await asyncio.gather(*asking)
    assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(KEY)


async def test_who_asks_once_more_was_recorded_has_that_indexed_too(bench: Bench) -> None:
    index_updater = bench.index_updater
    bench.indexer.gate = asyncio.Event()
    index_updater.on_query(KEY, KAI)
    index_updater.on_recorded(KEY)
    first = asyncio.create_task(index_updater.flush(KAI))
    await bench.indexer.begun()
    index_updater.on_recorded(KEY)
    second = asyncio.create_task(index_updater.flush(KAI))
    bench.indexer.gate.set()
    await asyncio.gather(first, second)
    assert bench.indexer.done == [("index_session", KEY)] * 2 and not index_updater.has_unindexed(
        KEY
    )


async def test_what_is_indexed_for_who_asks_goes_on_where_they_wait_no_longer(bench: Bench) -> None:
    bench.indexer.gate, index_updater = asyncio.Event(), bench.index_updater
    index_updater.on_query(KEY, KAI)
    index_updater.on_recorded(KEY)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await index_updater.flush(KAI)
    bench.indexer.gate.set()
    assert await bench.indexer.until(1) == [("index_session", KEY)]
    await index_updater.flush(KAI)
    assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(KEY)


async def test_what_the_store_refuses_once_nobody_waits_for_it_waits_on_and_is_no_error(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.indexer.gate, index_updater = asyncio.Event(), bench.index_updater
    bench.indexer.failures = [StoreError("locked")]
    index_updater.on_query(KEY, KAI)
    index_updater.on_recorded(KEY)
    asking = asyncio.create_task(index_updater.flush(KAI))
    await bench.indexer.begun()
    asking.cancel()
    await asyncio.wait({asking})
    bench.indexer.gate.set()
    async with asyncio.timeout(PATIENCE):
        while index_updater._flushing:
            await asyncio.sleep(0)
    gc.collect()
    assert caplog.messages == []
    await index_updater.flush(KAI)
    assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(KEY)


async def test_at_the_end_what_is_indexed_for_who_asks_is_begun_anew_and_done(
    bench: Bench,
) -> None:
    async with bench.open() as index_updater:
        index_updater.on_query(KEY, KAI)
        await bench.indexer.until(1)
        bench.indexer.gate = asyncio.Event()
        index_updater.on_recorded(KEY)
        asking = asyncio.create_task(index_updater.flush(KAI))
        await bench.indexer.begun()
        asking.cancel()
        closing = asyncio.create_task(index_updater.close(PATIENCE))
        async with asyncio.timeout(PATIENCE):
            while bench.indexer.busy:
                await asyncio.sleep(0)
        bench.indexer.gate.set()
        await closing
    assert bench.indexer.done == [("catch up", KAI), ("index_session", KEY)]


async def test_what_cannot_be_indexed_for_who_asks_waits_on_and_stops_nobody(bench: Bench) -> None:
    index_updater = bench.index_updater
    index_updater.on_query(KEY, KAI)
    index_updater.on_recorded(KEY)
    bench.indexer.failures = [StoreError("away")]
    await index_updater.flush(KAI)
    assert index_updater.has_unindexed(KEY)
    await index_updater.flush(KAI)
    assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(KEY)


async def test_a_session_is_late_until_the_last_of_it_is_indexed(bench: Bench) -> None:
    bench.indexer.gate = asyncio.Event()
    async with bench.open() as index_updater:
        index_updater.on_query(KEY, KAI)
        index_updater.on_recorded(KEY)
        await bench.indexer.begun()
        assert index_updater.has_unindexed(KEY)
        index_updater.on_recorded(KEY)
        bench.indexer.gate.set()
        await bench.indexer.until(2)
        async with asyncio.timeout(PATIENCE):
            while index_updater.has_unindexed(KEY):
                await asyncio.sleep(0)


async def test_of_sessions_that_are_kept_in_mind_no_more_are_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_REMEMBERED", 1)
    bench.index_updater.on_query(KEY, KAI)
    bench.index_updater.on_recorded(KEY)
    bench.index_updater.on_query(OTHER, KAI)
    assert not bench.index_updater.has_unindexed(KEY)


async def test_what_rests_is_not_indexed_until_somebody_asks(bench: Bench) -> None:
    index_updater, owner = bench.index_updater, Owner("tenant", session="session")
    index_updater.defer(KEY, owner)
    for _ in range(3):
        index_updater.on_recorded(KEY)
    await index_updater._drain()
    assert bench.indexer.done == [] and index_updater.has_unindexed(KEY)
    await index_updater.flush(owner, but=KEY)
    assert bench.indexer.done == []
    index_updater.on_query(KEY, owner)
    await index_updater.flush(owner)
    assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(KEY)
    index_updater.on_recorded(KEY)
    assert index_updater.has_unindexed(KEY)


async def test_of_what_rests_some_gather_and_are_indexed_together(bench: Bench) -> None:
    index_updater, owner = bench.index_updater, Owner("tenant", session="session")
    for _ in range(2):
        index_updater.defer(KEY, owner)
        for _ in range(following.DEFERRED_EXCHANGES - 1):
            index_updater.on_recorded(KEY)
            await index_updater._drain()
        assert bench.indexer.done == [] and index_updater.has_unindexed(KEY)
        index_updater.on_recorded(KEY)
        await index_updater._drain()
        assert bench.indexer.done == [("index_session", KEY)] and not index_updater.has_unindexed(
            KEY
        )
        bench.indexer.done.clear()


async def test_of_what_rests_only_so_many_are_kept_in_mind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_REMEMBERED", 1)
    index_updater = bench.index_updater
    for key in (KEY, OTHER):
        index_updater.defer(key, Owner("tenant", session=key.session))
        index_updater.on_recorded(key)
    assert index_updater.has_unindexed(OTHER) and not index_updater.has_unindexed(KEY)
    index_updater.on_recorded(KEY)
    await index_updater._drain()
    assert bench.indexer.done == [("index_session", KEY)]


# The end


async def test_at_the_end_what_waits_is_done(bench: Bench) -> None:
    bench.index_updater.open()
    for n in range(5):
        bench.index_updater.on_recorded(SessionKey("tenant", f"{n}"))
    await bench.index_updater.close(PATIENCE)
    assert len(bench.indexer.done) == 5


async def test_at_the_end_a_store_that_hangs_is_not_waited_for(bench: Bench) -> None:
    bench.indexer.gate = asyncio.Event()
    bench.index_updater.open()
    bench.index_updater.on_recorded(KEY)
    async with asyncio.timeout(PATIENCE):
        await bench.index_updater.close(0.01)
    assert bench.indexer.done == []


async def test_at_the_end_a_store_that_fails_is_no_error(bench: Bench) -> None:
    bench.indexer.failures = [StoreError("down")] * 10
    bench.index_updater.on_recorded(KEY)
    bench.index_updater.open()
    await bench.index_updater.close(PATIENCE)
    assert bench.indexer.done == []


async def test_a_follower_that_was_never_opened_can_be_closed(bench: Bench) -> None:
    bench.index_updater.on_recorded(KEY)
    await bench.index_updater.close(PATIENCE)
    assert bench.indexer.done == []


def test_what_waits_is_bounded_the_oldest_is_left_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_QUEUED", 3)
    for number in range(5):
        bench.index_updater.on_recorded(SessionKey("tenant", str(number)))
    assert [key.session for key in bench.index_updater._waiting if isinstance(key, SessionKey)] == [
        "2",
        "3",
        "4",
    ]
