"""What memory has done over time, from the newest sessions: for charts."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Iterable

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.objects import Object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.tally import Figures, Sample, Span, percentile, sample_of, tallied
from proxy.memory.archive import Archive, Session
from proxy.memory.model import SessionKey

DAY = 86_400
STEPS = {"day": DAY, "hour": 3600}
"""Seconds of a bucket."""

MOST_DAYS = {"day": 400, "hour": 31}
DEFAULT_DAYS = 30

MOST_EXCHANGES = 5000
"""Exchanges that are looked at, and sessions."""

PAGE = 100
AT_ONCE = 16
"""Sessions that are read at the same time."""

_NUMBER = re.compile(r"[0-9]{1,6}")


class Stats:
    """``/stats``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access

    async def report(self, request: Request) -> Response:
        """Of the last ``?days=``, by ``?bucket=``, of all or of ``?user=``; UTC.

        ``complete`` is false where there are too many exchanges to look at all of them: then those
        after ``counted_since`` are counted, all of them, and none before.
        """
        tenant = self._access.tenant(request)
        user = asking.user_id(request.query_params.get("user"), "user")
        bucket = _bucket(request)
        span = span_of(_days(request, bucket), STEPS[bucket], time.time())
        walk = Walk(self._store, tenant, user, span.since)
        samples = [sample async for sample in walk.samples()]
        counted = [each for each in samples if each.at > walk.counted_since]
        total, series = await asyncio.to_thread(tallied, counted, span)
        return reply(
            {
                "object": "stats",
                "since": span.since,
                "until": span.until,
                "bucket": bucket,
                "complete": walk.complete,
                "counted_since": None if walk.complete else walk.counted_since,
                "totals": figures_object(total),
                "series": [{"at": at, **figures_object(each)} for at, each in series],
            }
        )


class Walk:
    """Through the exchanges of the newest sessions, back to ``since``; ``complete`` when all of
    them were looked at, else all after ``counted_since`` (Unix seconds)."""

    def __init__(self, store: Archive, tenant: str, user: str | None, since: float) -> None:
        self._store, self._tenant, self._user, self._since = store, tenant, user, since
        self._left = MOST_EXCHANGES
        self.complete = True
        self.counted_since = -math.inf

    async def samples(self) -> AsyncIterator[Sample]:
        """Raises StoreError."""
        after: str | None = None
        sessions = MOST_EXCHANGES
        while sessions > 0:
            page = await self._store.sessions(self._tenant, self._user, after, AT_ONCE)
            recent = [x for x in page.items if x.last_active_at >= self._since]
            for found in await asyncio.gather(*map(self._of, recent)):
                for sample in found[: self._left]:
                    yield sample
                self._leave_out(sample.at for sample in found[self._left :])
                self._left = max(0, self._left - len(found))
            after, sessions = page.after, sessions - len(page.items)
            if after is None or len(recent) < len(page.items):
                return
            if not self._left:
                break
        page = await self._store.sessions(self._tenant, self._user, after, 1)
        newest = [session.last_active_at for session in page.items]
        self._leave_out(at for at in newest if at >= self._since)

    def _leave_out(self, times: Iterable[float]) -> None:
        """What there is of these times is not counted."""
        for at in times:
            self.complete = False
            self.counted_since = max(self.counted_since, at)

    async def _of(self, session: Session) -> list[Sample]:
        """A session's, newest first; one more than may be looked at tells that there are more.

        Exchanges are ordered by place, not by time: a page of nothing but old ones ends it.
        """
        key = SessionKey(self._tenant, session.id)
        found: list[Sample] = []
        before: int | None = None
        while len(found) <= self._left:
            page = await self._store.exchanges(key, before, PAGE)
            recent = [
                sample_of(session.id, placed)
                for placed in page.items
                if placed.exchange.created_at >= self._since
            ]
            found += recent
            if page.after is None or not recent:
                break
            before = int(page.after)
        return found[: self._left + 1]


def span_of(days: int, step: int, now: float) -> Span:
    """So many days that end with the bucket of ``now``; buckets begin at full hours or days."""
    last = now - now % step
    return Span(last + step - days * DAY, now, step)


def _bucket(request: Request) -> str:
    bucket = request.query_params.get("bucket", "day")
    if bucket not in STEPS:
        raise invalid(f"bucket must be one of: {', '.join(STEPS)}.", "bucket")
    return bucket


def _days(request: Request, bucket: str) -> int:
    text, most = request.query_params.get("days"), MOST_DAYS[bucket]
    if text is None:
        return DEFAULT_DAYS
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= most:
        raise invalid(f"days must be a whole number from 1 to {most}.", "days")
    return int(text)


def figures_object(figures: Figures) -> Object:
    return {
        "sessions": len(figures.sessions),
        "messages": figures.messages,
        "exchanges": figures.exchanges,
        "tokens": {
            "prompt": figures.prompt,
            "completion": figures.completion,
            "cached": figures.cached,
            "injected": figures.injected,
            "recalled": figures.recalled,
            "evicted": figures.evicted,
        },
        "latency_ms": {
            "p50": percentile(figures.latencies, 0.5),
            "p95": percentile(figures.latencies, 0.95),
        },
    }
