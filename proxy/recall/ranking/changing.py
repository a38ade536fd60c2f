"""What the user says in a later session of what a passage tells ("they changed the ramipril to
losartan") often names that, and nothing of what is asked.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from proxy.recall.index import Postings
from proxy.recall.query.question import Question, Sought, words_of
from proxy.recall.ranking.following import of_row, told_briefly
from proxy.recall.ranking.match import NOBODY, Numbers
from proxy.recall.ranking.packing import SAID_BY_USER, WHO_SAYS, Array, newest_of, read_postings
from proxy.recall.ranking.score import SHORT, Ranked

MOST_CHANGES = 4

MOST_NAMED = 8
"""Words of a passage that are looked for in what was said later."""

RARE = 8
"""In so many passages, at most, is a word that tells what a later message is about."""


BEHIND_ANSWER = 2
"""So far behind what the user says is what they say next: the answer often says it again."""


class Named(NamedTuple):
    """What the passage of this number tells beside what is asked."""

    number: int
    words: Sequence[Sought]

    @property
    def terms(self) -> tuple[bytes, ...]:
        return tuple([term for word in self.words for term in word.terms])

    def later(self, postings: Iterable[Postings]) -> Numbers:
        """The numbers behind it and its answer that have a rare word of it, ascending; the
        ``postings`` are those of ``terms``."""
        left, found, first = iter(postings), list[bytes](), self.number + BEHIND_ANSWER
        for word in self.words:
            of_word = list(islice(left, len(word.terms)))
            if 1 < sum([each.count for each in of_word]) <= RARE:
                found += [each.newest for each in of_word if newest_of(each.newest) >= first]
        if not found:
            return NOBODY
        numbers = read_postings(b"".join(found))["passage"]
        return np.unique(numbers[numbers >= first])


def best_told(ranked: Iterable[Ranked]) -> Ranked | None:
    """The best passage that the user said and asked nothing with, if it is short: a value is told
    in few words."""
    for each in ranked:
        if each.flags & WHO_SAYS == SAID_BY_USER:
            return each if each.tokens <= SHORT else None
    return None


def told(number: int, text: str, question: Question) -> Named:
    """What the text of this passage tells beside what is asked; numbers name nothing."""
    asked = frozenset(question.terms)
    beside = (word for word in words_of(text) if asked.isdisjoint(word.terms))
    names = (word for word in beside if not word.text.isdecimal())
    return Named(number, tuple(islice(names, MOST_NAMED)))


def changes(numbers: Numbers, rows: Array, known: Collection[int]) -> list[Ranked]:
    """The newest brief messages of the user among these, in their order; none that asks, or is
    ``known``."""
    (fits,) = ((rows["seq"] > 0) & told_briefly(rows)).nonzero()
    found = [of_row(int(numbers[place]), rows[place]) for place in fits.tolist()]
    return [each for each in found if each.number not in known][-MOST_CHANGES:]
