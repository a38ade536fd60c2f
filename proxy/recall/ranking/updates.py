"""Finds later messages that update a passage ("they changed the ramipril to losartan").

They often share rare words with the passage and none with the question.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from proxy.recall.index import Postings
from proxy.recall.query.question import QueryWord, Question, query_words
from proxy.recall.ranking.follow_ups import is_brief_statement, unscored
from proxy.recall.ranking.match import NO_PASSAGES, Numbers
from proxy.recall.ranking.packing import (
    SAID_BY_USER,
    STATEMENT_MASK,
    Array,
    newest_passage,
    read_postings,
)
from proxy.recall.ranking.score import SHORT_TOKENS, Ranked

MAX_CHANGES = 4

MAX_WORDS = 8
"""Words of a passage that are searched in later messages."""

MAX_RARE_PASSAGES = 8
"""A word is rare if it is in at most so many passages."""


NEXT_TURN_DISTANCE = 2
"""Passages from a user's message to their next one; the answer in between often repeats it."""


class NewWords(NamedTuple):
    """A passage, by number, and its words that are not in the question."""

    number: int
    words: Sequence[QueryWord]

    @property
    def terms(self) -> tuple[bytes, ...]:
        return tuple([term for word in self.words for term in word.terms])

    def later(self, postings: Iterable[Postings]) -> Numbers:
        """Passages after it and its answer that have one of its rare words, ascending;
        ``postings`` are those of ``terms``."""
        left, found, first = iter(postings), list[bytes](), self.number + NEXT_TURN_DISTANCE
        for word in self.words:
            of_word = list(islice(left, len(word.terms)))
            if 1 < sum([each.count for each in of_word]) <= MAX_RARE_PASSAGES:
                found += [each.newest for each in of_word if newest_passage(each.newest) >= first]
        if not found:
            return NO_PASSAGES
        numbers = read_postings(b"".join(found))["passage"]
        return np.unique(numbers[numbers >= first])


def best_statement(ranked: Iterable[Ranked]) -> Ranked | None:
    """The best statement of the user (no question); None if it is long, since values are said in
    few words."""
    for each in ranked:
        if each.flags & STATEMENT_MASK == SAID_BY_USER:
            return each if each.tokens <= SHORT_TOKENS else None
    return None


def new_words_of(number: int, text: str, question: Question) -> NewWords:
    """The words of a passage's text that are neither in the question nor numbers."""
    question_terms = frozenset(question.terms)
    new = (word for word in query_words(text) if question_terms.isdisjoint(word.terms))
    without_numbers = (word for word in new if not word.text.isdecimal())
    return NewWords(number, tuple(islice(without_numbers, MAX_WORDS)))


def later_statements(numbers: Numbers, rows: Array, known: Collection[int]) -> list[Ranked]:
    """The newest brief statements of the user among these, in order, without ``known`` ones."""
    (fits,) = ((rows["seq"] > 0) & is_brief_statement(rows)).nonzero()
    found = [unscored(int(numbers[place]), rows[place]) for place in fits.tolist()]
    return [each for each in found if each.number not in known][-MAX_CHANGES:]
