"""Blocks made of as many parts as fit.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from proxy.learning.known import CountText, framed

FRAME = 48
"""Tokens of a block beside its lines, about."""


class Priced(Protocol):
    """Something that costs ``tokens`` in a prompt."""

    @property
    def tokens(self) -> int: ...


PricedT = TypeVar("PricedT", bound=Priced)


def affordable(
    scored: Iterable[tuple[float, PricedT]], room: int
) -> Iterator[tuple[float, PricedT]]:
    """Those that fit into ``room`` tokens together, in this order; what does not is skipped."""
    for score, one in scored:
        if one.tokens <= room:
            room -= one.tokens
            yield score, one


class Fitted(NamedTuple):
    """The first ``parts`` parts as lines, and the tokens of a block of them."""

    parts: int
    lines: str
    tokens: int


def fitted(
    kind: str, note: str, parts: Sequence[str], joint: str, most: int, count: CountText
) -> Fitted | None:
    """As many of the first parts as a block of at most ``most`` tokens holds; None if none does."""
    while parts:
        lines = joint.join(parts)
        tokens = count(framed(kind, note, lines))
        if tokens <= most:
            return Fitted(len(parts), lines, tokens)
        parts = parts[: len(parts) * most // (tokens + 1)]
    return None
