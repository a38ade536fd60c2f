"""Figures of exchanges, summed by bucket of time.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from proxy.chat.usage import TokenUsage, read_usage
from proxy.memory.archive import PlacedExchange, Session
from proxy.memory.prompt.trace import readable_trace

DAY = 86_400


class Sample(NamedTuple):
    """The figures of one exchange.  ``at`` and ``session_began`` in Unix seconds.

    Of an import, which is no chat, only the messages are counted.  ``latency``: milliseconds that
    memory took before the upstream was called, None if not measured.
    """

    id: str
    at: float
    session: str
    session_began: float
    messages: int
    is_chat: bool
    usage: TokenUsage
    injected: int
    recalled: int
    evicted: int
    latency: float | None


def sample_of(session: Session, placed: PlacedExchange) -> Sample:
    exchange, injection = placed.exchange, placed.exchange.memory
    trace = readable_trace(injection)
    return Sample(
        id=exchange.id,
        at=exchange.created_at,
        session=session.id,
        session_began=session.created_at,
        messages=len(placed.messages),
        is_chat=injection.reason != "import",
        usage=read_usage(exchange.usage),
        injected=injection.tokens,
        recalled=trace.learned_tokens + trace.recall_tokens if trace else 0,
        evicted=injection.evicted_tokens,
        latency=injection.duration_ms or None,
    )


def distinct(samples: Iterable[Sample]) -> list[Sample]:
    """The samples without duplicates by exchange: that of the oldest session, not of its forks."""
    newest_first = sorted(samples, key=lambda each: each.session_began, reverse=True)
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


def span_of(days: int, step: int, now: float) -> Span:
    """So many days that end with the bucket of ``now``; buckets begin at full hours or days."""
    last = now - now % step
    return Span(last + step - days * DAY, now, step)


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
        self.exchanges += sample.is_chat
        self.with_usage += sample.is_chat and sample.usage.prompt > 0
        self.prompt += sample.usage.prompt
        self.completion += sample.usage.completion
        self.cached += sample.usage.cached
        self.cache_written += sample.usage.written
        self.injected += sample.injected
        self.recalled += sample.recalled
        self.evicted += sample.evicted
        if sample.latency is not None:
            self.latencies.append(sample.latency)


def sum_by_bucket(
    samples: Iterable[Sample], span: Span
) -> tuple[Figures, list[tuple[float, Figures]]]:
    """Sums of the samples in a span: of all, and by bucket, also of empty buckets."""
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
