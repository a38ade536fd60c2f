"""Finds brief messages a few turns after a passage, which often change it ("no boots").

They need not share a word with the question.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from proxy.recall.ranking.match import NO_PASSAGES, Matches, Numbers
from proxy.recall.ranking.packing import SAID_BY_USER, STATEMENT_MASK, Array
from proxy.recall.ranking.score import PARTS, Ranked
from proxy.recall.ranking.select import BRIEF_TOKENS

MAX_FOLLOWING = 4

BEST_MATCHES, FOLLOWING = 3, 10
"""After each of so many of the best matches so many passages are read."""

_OFFSETS = np.arange(1, FOLLOWING + 1)


def numbers_after_best(matches: Matches) -> Numbers:
    """The numbers after those of the best matches, ascending; some may have no passage."""
    best = matches.numbers
    if best.size > BEST_MATCHES:
        best = best[matches.scores.argpartition(-BEST_MATCHES)[-BEST_MATCHES:]]
    return np.unique(best[:, None] + _OFFSETS) if best.size else NO_PASSAGES


def brief_statements_after(
    best: Ranked, numbers: Numbers, rows: Array, known: Collection[int]
) -> list[Ranked]:
    """The first brief statements of the user after the best passage in its session, without
    ``known`` ones.  ``rows`` are those of ``numbers``, which ascend."""
    first, last = np.searchsorted(numbers, (best.number + 1, best.number + FOLLOWING + 1)).tolist()
    near = rows[first:last]
    fits = (near["session"] == best.session) & (near["seq"] > best.seq)
    fits &= is_brief_statement(near)
    found = [
        unscored(int(numbers[first + place]), near[place]) for place in fits.nonzero()[0].tolist()
    ]
    return [each for each in found if each.number not in known][:MAX_FOLLOWING]


def is_brief_statement(rows: Array) -> Array:
    """A mask of the brief messages of the user that are no questions."""
    is_statement = (rows["flags"] & STATEMENT_MASK) == SAID_BY_USER
    is_brief: Array = is_statement & (rows["tokens"] <= BRIEF_TOKENS)
    return is_brief


def unscored(number: int, row: Array) -> Ranked:
    """A passage without a score of its own."""
    names = ("session", "seq", "check", "tokens")
    session, seq, check, tokens = (int(row[name]) for name in names)
    nothing = (0.0,) * len(PARTS)
    return Ranked(number, session, seq, check, tokens, 0.0, nothing, int(row["flags"]))
