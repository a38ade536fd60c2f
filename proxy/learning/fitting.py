"""Blocks made of as many parts as fit.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from proxy.learning.known import CountText, framed

FRAME = 48
"""Tokens of a block beside its lines, about."""


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
