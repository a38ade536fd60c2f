"""What memory has done over time, from the newest sessions: for charts."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from proxy.chat.jsontext import UNREADABLE, decode
from proxy.memory.archive import Archive, PlacedExchange, Session
from proxy.memory.model import SessionKey
from proxy.memory.prompt.trace import shown_in
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call, Tenant
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.overview.shared import Shared
from proxy.memory_api.parameters import OfUser, whole
from proxy.memory_api.shapes import overview as shapes
from proxy.memory_api.shapes.overview import Bucket, Latency, Stats, Tokens
from proxy.recall.index import newest_session

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


def _bucket(call: Call) -> str:
    bucket = call.request.query_params.get("bucket", "day")
    if bucket not in STEPS:
        raise invalid(f"bucket must be one of: {', '.join(STEPS)}.", "bucket")
    return bucket


def _days(call: Call) -> int:
    text, most = call.request.query_params.get("days"), MOST_DAYS[_bucket(call)]
    if text is None:
        return DEFAULT_DAYS
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= most:
        raise invalid(f"days must be a whole number from 1 to {most}.", "days")
    return int(text)


Days = Annotated[
    int,
    Parameter(
        "days",
        "query",
        "So many days back; with hours at most 31.",
        whole(1, MOST_DAYS["day"], DEFAULT_DAYS),
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
        (days, bucket, user), lambda: _counted(api.store, tenant, days, bucket, user)
    )


async def _counted(
    store: Archive, tenant: str, days: int, bucket: Literal["day", "hour"], user: str | None
) -> Stats:
    span = span_of(days, STEPS[bucket], time.time())
    walk = Walk(store, tenant, user, span.since)
    samples = [sample async for sample in walk.samples()]
    counted = [each for each in samples if each.at > walk.counted_since]
    total, series = await asyncio.to_thread(lambda: tallied(once(counted), span))
    return Stats(
        since=span.since,
        until=span.until,
        bucket=bucket,
        complete=walk.complete,
        counted_since=None if walk.complete else walk.counted_since,
        totals=shapes.Figures(**_figures(total)),
        series=[Bucket(at=at, **_figures(each)) for at, each in series],
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
        newest = await newest_session(self._store, self._tenant, self._user, after)
        if newest is not None and newest.last_active_at >= self._since:
            self._leave_out((newest.last_active_at,))

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
                sample_of(session, placed)
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


LARGEST = 2**53
"""No upstream has ever counted so many tokens of one request."""

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")


_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_INCLUDING = ("prompt_tokens", *_DETAILS)
"""Anthropic counts what is cached beside ``input_tokens``; all others count it with the prompt."""


class Used(NamedTuple):
    """Tokens that an upstream says it has counted, 0 where it says nothing.

    Of the prompt's it had ``cached`` some, and has ``written`` some to its cache.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    written: int = 0


def used_in(usage: bytes | None) -> Used:
    """A usage object in the words of OpenAI's chat or responses API, Anthropic's or DeepSeek's.

    Whatever else it is counts nothing.
    """
    said = _decoded(usage)
    found = (each for name in _DETAILS if isinstance(each := said.get(name), Mapping))
    details: Mapping[str, object] = {**said, **next(found, {})}
    cached, written = _number(details, _CACHED), _number(details, _WRITTEN)
    prompt = _number(said, _PROMPT)
    if any(name in said for name in _BESIDE) and not any(name in said for name in _INCLUDING):
        prompt += cached + written
    return Used(prompt, _number(said, _COMPLETION), cached, written)


def _decoded(usage: bytes | None) -> Mapping[str, object]:
    try:
        said = decode(usage or b"null")
    except UNREADABLE:
        return {}
    return said if isinstance(said, dict) else {}


def _number(said: Mapping[str, object], names: Iterable[str]) -> int:
    """The first of these fields that is a count."""
    for name in names:
        value = said.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST:
            return int(value)
    return 0


class Sample(NamedTuple):
    """What counts of an exchange; ``at`` in Unix seconds, and ``began``, when its session was made.

    An import is no ``chat``: only its messages count.  ``latency`` is what memory took before the
    upstream was called, in milliseconds, None where it was not measured.
    """

    id: str
    at: float
    session: str
    began: float
    messages: int
    chat: bool
    used: Used
    injected: int
    recalled: int
    evicted: int
    latency: float | None


def sample_of(session: Session, placed: PlacedExchange) -> Sample:
    exchange, did = placed.exchange, placed.exchange.memory
    shown = shown_in(did)
    return Sample(
        id=exchange.id,
        at=exchange.created_at,
        session=session.id,
        began=session.created_at,
        messages=len(placed.messages),
        chat=did.reason != "import",
        used=used_in(exchange.usage),
        injected=did.tokens,
        recalled=shown.known + shown.recall if shown else 0,
        evicted=did.evicted_tokens,
        latency=did.duration_ms or None,
    )


def once(samples: Iterable[Sample]) -> list[Sample]:
    """Each exchange once, in the session that was made first: others with it are its forks."""
    newest_first = sorted(samples, key=lambda each: each.began, reverse=True)
    return list({each.id: each for each in newest_first}.values())


class Span(NamedTuple):
    """From ``since`` to ``until``, both included, in buckets of ``step``; Unix seconds."""

    since: float
    until: float
    step: float

    @property
    def starts(self) -> list[float]:
        """Where its buckets begin."""
        count = math.floor((self.until - self.since) / self.step)
        return [self.since + n * self.step for n in range(count + 1)]


class Figures(msgspec.Struct):
    """Sums of samples."""

    sessions: set[str] = msgspec.field(default_factory=set)
    messages: int = 0
    exchanges: int = 0
    with_usage: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cache_written: int = 0
    injected: int = 0
    recalled: int = 0
    evicted: int = 0
    latencies: list[float] = msgspec.field(default_factory=list)

    def add(self, sample: Sample) -> None:
        self.sessions.add(sample.session)
        self.messages += sample.messages
        self.exchanges += sample.chat
        self.with_usage += sample.chat and sample.used.prompt > 0
        self.prompt += sample.used.prompt
        self.completion += sample.used.completion
        self.cached += sample.used.cached
        self.cache_written += sample.used.written
        self.injected += sample.injected
        self.recalled += sample.recalled
        self.evicted += sample.evicted
        if sample.latency is not None:
            self.latencies.append(sample.latency)


def tallied(samples: Iterable[Sample], span: Span) -> tuple[Figures, list[tuple[float, Figures]]]:
    """All that falls into a span: together, and by bucket, those in which nothing happened too."""
    total, buckets = Figures(), [(at, Figures()) for at in span.starts]
    for sample in samples:
        place = math.floor((sample.at - span.since) / span.step)
        if 0 <= place < len(buckets):
            total.add(sample)
            buckets[place][1].add(sample)
    return total, buckets


def percentile(values: Sequence[float], share: float) -> float | None:
    """The least value that ``share`` of all do not exceed; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
