"""The runner: what is due is run once for each need, and what fails again, but not at once."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest

from proxy.background.completion import BudgetSpent, Failed, NoCredential, Paused, Refused
from proxy.background.runner import LOGGED_SECONDS, OTHER_PROCESS_SECONDS
from proxy.logs import hashed
from proxy.memory.model import SessionKey, WorkRequest
from proxy.memory.store import StoreError
from tests.support.learning.jobs import (
    FIRST,
    KEY,
    MAX_PAUSE,
    Bench,
    Distant,
    ScriptedJob,
    ask,
    left,
)
from tests.support.oracle.store import InMemoryStore
from tests.support.virtual import BEGAN, clock, virtually

HOUR = 3600.0


def run_for(
    job: ScriptedJob, seconds: float, chance: float = 0.0
) -> tuple[ScriptedJob, list[str], int]:
    """A piece of work and a runner for so long: the job, what became of it, what is left."""

    async def main() -> tuple[ScriptedJob, list[str], int]:
        store, bench = InMemoryStore(), None
        bench = Bench(store, job, chance=lambda: chance)
        await ask(store)
        async with bench.open():
            await asyncio.sleep(seconds)
        return job, bench.ended, len(await left(store))

    return virtually(main())


def test_what_is_due_is_run_once_and_forgotten() -> None:
    job, ended, waiting = run_for(ScriptedJob(), HOUR)
    assert len(job.ran) == 1
    assert (ended, waiting) == (["finished"], 0)
    work, when = job.ran[0]
    assert (work.tenant, work.session, when) == (*KEY, BEGAN)


def test_a_job_that_names_a_time_is_run_then() -> None:
    job, ended, _ = run_for(ScriptedJob(BEGAN + 100.5), HOUR)
    assert job.times[1] - BEGAN == pytest.approx(100.5, abs=1.2)
    assert ended == ["finished", "finished"]


def test_what_is_asked_for_while_it_runs_is_run_again() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        bench = Bench(store, job)
        await ask(store)
        async with bench.open():
            await asyncio.sleep(5)
            await ask(store)
            await ask(store)
            await asyncio.sleep(HOUR)
        assert job.times == [BEGAN, BEGAN + 10]
        assert not await left(store)

    virtually(main())


def test_a_refusal_is_never_tried_again() -> None:
    job, ended, waiting = run_for(ScriptedJob(*[Refused("status 400")] * 9), 24 * HOUR)
    assert len(job.ran) == 1
    assert (ended, waiting) == (["refused"], 0)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Failed("503"), id="failed"),
        pytest.param(StoreError("away"), id="the-store"),
        pytest.param(TimeoutError(), id="out-of-time"),
        pytest.param(ValueError("a bug"), id="a-bug"),
        pytest.param(asyncio.CancelledError(), id="cancelled-by-itself"),
    ],
)
@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_failures_are_tried_again_after_ever_longer_waits(
    error: BaseException, chance: float
) -> None:
    job, ended, waiting = run_for(ScriptedJob(*[error] * 99), HOUR, chance)
    assert len(job.ran) > 9
    waits = job.waits
    assert all(before < after + 1.2 for before, after in zip(waits, waits[1:], strict=False))
    for nth, wait in enumerate(waits):
        longest = min(FIRST * 2**nth, MAX_PAUSE)
        assert 0.75 * longest - 0.01 <= wait <= longest + 1.2
    assert set(ended) == {"failed"}
    assert waiting == 1


def test_what_goes_well_in_the_end_is_done() -> None:
    job, ended, waiting = run_for(ScriptedJob(Failed("500"), Failed("500")), HOUR)
    assert (ended, waiting) == (["failed", "failed", "finished"], 0)


def test_nobody_is_asked_before_they_want_to_be() -> None:
    job, _, _ = run_for(ScriptedJob(Failed("429", retry_after=90.0)), HOUR)
    assert job.waits == [pytest.approx(90, abs=1.2)]
    job, _, _ = run_for(ScriptedJob(Failed("429", retry_after=1.0)), HOUR)
    assert job.waits == [pytest.approx(FIRST, abs=1.2)]


def test_what_is_spent_waits_for_the_next_day_and_has_not_failed() -> None:
    job, ended, _ = run_for(ScriptedJob(BudgetSpent(BEGAN + HOUR / 2), Failed("500")), HOUR)
    assert job.waits[0] == pytest.approx(HOUR / 2, abs=1.2)
    assert job.ran[1][0].attempts == 0
    assert ended == ["put_off", "failed", "finished"]


def test_a_budget_that_was_raised_is_noticed_within_the_hour() -> None:
    job, ended, _ = run_for(ScriptedJob(BudgetSpent(BEGAN + 20 * HOUR)), 2 * HOUR)
    assert job.waits == [pytest.approx(HOUR, abs=1.2)]
    assert ended == ["put_off", "finished"]


def test_a_credential_that_has_gone_is_waited_for_and_nothing_has_failed() -> None:
    job, ended, _ = run_for(ScriptedJob(NoCredential(), NoCredential()), HOUR)
    assert job.waits == [pytest.approx(OTHER_PROCESS_SECONDS, abs=1.2)] * 2
    assert ended == ["put_off", "put_off", "finished"]
    assert job.ran[2][0].attempts == 0


def test_failures_are_logged_without_what_was_said_or_whose_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    results = (Failed("answered with status 500"), ValueError("quotes what was said"), Refused("r"))
    run_for(ScriptedJob(*results), HOUR)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("proxy")]
    assert len(lines) == 3
    assert not [line for line in lines if "said" in line or any(name in line for name in KEY)]
    assert all(f"summary of {hashed(KEY.tenant)}" in line for line in lines)


def test_what_fails_again_and_again_is_told_once_in_ten_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job, *_ = run_for(ScriptedJob(*[Failed("answered with status 500")] * 20), HOUR)
    assert len(job.ran) > 9
    told = [record.getMessage() for record in caplog.records if record.name.startswith("proxy")]
    assert 5 <= len(told) <= HOUR / LOGGED_SECONDS and len(set(told)) == 1


def test_work_whose_model_is_left_alone_waits_longer_each_time() -> None:
    """Else all that waits for a model that is down would look for it again as soon as it may."""
    job, ended, _ = run_for(ScriptedJob(*[Paused(BEGAN)] * 4), HOUR)
    assert ended == ["put_off"] * 4 + ["finished"]
    assert [later > earlier for earlier, later in pairwise(job.waits)] == [True] * 3


def test_work_of_a_kind_that_has_no_job_here_is_left_to_others() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        await store.enqueue(KEY, WorkRequest(kind="learning", profile="", due_at=clock()))
        bench = Bench(store, job)
        async with bench.open():
            await asyncio.sleep(HOUR)
        assert not job.ran
        (work,) = await left(store)
        assert work.attempts == 0

    virtually(main())


def test_work_without_a_credential_here_is_left_to_others_for_a_moment() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        job.known = set()
        await ask(store)
        bench = Bench(store, job)
        async with bench.open():
            await asyncio.sleep(4)
            (work,) = await left(store)
            assert work.due == BEGAN
            await asyncio.sleep(4)
            (work,) = await left(store)
            assert work.due == pytest.approx(BEGAN + 65, abs=1.2)
            assert work.attempts == 0
            job.known = {KEY.tenant}
            await asyncio.sleep(70)
        assert job.times == [pytest.approx(BEGAN + 65, abs=2.4)]
        assert bench.ended == ["finished"]

    virtually(main())


def test_the_process_with_the_credential_takes_the_work() -> None:
    async def main() -> None:
        store, here, there = InMemoryStore(), ScriptedJob(), ScriptedJob()
        here.known = set()
        await ask(store)
        async with Bench(store, here).open(), Bench(store, there).open():
            await asyncio.sleep(60)
        assert (len(here.ran), len(there.ran)) == (0, 1)

    virtually(main())


def test_a_job_that_does_not_know_whether_it_can_run_holds_up_no_other() -> None:
    class Unsure(ScriptedJob):
        def is_ready(self, work: object) -> bool:
            raise ValueError("a bug")

    job, ended, _ = run_for(Unsure(), HOUR)
    assert (len(job.ran), ended) == (1, ["finished"])


def put_back() -> float:
    """A clock that is put back by an hour ten seconds from the beginning."""
    now = clock()
    return now if now < BEGAN + 10.0 else now - HOUR


def test_what_is_due_is_run_though_the_clock_is_put_back() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        async with Bench(store, job, wall=put_back).open():
            await asyncio.sleep(12.0)
            await ask(store, at=put_back())
            await asyncio.sleep(1.5)
            assert len(job.ran) == 1

    virtually(main())


def test_why_work_is_not_done_is_told_though_the_clock_is_put_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(*[Failed("answered with status 500")] * 20)
        async with Bench(store, job, wall=put_back).open():
            await ask(store)
            await asyncio.sleep(12.0)
            caplog.clear()
            await ask(store, SessionKey(KEY.tenant, "other"), at=put_back())
            await asyncio.sleep(1.5)

    virtually(main())
    assert len(caplog.records) == 1


def test_a_tenant_is_found_though_the_clock_was_put_back_behind_the_last_look_at_the_others() -> (
    None
):
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=60.0)
        await ask(store, at=BEGAN - HOUR)
        async with Bench(store, job, wall=put_back).open():
            await asyncio.sleep(10.5)
            await ask(store, SessionKey("another", "s"), at=BEGAN - HOUR)
            await asyncio.sleep(3.0)
            assert job.tenants == ["tenant", "another"]

    virtually(main())


def test_who_is_told_looks_at_once() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        bench = Bench(store, job, chance=lambda: 1.0)
        async with bench.open() as runner:
            await asyncio.sleep(0.01)
            await ask(store)
            runner.wake_at(clock())
            await asyncio.sleep(0.001)
            assert job.times == [BEGAN + 0.01]
            await ask(store, at=clock() + 0.3)
            runner.wake_at(clock() + 0.3)
            await asyncio.sleep(0.301)
            assert len(job.ran) == 2
            await ask(store, SessionKey("tenant", "of another process"))
            await asyncio.sleep(1.2)
            assert len(job.ran) == 3

    virtually(main())


def test_jobs_are_bounded_and_one_tenant_cannot_take_all_places() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for number in range(1000):
            await ask(store, SessionKey("greedy", f"s{number}"), at=clock() - 100)
        for number in range(3):
            await ask(store, SessionKey(f"modest{number}", "s"))
        async with Bench(store, job, concurrency=4).open():
            await asyncio.sleep(35)
        assert job.most_at_once == 4
        assert job.most_running["greedy"] == 2
        began = zip(job.tenants, job.times, strict=True)
        assert {when for tenant, when in began if tenant[0] == "m"} == {BEGAN}

    virtually(main())


def test_tenants_that_have_all_places_shut_no_other_out() -> None:
    async def main() -> list[float]:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for number in range(100):
            for tenant in ("one", "two"):
                await ask(store, SessionKey(tenant, f"s{number}"), at=clock() - 100)
        async with Bench(store, job, concurrency=4).open():
            await asyncio.sleep(5)
            await ask(store, SessionKey("three", "s"))
            await ask(store, SessionKey("three", "t"))
            await asyncio.sleep(30)
        return [when for work, when in job.ran if work.tenant == "three"]

    assert virtually(main()) == [BEGAN + 10, BEGAN + 20]


def test_behind_thousands_of_pieces_others_are_found() -> None:
    async def main() -> list[str]:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for number in range(5000):
            await ask(store, SessionKey("greedy", f"s{number}"), at=clock() - 100)
        for number in range(3):
            await ask(store, SessionKey("modest", f"s{number}"))
        async with Bench(store, job, concurrency=4).open():
            await asyncio.sleep(5)
        return job.tenants

    assert sorted(virtually(main())) == ["greedy", "greedy", "modest", "modest"]


def test_a_job_that_ends_has_not_all_looked_at_that_waits() -> None:
    async def main() -> tuple[int, int]:
        queue, job = Distant(InMemoryStore()), ScriptedJob(seconds=0.01)
        for number in range(500):
            await ask(queue.queue, SessionKey("greedy", f"s{number}"), at=clock() - 100)
        async with Bench(queue, job, concurrency=4).open():
            await asyncio.sleep(0.75)
            looks = queue.calls["waiting"]
            await ask(queue.queue, SessionKey("modest", "s"))
            await asyncio.sleep(1.25)
        assert "modest" in job.tenants
        return looks, len(job.ran)

    looks, jobs = virtually(main())
    assert jobs > 200
    assert looks < 200


def test_tenants_take_turns() -> None:
    async def main() -> list[str]:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for at, tenant in enumerate("aaabbbccc"):
            await ask(store, SessionKey(tenant, f"s{at}"), at=clock() - 100 + at)
        async with Bench(store, job, concurrency=1).open():
            await asyncio.sleep(85)
        return job.tenants

    assert "".join(virtually(main())) == "abcabcabc"


def test_the_kinds_of_a_tenants_work_take_turns() -> None:
    async def main() -> list[str]:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for number in range(4):
            await ask(store, SessionKey("one", f"s{number}"), at=clock() - 100, kind="rebuild")
        for number in range(2):
            await ask(store, SessionKey("one", f"s{number}"))
        async with Bench(store, job, concurrency=2).open():
            await asyncio.sleep(55)
        return [work.kind[0] for work, _ in job.ran]

    assert "".join(virtually(main())) == "rsrsrr"


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)])
def test_a_tenant_has_half_the_places_and_at_least_one(concurrency: int, most: int) -> None:
    async def main() -> int:
        store, job = InMemoryStore(), ScriptedJob(seconds=10)
        for number in range(20):
            await ask(store, SessionKey("one", f"s{number}"))
        async with Bench(store, job, concurrency=concurrency).open():
            await asyncio.sleep(HOUR)
        assert job.finished == 20
        return job.most_at_once

    assert virtually(main()) == most


def test_a_place_that_becomes_free_is_taken_at_once() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=0.1)
        for number in range(50):
            await ask(store, SessionKey(f"tenant{number}", "s"))
        async with Bench(store, job, concurrency=2).open():
            await asyncio.sleep(2.6)
        assert job.finished == 50

    virtually(main())


def test_a_store_that_is_down_is_looked_at_now_and_then_and_spoken_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "proxy.background")

    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        queue = Distant(store)
        queue.failure = StoreError("away")
        await ask(store)
        async with Bench(queue, job).open() as runner:
            await asyncio.sleep(HOUR)
            assert 100 < queue.calls["waiting"] < 140
            for _ in range(100):
                runner.wake_at(clock())
                await asyncio.sleep(0.001)
            assert queue.calls["waiting"] < 140
            queue.failure = None
            await asyncio.sleep(31)
            assert len(job.ran) == 1

    virtually(main())
    assert [record.getMessage() for record in caplog.records] == [
        "work in the background waits for the store: away",
        "work in the background goes on",
    ]


def test_an_idle_runner_looks_about_once_a_second() -> None:
    async def main() -> int:
        queue = Distant(InMemoryStore())
        async with Bench(queue, ScriptedJob(), chance=lambda: 0.5).open():
            await asyncio.sleep(100)
        return queue.calls["waiting"]

    assert virtually(main()) == pytest.approx(100, abs=2)


def test_a_bug_in_a_look_does_not_end_the_looking(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob()
        queue = Distant(store)
        queue.failure = ValueError("a bug")
        await ask(store)
        async with Bench(queue, job).open():
            await asyncio.sleep(10)
            queue.failure = None
            await asyncio.sleep(31)
        assert len(job.ran) == 1

    virtually(main())
    assert "work in the background was not found" in caplog.text


def test_work_whose_end_the_store_does_not_take_is_done_again_later() -> None:
    async def main() -> None:
        store, job = InMemoryStore(), ScriptedJob(seconds=1)
        queue = Distant(store)
        await ask(store)
        async with Bench(queue, job).open():
            await asyncio.sleep(0.5)
            queue.failure = StoreError("away")
            await asyncio.sleep(10)
            queue.failure = None
            await asyncio.sleep(70)
        assert job.waits == [pytest.approx(60, abs=2)]
        assert not await left(store)

    virtually(main())
