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
        sought = [(word.terms, word.weight) for word in question.words]
        sought += [((day,), 1.0) for day in (*question.days, *question.names)]
        if not sought:
            return np.zeros(self._texts)
        having = self._having([terms for terms, _ in sought])
        worth = np.array([weight for _, weight in sought]) * self._rarity(having.sum(axis=0))
        whole = worth.sum()
        return np.asarray(having @ worth / whole if whole else np.zeros(self._texts))

    def _having(self, sought: Sequence[Sequence[bytes]]) -> NDArray[np.bool_]:
        """Which text (row) has one of the terms that each of these (columns) is sought by."""
        packed = b"".join(term[:SIZE] for terms in sought for term in terms)
        which = np.repeat(np.arange(len(sought)), [len(terms) for terms in sought])
        at, of = np.nonzero(self._terms[:, None] == np.frombuffer(packed, "<u4")[None, :])
        having = np.zeros((self._texts, len(sought)), np.bool_)
        having[self._owner[at], which[of]] = True
        return having

    def _rarity(self, having: NDArray[np.int64]) -> Scores:
        """The idf of Lucene's BM25, which is never negative."""
        texts = self._texts + IMAGINED
        having_it = np.where(having > 0, having, NOWHERE * texts)
        return np.asarray(np.log1p((texts - having_it + 0.5) / (having_it + 0.5)))
