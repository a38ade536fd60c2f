"""What the user says a few turns behind a passage often changes it ("no boots", "one more"), and
shares no word with what is asked later.  Pure."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from proxy.recall.ranking.match import NOBODY, Matches, Numbers
from proxy.recall.ranking.packing import SAID_BY_USER, WHO_SAYS, Array
from proxy.recall.ranking.score import PARTS, Ranked
from proxy.recall.ranking.select import BRIEF

MOST_FOLLOWING = 4

BEST, BEHIND = 3, 10
"""Behind so many of the best matches so many passages are looked at."""

_BEHIND = np.arange(1, BEHIND + 1)


def behind(matches: Matches) -> Numbers:
    """The numbers behind those of the best matches, ascending; there may be no such passage."""
    best = matches.numbers
    if best.size > BEST:
        best = best[matches.scores.argpartition(-BEST)[-BEST:]]
    return np.unique(best[:, None] + _BEHIND) if best.size else NOBODY


def following(best: Ranked, numbers: Numbers, rows: Array, known: Collection[int]) -> list[Ranked]:
    """The first brief messages of the user behind the best passage, in its session; none that
    asks, or is ``known``.  ``rows`` are those of ``numbers``, ascending."""
    first, last = np.searchsorted(numbers, (best.number + 1, best.number + BEHIND + 1)).tolist()
    near = rows[first:last]
    fits = (near["session"] == best.session) & (near["seq"] > best.seq)
    fits &= told_briefly(near)
    found = [
        of_row(int(numbers[first + place]), near[place]) for place in fits.nonzero()[0].tolist()
    ]
    return [each for each in found if each.number not in known][:MOST_FOLLOWING]


def told_briefly(rows: Array) -> Array:
    """Which are brief messages of the user that ask nothing."""
    found: Array = ((rows["flags"] & WHO_SAYS) == SAID_BY_USER) & (rows["tokens"] <= BRIEF)
    return found


def of_row(number: int, row: Array) -> Ranked:
    """A passage that matched nothing."""
    names = ("session", "seq", "check", "tokens")
    session, seq, check, tokens = (int(row[name]) for name in names)
    nothing = (0.0,) * len(PARTS)
    return Ranked(number, session, seq, check, tokens, 0.0, nothing, int(row["flags"]))
