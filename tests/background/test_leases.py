"""Who holds a piece of work: one at a time, for as long as it lives; and how a runner ends."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.background.completion import Failed
from proxy.background.runner import LEASE
from proxy.memory.model import SessionKey, Work
from proxy.memory.store import StoreError
from tests.support.learning.jobs import KEY, Bench, Distant, ScriptedJob, ask, left
from tests.support.oracle.store import InMemoryStore
from tests.support.virtual import BEGAN, clock, virtually

ASKED = 25


def test_the_lease_of_a_long_job_is_renewed() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=600)
        await ask(store)
        async with Bench(store, job).open(), Bench(store, job).open():
            await asyncio.sleep(700)
        assert (job.times, job.finished) == ([BEGAN], 1)
        assert not await left(store)

    virtually(main())


def test_the_work_of_a_killed_process_is_anothers_once_its_lease_runs_out() -> None:
    async def main() -> None:
        store, killed, other = InMemoryStore(), ScriptedJob(seconds=1e6), ScriptedJob()
        line = Distant(store)
        await ask(store)
        async with Bench(line, killed).open():
            await asyncio.sleep(30)  # its lease was renewed after 20 seconds
            line.cut = True
            async with Bench(store, other).open():
                await asyncio.sleep(LEASE)
                assert not killed.cancelled
                assert other.times == [pytest.approx(BEGAN + 20 + LEASE, abs=1.3)]
        assert not await left(store)

    virtually(main())


def test_a_job_whose_lease_is_lost_is_cancelled_and_changes_nothing_any_more() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=1e6)
        bench = Bench(store, job)
        await ask(store)
        async with bench.open():
            await asyncio.sleep(1)
            taken = await store.claim((await left(store))[0], clock() + 1e6, clock() + 2e6)
            assert taken is not None
            await asyncio.sleep(30)
            assert (job.cancelled, bench.ended) == (1, ["lost"])
            assert await store.extend(taken, clock() + 2e6)

    virtually(main())


def test_a_job_is_cancelled_before_its_lease_runs_out_while_the_store_is_down() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=1e6)
        queue = Distant(store)
        bench = Bench(queue, job)
        await ask(store)
        async with bench.open():
            await asyncio.sleep(1)
            queue.failure = StoreError("away")
            await asyncio.sleep(LEASE - 1.5)
            assert (job.cancelled, bench.ended) == (1, ["lost"])

    virtually(main())


def test_a_store_that_is_down_for_a_moment_costs_no_lease() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=200)
        queue = Distant(store)
        await ask(store)
        async with Bench(queue, job).open():
            await asyncio.sleep(15)
            queue.failure = StoreError("away")
            await asyncio.sleep(30)
            queue.failure = None
            await asyncio.sleep(200)
        assert (len(job.ran), job.finished) == (1, 1)

    virtually(main())


class Watched(ScriptedJob):
    """Notes every run of work that is being run already, here or elsewhere."""

    def __init__(self, held: set[tuple[str, str]], random: Random) -> None:
        super().__init__()
        self.held, self.random, self.overlaps = held, random, 0

    async def run(self, work: Work) -> float | None:
        place = work.session, work.kind
        self.overlaps += place in self.held
        self.held.add(place)
        self.seconds = self.random.choice([0.0, 0.5, 30.0, 100.0])
        if self.random.random() < 0.2:
            self.results.append(Failed("500"))
        try:
            return await super().run(work)
        finally:
            self.held.discard(place)


@given(seed=st.integers(0, 2**32), runners=st.integers(2, 4), sessions=st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_a_session_never_has_two_runners_for_one_kind_of_work(
    seed: int, runners: int, sessions: int
) -> None:
    async def main() -> None:
        random, store, held = Random(seed), InMemoryStore(), set[tuple[str, str]]()
        jobs = [Watched(held, random) for _ in range(runners)]
        async with AsyncExitStack() as opened:
            for job in jobs:
                queue = Distant(store, lambda: random.random() * 0.2)
                bench = Bench(queue, job, chance=random.random)
                await opened.enter_async_context(bench.open())
            for _ in range(ASKED):
                await ask(store, SessionKey("tenant", f"s{random.randrange(sessions)}"))
                await asyncio.sleep(random.random() * 20)
            async with asyncio.timeout(7200):
                while await left(store):
                    await asyncio.sleep(10)
            assert sum(job.overlaps for job in jobs) == 0
            assert 0 < sum(job.finished for job in jobs) <= ASKED

    virtually(main())


def test_closing_lets_running_jobs_end_and_begins_no_other() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        await ask(store)
        bench = Bench(store, job, concurrency=1)
        async with bench.open(closing=30):
            await asyncio.sleep(1)
            await ask(store, SessionKey("tenant", "another"))
        assert clock() == BEGAN + 10
        assert (job.finished, job.cancelled, len(job.ran)) == (1, 0, 1)
        assert [work.session for work in await left(store)] == ["another"]

    virtually(main())


def test_what_does_not_end_in_time_is_cancelled_and_due_at_once_for_others() -> None:
    async def main() -> None:
        store, job, other = InMemoryStore(), ScriptedJob(seconds=1000), ScriptedJob()
        await ask(store)
        bench = Bench(store, job)
        async with bench.open(closing=2):
            await asyncio.sleep(1)
        assert clock() == BEGAN + 3
        assert (job.cancelled, bench.ended) == (1, ["put_off"])
        (work,) = await left(store)
        assert (work.due, work.attempts) == (BEGAN + 3, 0)
        async with Bench(store, other).open():
            await asyncio.sleep(0.001)
            assert other.times == [BEGAN + 3]

    virtually(main())


def test_nothing_runs_on_after_closing() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=1000)
        for number in range(3):
            await ask(store, SessionKey(f"tenant{number}", "s"))
        async with Bench(store, job).open():
            await asyncio.sleep(1)
            names = sorted(task.get_name() for task in asyncio.all_tasks())[-7:]
            assert names == ["background", *["background job"] * 3, *["background lease"] * 3]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(main())


def test_a_runner_that_was_never_opened_can_be_closed() -> None:
    async def main() -> None:
        bench = Bench(InMemoryStore(), ScriptedJob())
        bench.runner.wake_at(clock())
        await bench.runner.close(1)
        assert repr(bench.runner) == "<Runner [running: 0]>"
        assert KEY.tenant not in repr(bench.runner)

    virtually(main())
