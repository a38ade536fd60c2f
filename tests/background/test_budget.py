"""What is spent is counted in the store, and a day's tokens end with the day."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from proxy.background import completion
from proxy.background.budget import CACHE_SECONDS, MAX_TENANTS, Budget, day_of
from proxy.memory.store import StoreError
from proxy.memory.usage import UsageKey, UsageTotals
from tests.support.clock import Clock
from tests.support.oracle.usage import InMemoryMeter

NOON = 1_700_049_600.0  # 2023-11-15 12:00 UTC
TODAY, TOMORROW = "2023-11-15", "2023-11-16"
MIDNIGHT = NOON + 12 * 3600
CALL = UsageTotals(calls=1, input_tokens=60, output_tokens=40)


class WatchedMeter(InMemoryMeter):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.failure: BaseException | None = None

    async def usage_of_days(
        self, tenant: str, days: Sequence[str]
    ) -> Mapping[UsageKey, UsageTotals]:
        self.reads += 1
        return await super().usage_of_days(tenant, days)

    async def add_usage(self, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
        if self.failure is not None:
            raise self.failure
        await super().add_usage(tenant, account, spent)


@pytest.fixture
def meter() -> WatchedMeter:
    return WatchedMeter()


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


async def test_what_is_noted_is_written_by_day_and_feature(
    meter: WatchedMeter, clock: Clock
) -> None:
    budget = Budget(meter, 0, clock)
    budget.add("tenant", "summary", CALL)
    budget.add("tenant", "summary", UsageTotals(calls=1, failed=1))
    budget.add("tenant", "facts", CALL)
    budget.add("other", "facts", CALL)
    clock.now = MIDNIGHT
    budget.add("tenant", "facts", CALL)
    await budget.flush()
    await budget.flush()
    assert await meter.usage_of_days("tenant", [TODAY, TOMORROW]) == {
        UsageKey(TODAY, "summary"): UsageTotals(
            calls=2, failed=1, input_tokens=60, output_tokens=40
        ),
        UsageKey(TODAY, "facts"): CALL,
        UsageKey(TOMORROW, "facts"): CALL,
    }
    assert await meter.usage_of_days("other", [TODAY]) == {UsageKey(TODAY, "facts"): CALL}


async def test_tokens_end_at_the_bound_and_begin_anew_at_midnight(
    meter: WatchedMeter, clock: Clock
) -> None:
    budget = Budget(meter, 200, clock)
    for _ in range(2):
        await budget.check("tenant")
        budget.add("tenant", "summary", CALL)
        await budget.flush()
    with pytest.raises(completion.BudgetSpent) as caught:
        await budget.check("tenant")
    assert caught.value.until == MIDNIGHT
    await budget.check("other")
    clock.now = MIDNIGHT - 1
    with pytest.raises(completion.BudgetSpent):
        await budget.check("tenant")
    clock.now = MIDNIGHT
    await budget.check("tenant")


async def test_without_a_bound_the_store_is_not_asked(meter: WatchedMeter, clock: Clock) -> None:
    budget = Budget(meter, 0, clock)
    budget.add("tenant", "summary", UsageTotals(calls=1, input_tokens=10**12))
    await budget.check("tenant")
    assert meter.reads == 0


async def test_what_other_processes_spend_counts_after_a_moment(
    meter: WatchedMeter, clock: Clock
) -> None:
    here, there = Budget(meter, 100, clock), Budget(meter, 100, clock)
    await here.check("tenant")
    there.add("tenant", "facts", CALL)
    await there.flush()
    await here.check("tenant")
    assert meter.reads == 1
    clock.now += CACHE_SECONDS
    with pytest.raises(completion.BudgetSpent):
        await here.check("tenant")


async def test_what_this_process_spends_counts_at_once(meter: WatchedMeter, clock: Clock) -> None:
    budget = Budget(meter, 100, clock)
    await budget.check("tenant")
    budget.add("tenant", "facts", CALL)
    with pytest.raises(completion.BudgetSpent):
        await budget.check("tenant")


async def test_what_the_store_does_not_take_is_written_later_and_counts_meanwhile(
    meter: WatchedMeter, clock: Clock
) -> None:
    budget = Budget(meter, 150, clock)
    meter.failure = StoreError("away")
    budget.add("tenant", "facts", CALL)
    await budget.flush()
    budget.add("tenant", "facts", CALL)
    with pytest.raises(completion.BudgetSpent):
        await budget.check("tenant")
    meter.failure = None
    await budget.flush()
    assert await meter.usage_of_days("tenant", [TODAY]) == {UsageKey(TODAY, "facts"): CALL + CALL}


async def test_what_was_being_written_as_it_was_cancelled_is_not_forgotten(
    meter: WatchedMeter, clock: Clock
) -> None:
    budget = Budget(meter, 0, clock)
    budget.add("tenant", "facts", CALL)
    meter.failure = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await budget.flush()
    meter.failure = None
    await budget.flush()
    assert await meter.usage_of_days("tenant", [TODAY]) == {UsageKey(TODAY, "facts"): CALL}


async def test_a_store_that_cannot_say_is_an_error(clock: Clock) -> None:
    class Down(InMemoryMeter):
        async def usage_of_days(
            self, tenant: str, days: Sequence[str]
        ) -> Mapping[UsageKey, UsageTotals]:
            raise StoreError("away")

    with pytest.raises(StoreError):
        await Budget(Down(), 1, clock).check("tenant")


async def test_sums_are_remembered_of_so_many_tenants_only(
    meter: WatchedMeter, clock: Clock
) -> None:
    budget = Budget(meter, 1, clock)
    for number in range(MAX_TENANTS + 1):
        await budget.check(f"t{number}")
    reads = meter.reads
    await budget.check(f"t{MAX_TENANTS}")
    assert meter.reads == reads
    await budget.check("t0")
    assert meter.reads == reads + 1


def test_days_are_those_of_utc() -> None:
    assert (day_of(MIDNIGHT - 0.5), day_of(MIDNIGHT)) == (TODAY, TOMORROW)
