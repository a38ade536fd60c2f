"""Which ranked passages go into the prompt: within the budget, nothing twice.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from proxy.recall.excerpt import Cutter
from proxy.recall.match import Matches
from proxy.recall.score import LONG, Ranked

BLOCK_TOKENS = 40
SESSION_TOKENS = 9
PASSAGE_TOKENS = 0
"""What framing costs: the block, the line of a session, the label of a passage, which is no more
than what a message costs beside its text."""

MIN_SCORE = 0.15
"""The least share of what the question's words are worth that the best passage must hold."""

ALIKE = 0.8
"""Share of words in common that makes two passages one."""

CUT = 250
"""Tokens, about, of the excerpt of a long passage."""

DENSER = 1.1
"""What an excerpt may have in tokens by character, against the whole: it has more names and code.
"""

MORE = 1.4
"""So many times the budget is read: some passages are gone, say it twice or do not fit."""

_READ = 4096
_SPACED = 12
"""Characters to a word at most in a text that has spaces."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A message as it is in history; ``time`` in Unix seconds.  ``cut``: an excerpt of it."""

    number: int
    session: int
    seq: int
    role: str
    text: str
    tokens: int
    time: float
    cut: bool = False


def relevant(matches: Matches, min_score: float = MIN_SCORE) -> bool:
    """Whether there is anything to recall: passages of the day, or that hold enough of the words.

    ``min_score`` is a share, 0 to 1.
    """
    if matches.dated.size:
        return True
    return bool(matches.cover.size) and float(matches.cover.max()) >= min_score


def shortlist(ranked: Sequence[Ranked], budget: int) -> Sequence[Ranked]:
    """The passages that are worth reading: more than the budget holds, best first."""
    tokens = 0
    for place, each in enumerate(ranked):
        tokens += min(each.tokens, LONG) + PASSAGE_TOKENS
        if tokens > MORE * budget + LONG:
            return ranked[: place + 1]
    return ranked


def choose(
    matches: Matches,
    ranked: Sequence[Ranked],
    passages: Mapping[int, Passage],
    budget: int,
) -> list[Passage]:
    """The passages to inject, in rank order: greedy, what does not fit is skipped.

    Ranked numbers without a passage (gone from history, or already in the prompt) are left out, as
    are passages that say no more than the question or one before them.
    """
    left = budget - BLOCK_TOKENS
    chosen: list[Passage] = []
    sessions: set[int] = set()
    seen = [_said(matches.question.text)]
    cutter = Cutter(matches.question, matches.worth)
    for passage in _there(ranked, passages):
        cost = PASSAGE_TOKENS + SESSION_TOKENS * (passage.session not in sessions)
        if min(passage.tokens, CUT) + cost > left:
            continue
        said = _said(passage.text)
        if _is_alike(said, seen):
            continue
        passage = _fitted(passage, cutter)
        if passage.tokens + cost > left:
            continue
        left -= passage.tokens + cost
        chosen.append(passage)
        sessions.add(passage.session)
        seen.append(said)
    return chosen


def _there(ranked: Sequence[Ranked], passages: Mapping[int, Passage]) -> Iterator[Passage]:
    found = (passages.get(each.number) for each in ranked)
    return (passage for passage in found if passage is not None)


def _fitted(passage: Passage, cutter: Cutter) -> Passage:
    """A passage, or the parts of it that matter if it is long."""
    if passage.tokens <= LONG:
        return passage
    text = cutter.excerpt(passage.text, passage.tokens, CUT)
    tokens = 1 + int(DENSER * passage.tokens * len(text) / max(1, len(passage.text)))
    return replace(passage, text=text, tokens=tokens, cut=True)


def _said(text: str) -> frozenset[str]:
    """The words of a text, roughly; pairs of characters where it has no spaces."""
    text = text[:_READ].lower()
    parts = text.split()
    if len(parts) * _SPACED > len(text):
        return frozenset(parts)
    return frozenset(first + second for first, second in pairwise(text))


def _is_alike(said: frozenset[str], seen: Sequence[frozenset[str]]) -> bool:
    least, most = ALIKE * len(said), len(said) / ALIKE
    for other in seen:
        if least <= len(other) <= most:
            shared = len(said & other)
            if shared >= ALIKE * (len(said) + len(other) - shared):
                return True
    return False
