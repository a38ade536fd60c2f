"""Scores a few short texts, such as facts and examples, against a query.  Pure.

Their terms are stored together on a card, so that all are scored at once, without an index.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from itertools import islice
from struct import iter_unpack
from typing import NamedTuple

from proxy.recall.query.question import Question, read_question
from proxy.recall.query.words import analyse

TERM_BYTES = 4
"""Bytes stored of each term, few because a card is loaded with every request."""

VIRTUAL_TEXTS = 40
"""Texts without any query term that are added to the number of texts: else a term in both of two
texts would have no weight."""

ABSENT_SHARE = 1 / 20
"""A query term in no text is weighted as one in this share of them."""


def pack_terms(text: str, time: float) -> bytes:
    """The terms of a text written at ``time`` (Unix seconds), sorted and packed."""
    return b"".join(sorted(term[:TERM_BYTES] for term in analyse(text, time).terms))


class QueryTerms(NamedTuple):
    """A query's words, days and names: the ``weights`` of these, and ``places``, the indexes of
    those that each term belongs to."""

    weights: tuple[float, ...]
    places: Mapping[bytes, Sequence[int]]

    @classmethod
    def of(cls, question: Question) -> QueryTerms:
        """Without words that are only near in meaning: the texts are single lines."""
        parts = [(word.terms, word.weight) for word in question.words if not word.is_expansion]
        parts += [((day,), 1.0) for day in (*question.day_terms, *question.speaker_terms)]
        places: dict[bytes, list[int]] = {}
        for place, (terms, _) in enumerate(parts):
            for term in terms:
                places.setdefault(term[:TERM_BYTES], []).append(place)
        return cls(tuple([weight for _, weight in parts]), places)


class QueryText:
    """The text of a query at ``now`` (Unix seconds) in a zone, None for UTC; analysed only when it
    is needed: where everything fits, it is not."""

    def __init__(self, text: str, now: float, zone: tzinfo | None = None) -> None:
        self._text, self._now, self._zone = text, now, zone

    @cached_property
    def _question(self) -> Question:
        return read_question(self._text, (), self._now, self._zone)

    @property
    def is_empty(self) -> bool:
        return self._question.is_empty

    @cached_property
    def query_terms(self) -> QueryTerms:
        return QueryTerms.of(self._question)


class TermLists:
    """The terms of several texts: all ``packed`` together, and ``sizes``, the number of each.

    Kept as postings, so that a query looks only at its own terms.
    """

    def __init__(self, sizes: Sequence[int], packed: bytes) -> None:
        self._texts = len(sizes)
        self._postings: defaultdict[bytes, list[int]] = defaultdict(list)
        terms = iter_unpack(f"{TERM_BYTES}s", packed)
        for text, size in enumerate(sizes):
            for (term,) in islice(terms, size):
                self._postings[term].append(text)

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> TermLists:
        parts = list(packed)
        return cls([len(part) // TERM_BYTES for part in parts], b"".join(parts))

    def scores(self, query: QueryText) -> list[float]:
        """For each text the share, 0 to 1, of the query's total weight that it matches."""
        weights, places = query.query_terms
        having = self._matches(places)
        texts = self._texts + VIRTUAL_TEXTS
        absent = _idf(ABSENT_SHARE * texts, texts)
        rarity = {place: _idf(len(matched), texts) for place, matched in having.items()}
        worths = [weight * rarity.get(place, absent) for place, weight in enumerate(weights)]
        whole, found = sum(worths), [0.0] * self._texts
        for place in sorted(having):
            share = worths[place] / whole
            for text in having[place]:
                found[text] += share
        return found

    def _matches(self, places: Mapping[bytes, Sequence[int]]) -> Mapping[int, set[int]]:
        """By the index of a query word, the indexes of the texts that have a term of it."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for term in places.keys() & self._postings.keys():
            for place in places[term]:
                found[place].update(self._postings[term])
        return found


def _idf(having: float, texts: int) -> float:
    """The idf of Lucene's BM25, which is never negative."""
    return math.log1p((texts - having + 0.5) / (having + 0.5))
