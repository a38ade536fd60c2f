"""What background work has cost, over the memory API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from proxy.memory.usage import UsageKey, UsageTotals
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, Site, error_of

USAGE = "/memory/v1/usage"
ALICE = digest_of(b"alice")
NOTHING = {"calls": 0, "failed": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0}
ONE = UsageTotals(calls=1, failed=0, input_tokens=100, output_tokens=7, micro_usd=250_000)
FAILED = UsageTotals(calls=2, failed=2, input_tokens=30)


async def report(client: httpx.AsyncClient, **query: str) -> dict[str, Any]:
    response = await client.get(USAGE, params=query)
    assert response.status_code == 200, response.text
    assert response.json()["object"] == "usage"
    found: dict[str, Any] = response.json()
    return found


async def test_usage_is_told_by_day_and_feature_with_its_total(
    site: Site, client: httpx.AsyncClient
) -> None:
    for day, feature, spent in (
        ("2026-01-02", "summary", ONE),
        ("2026-01-02", "facts", FAILED),
        ("2026-01-01", "summary", ONE),
        ("2025-12-31", "summary", ONE),
        ("2026-01-04", "summary", ONE),
    ):
        await site.store.add_usage(ALICE, UsageKey(day, feature), spent)
    await site.store.add_usage("another", UsageKey("2026-01-01", "summary"), ONE)
    found = await report(client, **{"from": "2026-01-01", "to": "2026-01-03"})
    one = {"calls": 1, "failed": 0, "input_tokens": 100, "output_tokens": 7, "cost_usd": 0.25}
    assert found == {
        "object": "usage",
        "from": "2026-01-01",
        "to": "2026-01-03",
        "total": {
            "calls": 4,
            "failed": 2,
            "input_tokens": 230,
            "output_tokens": 14,
            "cost_usd": 0.5,
        },
        "data": [
            {"day": "2026-01-01", "feature": "summary", **one},
            {
                "day": "2026-01-02",
                "feature": "facts",
                "calls": 2,
                "failed": 2,
                "input_tokens": 30,
                "output_tokens": 0,
                "cost_usd": 0,
            },
            {"day": "2026-01-02", "feature": "summary", **one},
        ],
    }


async def test_without_days_the_last_thirty_are_told(site: Site, client: httpx.AsyncClient) -> None:
    found = await report(client)
    today = datetime.now(UTC).date()
    last = datetime.fromisoformat(found["to"]).date()
    assert last in (today, today - timedelta(days=1))
    assert found["from"] == (last - timedelta(days=29)).isoformat()
    assert (found["total"], found["data"]) == (NOTHING, [])
    for days in (0, 29, 30):
        day = (last - timedelta(days=days)).isoformat()
        await site.store.add_usage(ALICE, UsageKey(day, "facts"), ONE)
    assert (await report(client, to=found["to"]))["total"]["calls"] == 2
    assert (await report(client, **{"from": found["from"]}))["total"]["calls"] == 2


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "20260101"}, "from"),
        ({"to": "2026-02-30"}, "to"),
        ({"to": ""}, "to"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "from"),
        ({"from": "2025-01-01", "to": "2026-02-05"}, "from"),
    ],
)
async def test_days_that_are_none_are_refused(
    client: httpx.AsyncClient, query: dict[str, str], param: str
) -> None:
    response = await client.get(USAGE, params=query)
    assert response.status_code == 400 and error_of(response)["param"] == param
    assert await report(client, **{"from": "2025-01-01", "to": "2026-02-04"})
    assert (await report(client, to="0001-01-02"))["from"] == "0001-01-01"


async def test_a_tenant_sees_its_own_usage_and_the_administrator_all(
    site: Site, client: httpx.AsyncClient
) -> None:
    day = datetime.now(UTC).date().isoformat()
    await site.store.add_usage(ALICE, UsageKey(day, "facts"), ONE)
    days = {"from": day, "to": day}
    assert (await report(client, **days))["total"]["calls"] == 1
    async with site.client("mallory") as other:
        assert (await report(other, **days))["total"] == NOTHING
    async with site.client(ADMIN_KEY) as admin:
        assert (await report(admin, **days, tenant=ALICE))["total"]["calls"] == 1
        assert (await admin.get(USAGE, params=days)).status_code == 400
    async with site.client(None, peer="203.0.113.9") as stranger:
        assert (await stranger.get(USAGE)).status_code == 401
