"""Turns as portions that a model reads at once.  Pure, and slow for long texts: for a thread.

A batch holds whole turns, as many as fit.  A turn that alone is too large is a batch of several
parts, which are read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from proxy.summary.lines import Count, Line, pieces_of


@dataclass(frozen=True, slots=True)
class Batch:
    """The first ``turns`` of those that wait.  ``parts`` hold all their lines, in order; none if
    there is nothing to read in them.
    """

    turns: int
    parts: tuple[str, ...]


def first_batch(turns: Sequence[Sequence[Line]], max_tokens: int, count: Count) -> Batch:
    """The first of the turns, as many as fit into ``max_tokens``, but at least one with text."""
    texts: list[str] = []
    tokens = 0
    for turn in turns:
        text = "\n".join(map(str, turn))
        room = _room(text, count)
        if tokens and tokens + room > max_tokens:
            break
        texts.append(text)
        tokens += room
    taken = len(texts)
    if tokens > max_tokens:
        lines = chain.from_iterable(turns[:taken])
        return Batch(taken, tuple(_parts(lines, max_tokens, count)))
    return Batch(taken, ("\n".join(filter(None, texts)),) if tokens else ())


def _parts(lines: Iterable[Line], max_tokens: int, count: Count) -> Iterator[str]:
    """The lines in parts that fit; a line that does not fit in itself comes in pieces."""
    part: list[str] = []
    tokens = 0
    for piece in (piece for line in lines for piece in pieces_of(line, max_tokens - 1, count)):
        room = _room(piece, count)
        if part and tokens + room > max_tokens:
            yield "\n".join(part)
            part, tokens = [], 0
        part.append(piece)
        tokens += room
    if part:
        yield "\n".join(part)


def _room(text: str, count: Count) -> int:
    """Tokens of a text and of the line feed behind it."""
    return count(text) + 1 if text else 0
