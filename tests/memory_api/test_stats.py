"""What memory has done over time: the sums, and the walk that they are made from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.usage import TokenUsage
from proxy.memory.model import Injection, SessionKey
from proxy.memory.prompt.trace import PromptTrace
from proxy.memory_api.overview import stats
from proxy.memory_api.overview.figures import (
    Sample,
    Span,
    distinct,
    percentile,
    span_of,
    sum_by_bucket,
)
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, seed, talk
from tests.support.store.commits import draft, record

STATS = "/memory/v1/stats"
ALICE = digest_of(b"alice")
DAY = 86_400
MIDDAY = 19_800 * DAY + DAY / 2
"""Of a day in UTC."""


def sample(at: float, session: str = "s", **more: Any) -> Sample:
    known: dict[str, Any] = {
        "id": "ex",
        "session_began": 0.0,
        "messages": 2,
        "is_chat": True,
        "usage": TokenUsage(10, 5, 2),
        "injected": 7,
        "recalled": 3,
        "evicted": 1,
        "latency": 4.0,
    }
    return Sample(at=at, session=session, **(known | more))


# Sums


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95)) == (50.0, 95.0)
    assert percentile([7.0], 0.95) == 7.0 and percentile([], 0.5) is None
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_buckets_in_which_nothing_happened_are_there() -> None:
    total, series = sum_by_bucket([sample(105.0), sample(125.0)], Span(100.0, 139.0, 10.0))
    assert [(at, each.exchanges) for at, each in series] == [
        (100.0, 1),
        (110.0, 0),
        (120.0, 1),
        (130.0, 0),
    ]
    assert (total.exchanges, total.prompt, total.messages, len(total.sessions)) == (2, 20, 4, 1)


def test_what_is_outside_counts_nowhere() -> None:
    total, series = sum_by_bucket([sample(99.9), sample(140.0)], Span(100.0, 139.0, 10.0))
    assert total.exchanges == 0 and not any(each.exchanges for _, each in series)


def test_of_an_import_only_the_messages_count() -> None:
    total, _ = sum_by_bucket([sample(105.0, is_chat=False, latency=None)], Span(100.0, 109.0, 10.0))
    assert (total.exchanges, total.messages, total.latencies) == (0, 2, [])


def test_an_exchange_counts_once_in_the_session_that_was_made_first() -> None:
    fork = [sample(105.0, "fork", id=id, session_began=120.0) for id in ("1", "2", "3")]
    first = [sample(105.0, "first", id=id, session_began=100.0) for id in ("1", "2")]
    expected = {("1", "first"), ("2", "first"), ("3", "fork")}
    for samples in (fork + first, first + fork):
        assert {(each.id, each.session) for each in distinct(samples)} == expected


@given(st.lists(st.floats(50.0, 250.0), max_size=40), st.sampled_from([1.0, 7.0, 60.0, 500.0]))
def test_the_buckets_add_up_to_the_total(times: list[float], step: float) -> None:
    samples = [sample(at, f"s{n % 3}", latency=float(n)) for n, at in enumerate(times)]
    total, series = sum_by_bucket(samples, Span(100.0, 200.0, step))
    assert sum(each.exchanges for _, each in series) == total.exchanges
    assert sum(each.evicted for _, each in series) == total.evicted
    assert sorted(x for _, each in series for x in each.latencies) == sorted(total.latencies)
    assert set[str]().union(*(each.sessions for _, each in series)) == total.sessions


@pytest.mark.parametrize(("bucket", "step"), [("day", DAY), ("hour", 3600)])
@pytest.mark.parametrize("days", [1, 7, 30])
def test_a_span_ends_with_the_bucket_of_now_and_begins_at_a_full_one(
    bucket: str, step: int, days: int
) -> None:
    span = span_of(days, step, MIDDAY + 100)
    assert span.since % step == 0 and span.until == MIDDAY + 100
    assert len(span.starts) == days * DAY // step
    assert span.starts[-1] <= span.until < span.starts[-1] + step


# Over the API


async def said(
    store: Backend, session: str, at: float, user: str | None = None, **did: Any
) -> None:
    id = f"ex_{session}_{at}"
    usage = did.pop("usage", b'{"prompt_tokens": 20, "completion_tokens": 5}')
    shown = msgspec.Raw(msgspec.json.encode(PromptTrace(learned_tokens=2, recall_tokens=4)))
    memory = Injection(**{"tokens": 11, "evicted_tokens": 3, "trace": shown, **did})
    commit = record(id, draft(id, 0), draft(id, 1, "assistant"), at=at, usage=usage, user=user)
    exchange = msgspec.structs.replace(commit.exchange, memory=memory)
    commit = msgspec.structs.replace(commit, exchange=exchange)
    assert await store.commit(SessionKey(ALICE, session), commit) == "recorded"


async def report(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get(STATS, params=query)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(
        "proxy.memory_api.overview.stats.time", SimpleNamespace(time=lambda: MIDDAY)
    )
    return MIDDAY


async def test_everything_that_happened_is_counted_where_it_happened(
    client: httpx.AsyncClient, store: Backend, now: float
) -> None:
    await said(store, "a", now - 2 * DAY, duration_ms=4.0)
    await said(store, "a", now - 60, duration_ms=2.0)
    await said(store, "b", now - 30, duration_ms=8.0, usage=None)
    found = await report(client, days=3)
    assert (found["object"], found["bucket"], found["complete"]) == ("stats", "day", True)
    assert (found["since"], found["until"]) == (now - DAY / 2 - 2 * DAY, now)
    assert found["totals"] == {
        "sessions": 2,
        "messages": 6,
        "exchanges": 3,
        "with_usage": 2,
        "tokens": {
            "prompt": 40,
            "completion": 10,
            "cached": 0,
            "cache_written": 0,
            "injected": 33,
            "recalled": 18,
            "evicted": 9,
        },
        "latency_ms": {"p50": 4.0, "p95": 8.0},
    }
    assert [each["at"] for each in found["series"]] == [found["since"] + n * DAY for n in range(3)]
    assert [each["exchanges"] for each in found["series"]] == [1, 0, 2]
    assert found["series"][1] == {
        "at": found["since"] + DAY,
        "sessions": 0,
        "messages": 0,
        "exchanges": 0,
        "with_usage": 0,
        "tokens": dict.fromkeys(found["totals"]["tokens"], 0),
        "latency_ms": {"p50": None, "p95": None},
    }


BROKEN = [
    b"5",
    b'{"kept":1e300}',
    b'{"runs":[5]}',
    b'{"order":[-9],"kept":9}',
    b'{"runs":[["e",-1,[1,2]]],"kept":9}',
]


@pytest.mark.parametrize("shown", BROKEN)
async def test_one_record_that_cannot_be_read_does_not_hide_the_others(
    client: httpx.AsyncClient, store: Backend, now: float, shown: bytes
) -> None:
    await said(store, "a", now - 60, trace=msgspec.Raw(shown))
    await said(store, "a", now - 30)
    tokens = (await report(client))["totals"]["tokens"]
    assert (tokens["injected"], tokens["recalled"]) == (22, 6)
    listed = await client.get(f"{SESSIONS}/a/exchanges")
    assert (listed.status_code, len(listed.json()["data"])) == (200, 2)


async def test_hours_are_buckets_too(client: httpx.AsyncClient, store: Backend, now: float) -> None:
    await said(store, "a", now - 3600)
    found = await report(client, days=1, bucket="hour")
    assert len(found["series"]) == 24 and found["series"][-2]["exchanges"] == 1


async def test_what_a_fork_has_of_its_session_is_not_counted_again(
    client: httpx.AsyncClient, store: Backend, now: float
) -> None:
    for n in range(3):
        await said(store, "a", now - 90 + n)
    before = await report(client)
    for new in ("b", "c"):
        forked = await client.post("/memory/v1/sessions/a/fork", json={"id": new})
        assert forked.status_code == 201
    assert await report(client) == before
    await said(store, "b", now - 10)
    totals = (await report(client))["totals"]
    assert (totals["exchanges"], totals["sessions"], totals["tokens"]["prompt"]) == (4, 2, 80)


async def test_one_person_alone(client: httpx.AsyncClient, store: Backend, now: float) -> None:
    await said(store, "a", now - 60, user="kai")
    await said(store, "b", now - 60, user="lee")
    await said(store, "c", now - 60)
    assert (await report(client, user="kai"))["totals"]["exchanges"] == 1
    assert (await report(client))["totals"]["exchanges"] == 3


async def test_a_tenant_is_told_of_its_own_alone(
    site: Site, client: httpx.AsyncClient, store: Backend, now: float
) -> None:
    await said(store, "a", now - 60)
    async with site.client("bob") as other:
        assert (await report(other))["totals"]["messages"] == 0


async def test_nothing_at_all_is_a_chart_of_zeros(client: httpx.AsyncClient, now: float) -> None:
    found = await report(client)
    assert len(found["series"]) == 30 and found["complete"]
    assert found["totals"]["exchanges"] == 0


@pytest.mark.parametrize(("sessions", "each"), [(1, 12), (12, 1), (4, 3)])
async def test_too_much_is_counted_from_the_newest_and_said_to_be_incomplete(
    client: httpx.AsyncClient,
    store: Backend,
    now: float,
    monkeypatch: pytest.MonkeyPatch,
    sessions: int,
    each: int,
) -> None:
    monkeypatch.setattr(stats, "MAX_EXCHANGES", 5)
    monkeypatch.setattr(stats, "PAGE", 2)
    monkeypatch.setattr(stats, "AT_ONCE", 2)
    for session in range(sessions):
        for n in range(each):
            await said(store, f"s{session}", now - 1000 + 20 * session + n)
    found = await report(client)
    assert (found["totals"]["exchanges"], found["complete"]) == (5, False)
    assert now - 1000 <= found["counted_since"] < now
    monkeypatch.setattr(stats, "MAX_EXCHANGES", 12)
    found = await report(client)
    assert (found["totals"]["exchanges"], found["complete"]) == (12, True)
    assert found["counted_since"] is None


async def test_after_the_time_that_is_counted_from_nothing_is_missing(
    client: httpx.AsyncClient, store: Backend, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "MAX_EXCHANGES", 9)
    monkeypatch.setattr(stats, "AT_ONCE", 1)
    happened = [(f"s{n % 4}", now - DAY * (10 - n)) for n in range(10)] * 2
    for number, (session, at) in enumerate(happened):
        await said(store, session, at + number)
    found = await report(client)
    since = found["counted_since"]
    after = [at + n for n, (_, at) in enumerate(happened) if at + n > since]
    assert not found["complete"] and len(after) >= 2
    assert (
        found["totals"]["exchanges"]
        == len(after)
        == sum(bucket["exchanges"] for bucket in found["series"])
    )


async def test_if_only_older_sessions_are_left_all_is_counted(
    client: httpx.AsyncClient, store: Backend, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "MAX_EXCHANGES", 2)
    monkeypatch.setattr(stats, "AT_ONCE", 1)
    await said(store, "old", now - 40 * DAY)
    await said(store, "new", now - 60)
    await said(store, "new", now - 50)
    found = await report(client, days=2)
    assert (found["totals"]["exchanges"], found["complete"]) == (2, True)


async def test_what_is_older_is_not_even_looked_at(
    client: httpx.AsyncClient, store: Backend, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "MAX_EXCHANGES", 3)
    monkeypatch.setattr(stats, "PAGE", 1)
    monkeypatch.setattr(stats, "AT_ONCE", 1)
    for n in range(6):
        await said(store, "a", now - 40 * DAY + n)
        await said(store, f"old{n}", now - 40 * DAY - n)
    await said(store, "a", now - 60)
    found = await report(client, days=2)
    assert (found["totals"]["exchanges"], found["complete"]) == (1, True)


async def test_the_same_that_many_ask_for_at_once_is_not_counted_for_each(
    client: httpx.AsyncClient, store: Backend, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[stats.SampleScan] = []

    class Noted(stats.SampleScan):
        async def samples(self) -> AsyncIterator[Sample]:
            walks.append(self)
            await asyncio.sleep(0.1)  # meanwhile all others come
            async for each in super().samples():
                yield each

    monkeypatch.setattr(stats, "SampleScan", Noted)
    await said(store, "s", now - 60)
    found = await asyncio.gather(*(report(client, days=2) for _ in range(6)))
    assert [each["totals"]["exchanges"] for each in found] == [1] * 6
    assert len(walks) == 2, "one for who came first, one for who came while that was made"
    await said(store, "s", now - 50)
    assert (await report(client, days=2))["totals"]["exchanges"] == 2


async def test_an_import_is_no_exchange(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("Hello.", "Hi."))
    totals = (await report(client, days=2))["totals"]
    assert (totals["exchanges"], totals["messages"], totals["sessions"]) == (0, 2, 1)
    assert totals["latency_ms"] == {"p50": None, "p95": None}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("days=0", "days"),
        ("days=401", "days"),
        ("days=x", "days"),
        ("days=", "days"),
        ("days=%D9%A3", "days"),
        ("days=32&bucket=hour", "days"),
        ("bucket=week", "bucket"),
        ("user=a%20b", "user"),
    ],
)
async def test_a_wrong_question_is_refused_by_name(
    client: httpx.AsyncClient, query: str, param: str
) -> None:
    response = await client.get(f"{STATS}?{query}")
    assert (response.status_code, error_of(response)["param"]) == (400, param)


def test_the_clock_of_these_tests_stands_at_midday() -> None:
    assert time.gmtime(MIDDAY)[3:6] == (12, 0, 0)
