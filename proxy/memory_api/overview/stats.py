"""Figures of exchanges over time, from the newest sessions, for charts."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any, Literal

from proxy.memory.archive import Archive, Session
from proxy.memory.model import SessionKey
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call, Tenant
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.overview.figures import (
    DAY,
    Figures,
    Sample,
    distinct,
    percentile,
    sample_of,
    span_of,
    sum_by_bucket,
)
from proxy.memory_api.overview.shared import Shared
from proxy.memory_api.parameters import OfUser, integer_schema, one_of
from proxy.memory_api.shapes import overview as shapes
from proxy.memory_api.shapes.overview import Bucket, Latency, Stats, Tokens
from proxy.recall.index import newest_session

STEPS = {"day": DAY, "hour": 3600}
"""Seconds of a bucket."""

MAX_DAYS = {"day": 400, "hour": 31}
DEFAULT_DAYS = 30

MAX_EXCHANGES = 5000
"""The most exchanges that are read, and sessions."""

PAGE = 100
AT_ONCE = 16
"""Sessions that are read concurrently."""

_NUMBER = re.compile(r"[0-9]{1,6}")


_bucket = one_of("bucket", [*STEPS])


def _days(call: Call) -> int:
    text, max_days = call.request.query_params.get("days"), MAX_DAYS[_bucket(call)]
    if text is None:
        return DEFAULT_DAYS
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= max_days:
        raise invalid(f"days must be a whole number from 1 to {max_days}.", "days")
    return int(text)


Days = Annotated[
    int,
    Parameter(
        "days",
        "query",
        "So many days back; with hours at most 31.",
        integer_schema(1, MAX_DAYS["day"], DEFAULT_DAYS),
        read=_days,
    ),
]
Step = Annotated[
    Literal["day", "hour"],
    Parameter(
        "bucket", "query", "How long a bucket is.", {"enum": [*STEPS]}, example="day", read=_bucket
    ),
]


@operation("GET", "/memory/v1/stats", "Overview")
async def get_stats(api: Api, tenant: Tenant, days: Days, bucket: Step, user: OfUser) -> Stats:
    """Get figures over time.

    Of the exchanges of the newest sessions; `complete` is false where there are more than are
    looked at.
    """
    shared = api.statistics.setdefault(tenant, Shared())
    return await shared.answer(
        (days, bucket, user), lambda: _compute_stats(api.store, tenant, days, bucket, user)
    )


async def _compute_stats(
    store: Archive, tenant: str, days: int, bucket: Literal["day", "hour"], user: str | None
) -> Stats:
    span = span_of(days, STEPS[bucket], time.time())
    scan = SampleScan(store, tenant, user, span.since)
    samples = [sample async for sample in scan.samples()]
    counted = [each for each in samples if each.at > scan.counted_since]
    total, series = await asyncio.to_thread(lambda: sum_by_bucket(distinct(counted), span))
    return Stats(
        since=span.since,
        until=span.until,
        bucket=bucket,
        complete=scan.complete,
        counted_since=None if scan.complete else scan.counted_since,
        totals=shapes.Figures(**_figures(total)),
        series=[Bucket(at=at, **_figures(each)) for at, each in series],
    )


class SampleScan:
    """Reads the exchanges of the newest sessions back to ``since``.  ``complete``: all were read,
    else those after ``counted_since`` (Unix seconds)."""

    def __init__(self, store: Archive, tenant: str, user: str | None, since: float) -> None:
        self._store, self._tenant, self._user, self._since = store, tenant, user, since
        self._remaining = MAX_EXCHANGES
        self.complete = True
        self.counted_since = -math.inf

    async def samples(self) -> AsyncIterator[Sample]:
        """Raises StoreError."""
        after: str | None = None
        sessions_left = MAX_EXCHANGES
        while sessions_left > 0:
            page = await self._store.sessions(self._tenant, self._user, after, AT_ONCE)
            recent = [x for x in page.items if x.last_active_at >= self._since]
            for session_samples in await asyncio.gather(*map(self._session_samples, recent)):
                for sample in session_samples[: self._remaining]:
                    yield sample
                self._mark_incomplete(sample.at for sample in session_samples[self._remaining :])
                self._remaining = max(0, self._remaining - len(session_samples))
            after, sessions_left = page.after, sessions_left - len(page.items)
            if after is None or len(recent) < len(page.items):
                return
            if not self._remaining:
                break
        newest = await newest_session(self._store, self._tenant, self._user, after)
        if newest is not None and newest.last_active_at >= self._since:
            self._mark_incomplete((newest.last_active_at,))

    def _mark_incomplete(self, times: Iterable[float]) -> None:
        """Note that exchanges of these times are not counted."""
        for at in times:
            self.complete = False
            self.counted_since = max(self.counted_since, at)

    async def _session_samples(self, session: Session) -> list[Sample]:
        """A session's samples, newest first; one more than the limit if there are more.

        Exchanges are ordered by position, not by time: reading ends with a page of old ones.
        """
        key = SessionKey(self._tenant, session.id)
        samples: list[Sample] = []
        before: int | None = None
        while len(samples) <= self._remaining:
            page = await self._store.exchanges(key, before, PAGE)
            recent = [
                sample_of(session, placed)
                for placed in page.items
                if placed.exchange.created_at >= self._since
            ]
            samples += recent
            if page.after is None or not recent:
                break
            before = int(page.after)
        return samples[: self._remaining + 1]


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "sessions": len(figures.sessions),
        "messages": figures.messages,
        "exchanges": figures.exchanges,
        "with_usage": figures.with_usage,
        "tokens": Tokens(
            prompt=figures.prompt,
            completion=figures.completion,
            cached=figures.cached,
            cache_written=figures.cache_written,
            injected=figures.injected,
            recalled=figures.recalled,
            evicted=figures.evicted,
        ),
        "latency_ms": Latency(
            p50=percentile(figures.latencies, 0.5), p95=percentile(figures.latencies, 0.95)
        ),
    }
