"""How much of what is asked is in each of a few short texts, such as facts and examples.  Pure.

They lie together on a card, so that all are compared at once, without an index.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from proxy.recall.query.question import Question, read_question
from proxy.recall.query.words import analyse

SIZE = 4
"""Bytes that are kept of a term: a card is loaded with every request."""

IMAGINED = 40
"""Texts without any of the words that count beside those there are: else a word that both of two
texts have would say nothing."""

NOWHERE = 1 / 20
"""A word that no text has counts as one in this share of them."""


def terms_in(text: str, time: float) -> bytes:
    """What a text of that time (Unix seconds) is found by, packed."""
    return b"".join(sorted(term[:SIZE] for term in analyse(text, time).terms))


class SoughtTerms(NamedTuple):
    """What to look for: the ``weights`` of words, days and names, and by each term which of these,
    by place, it is a term of."""

    weights: tuple[float, ...]
    places: Mapping[bytes, Sequence[int]]

    @classmethod
    def of(cls, question: Question) -> SoughtTerms:
        """What is only near a word in meaning does not count: a text is a line, which is shown
        whole."""
        sought = [(word.terms, word.weight) for word in question.words if not word.is_expansion]
        sought += [((day,), 1.0) for day in (*question.day_terms, *question.speaker_terms)]
        places: dict[bytes, list[int]] = {}
        for place, (terms, _) in enumerate(sought):
            for term in terms:
                places.setdefault(term[:SIZE], []).append(place)
        return cls(tuple([weight for _, weight in sought]), places)


class AskedText:
    """What is asked at a time (Unix seconds) in a zone, None for UTC; read when somebody needs
    that: where all fits, nobody does."""

    def __init__(self, text: str, now: float, zone: tzinfo | None = None) -> None:
        self._text, self._now, self._zone = text, now, zone

    @cached_property
    def _question(self) -> Question:
        return read_question(self._text, (), self._now, self._zone)

    @property
    def empty(self) -> bool:
        return self._question.is_empty

    @cached_property
    def sought(self) -> SoughtTerms:
        return SoughtTerms.of(self._question)


class Words:
    """The terms of several texts: ``sizes`` are the numbers of terms, ``packed`` is all of them."""

    def __init__(self, sizes: Sequence[int], packed: bytes) -> None:
        self._ends = list(accumulate(sizes))
        self._terms = np.frombuffer(packed, "<u4")

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> Words:
        parts = list(packed)
        return cls([len(part) // SIZE for part in parts], b"".join(parts))

    def likeness(self, asked: AskedText) -> list[float]:
        """For each text the share, 0 to 1, of what is asked for that it has."""
        weights, places = asked.sought
        having = self._having(places)
        texts = len(self._ends) + IMAGINED
        absent = _rarity(NOWHERE * texts, texts)
        counts = Counter([place for _, place in having])
        rarity = {place: _rarity(count, texts) for place, count in counts.items()}
        worths = [weight * rarity.get(place, absent) for place, weight in enumerate(weights)]
        whole, found = sum(worths), [0.0] * len(self._ends)
        for text, place in having:
            found[text] += worths[place] / whole
        return found

    def _having(self, places: Mapping[bytes, Sequence[int]]) -> list[tuple[int, int]]:
        """Each text with each of what is sought that it has a term of."""
        if not places:
            return []
        # Most terms are not sought, which numpy tells at once; with few Python is faster.
        known = np.sort(np.frombuffer(b"".join(places), "<u4"))
        at_most = known.searchsorted(self._terms, "right") - 1
        (there,) = (known[at_most] == self._terms).nonzero()
        found = {
            (bisect_right(self._ends, at), place)
            for at in there.tolist()
            for place in places[self._terms[at].tobytes()]
        }
        return sorted(found)


def _rarity(having: float, texts: int) -> float:
    """The idf of Lucene's BM25, which is never negative."""
    return math.log1p((texts - having + 0.5) / (having + 0.5))
