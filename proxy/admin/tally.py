"""What exchanges add up to, over time.  Pure: exchanges in, figures out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.chat.jsontext import UNREADABLE, decode
from proxy.memory.archive import Placed
from proxy.memory.model import Exchange
from proxy.memory.shown import shown_in

LARGEST = 2**53
"""No upstream has ever counted so many tokens of one request."""

_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_CACHED = ("prompt_cache_hit_tokens", "cache_read_input_tokens")


class Used(NamedTuple):
    """Tokens that an upstream says it has counted, 0 where it says nothing."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


def used_in(usage: bytes | None) -> Used:
    """A usage object in the words of OpenAI's chat or responses API, Anthropic's or DeepSeek's.

    Whatever else it is counts nothing.
    """
    said = _decoded(usage)
    details = next((said[name] for name in _DETAILS if isinstance(said.get(name), Mapping)), None)
    cached = _number(details, ("cached_tokens",)) if isinstance(details, Mapping) else 0
    return Used(
        _number(said, _PROMPT), _number(said, _COMPLETION), cached or _number(said, _CACHED)
    )


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
    """What counts of an exchange; ``at`` in Unix seconds.

    An import is no ``chat``: only its messages count.  ``latency`` is what memory took before the
    upstream was called, in milliseconds, None where it was not measured.
    """

    at: float
    session: str
    messages: int
    chat: bool
    used: Used
    injected: int
    recalled: int
    evicted: int
    latency: float | None


def sample_of(session: str, placed: Placed) -> Sample:
    exchange, did = placed.exchange, placed.exchange.memory
    shown = shown_in(did)
    return Sample(
        at=exchange.created_at,
        session=session,
        messages=len(placed.messages),
        chat=not _is_import(exchange),
        used=used_in(exchange.usage),
        injected=did.tokens,
        recalled=shown.known + shown.recall if shown else 0,
        evicted=did.evicted_tokens,
        latency=did.duration_ms or None,
    )


def _is_import(exchange: Exchange) -> bool:
    return exchange.memory.reason == "import"


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


@dataclass(slots=True)
class Figures:
    """Sums of samples."""

    sessions: set[str] = field(default_factory=set)
    messages: int = 0
    exchanges: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    injected: int = 0
    recalled: int = 0
    evicted: int = 0
    latencies: list[float] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        self.sessions.add(sample.session)
        self.messages += sample.messages
        self.exchanges += sample.chat
        self.prompt += sample.used.prompt
        self.completion += sample.used.completion
        self.cached += sample.used.cached
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
