"""What background work has cost, on every back end."""

from __future__ import annotations

import asyncio

from proxy.memory.usage import UsageKey, UsageTotals
from proxy.stores.open import Backend

DAYS = ("2026-01-31", "2026-02-01", "2026-02-02")
ONE = UsageTotals(calls=1, failed=0, input_tokens=100, output_tokens=7)
FAILED = UsageTotals(calls=1, failed=1, input_tokens=30)


async def test_what_is_spent_is_added_up_by_day_and_feature(store: Backend, tenant: str) -> None:
    assert await store.usage_of_days(tenant, DAYS) == {}
    for day, feature, spent in (
        (DAYS[0], "summary", ONE),
        (DAYS[0], "summary", FAILED),
        (DAYS[0], "a feature: of two words", ONE),
        (DAYS[1], "summary", ONE),
    ):
        await store.add_usage(tenant, UsageKey(day, feature), spent)
    await store.add_usage(tenant + "-other", UsageKey(DAYS[0], "summary"), ONE)
    both = UsageTotals(calls=2, failed=1, input_tokens=130, output_tokens=7)
    first = {
        UsageKey(DAYS[0], "summary"): both,
        UsageKey(DAYS[0], "a feature: of two words"): ONE,
    }
    assert await store.usage_of_days(tenant, DAYS[:1]) == first
    assert await store.usage_of_days(tenant, DAYS) == {**first, UsageKey(DAYS[1], "summary"): ONE}
    assert (
        await store.usage_of_days(tenant, DAYS[2:]) == {} == await store.usage_of_days(tenant, ())
    )


async def test_no_spending_is_lost_where_many_spend(store: Backend, tenant: str) -> None:
    account = UsageKey(DAYS[0], "facts")
    await asyncio.gather(*(store.add_usage(tenant, account, ONE) for _ in range(40)))
    total = UsageTotals(calls=40, input_tokens=4000, output_tokens=280)
    assert await store.usage_of_days(tenant, DAYS) == {account: total}


async def test_what_was_spent_moves_with_its_tenant_and_is_added(
    store: Backend, tenant: str
) -> None:
    new, facts, summary = f"{tenant}-new", UsageKey(DAYS[0], "facts"), UsageKey(DAYS[1], "summary")
    await store.add_usage(tenant, facts, ONE)
    await store.add_usage(tenant, summary, FAILED)
    await store.add_usage(new, facts, FAILED)
    await store.move(tenant, new)
    assert await store.usage_of_days(tenant, DAYS) == {}
    assert await store.usage_of_days(new, DAYS) == {facts: ONE + FAILED, summary: FAILED}
    await store.add_usage(tenant, facts, ONE)
    await store.move(new, new)
    await store.move(tenant, new)
    assert await store.usage_of_days(new, DAYS) == {facts: ONE + FAILED + ONE, summary: FAILED}
