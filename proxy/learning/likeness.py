"""How like a question short texts are: the words they share, the rarer the better.  Pure.

The texts are few and short (facts, examples) and lie together on a card, so that all of them are
compared at once, without an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from proxy.recall.question import Sought
from proxy.recall.terms import analyse

SIZE = 4
"""Bytes that are kept of a term: a card is loaded with every request."""

IMAGINED = 40
"""Texts without any of the words, beside those there are: of two texts both may have a word that
still says something."""

NOWHERE = 1 / 20
"""A word that no text has counts as one in this share of them."""

Scores = NDArray[np.float64]


def terms_in(text: str, time: float) -> bytes:
    """What a text of that time (Unix seconds) is found by, packed."""
    return b"".join(sorted(term[:SIZE] for term in analyse(text, time).terms))


class Asked(Protocol):
    """A question, read; see :class:`proxy.recall.question.Question`."""

    @property
    def empty(self) -> bool: ...
    @property
    def words(self) -> tuple[Sought, ...]: ...
    @property
    def days(self) -> tuple[bytes, ...]: ...
    @property
    def names(self) -> tuple[bytes, ...]: ...


class Words:
    """The terms of several texts: ``sizes`` are the numbers of terms, ``packed`` is all of them."""

    def __init__(self, sizes: Sequence[int], packed: bytes) -> None:
        self._texts = len(sizes)
        self._terms = np.frombuffer(packed, "<u4")
        self._owner = np.repeat(np.arange(self._texts), sizes)

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> Words:
        parts = list(packed)
        return cls([len(part) // SIZE for part in parts], b"".join(parts))

    def likeness(self, question: Asked) -> Scores:
        """For each text the share, 0 to 1, of what the question asks for that it has."""
        scores = np.zeros(self._texts)
        sought = [(word.terms, word.weight) for word in question.words]
        sought += [((day,), 1.0) for day in (*question.days, *question.names)]
        whole = 0.0
        for terms, weight in sought:
            having = self._having(terms)
            worth = weight * self._rarity(having.size)
            scores[having] += worth
            whole += worth
        return scores / whole if whole else scores

    def _having(self, terms: Iterable[bytes]) -> NDArray[np.int64]:
        """The texts that have one of these terms."""
        found = np.zeros(self._terms.size, np.bool_)
        for term in terms:
            found |= self._terms == int.from_bytes(term[:SIZE], "little")
        return np.unique(self._owner[found])

    def _rarity(self, having: int) -> float:
        """The idf of Lucene's BM25, which is never negative."""
        texts = self._texts + IMAGINED
        having_it = having or NOWHERE * texts
        return float(np.log1p((texts - having_it + 0.5) / (having_it + 0.5)))
