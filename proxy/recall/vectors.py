"""Vectors packed as an index stores them, and the search among them.  Pure.

A byte for each dimension: a vector is scaled so that its largest component is 127, and its length
is not kept, as only directions are compared.  That costs about a thousandth of a cosine.  Zeros
stand for no vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxy.recall.match import REACH, Floats, Numbers
from proxy.recall.packing import Array

MOST_SEARCHED = 20_000
"""Vectors of an owner that are searched, the newest."""

MOST_NEAREST = 50
"""Passages that are considered because they are near."""

RELATED = 0.36
"""Of questions about a conversation about nine of ten have a passage that stands out so far from
the others, of questions about another conversation one of twenty."""

CHUNK = 2_048
"""Vectors at a time: what is unpacked stays within the processor's cache."""


def name_of(model: str, dimensions: int) -> str:
    """What an index calls the vectors that may be compared with each other."""
    return f"{model}/{dimensions}"


def pack(vectors: Array) -> list[bytes]:
    """Each row packed."""
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    scaled = vectors * (127.0 / np.maximum(largest, 1e-30))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


@dataclass(frozen=True, slots=True)
class Near:
    """Passages by number, ascending, and the cosine of each with a question."""

    numbers: Numbers
    scores: Floats

    @property
    def related(self) -> bool:
        """Whether the best is on the question's subject, whatever its words.

        Each model has a scale of its own, so what counts is how far it is above the others, as a
        part of how far it could be.
        """
        if not self.numbers.size:
            return False
        best = float(self.scores.max())
        others = (float(self.scores.sum()) - best) / max(1, self.scores.size - 1)
        return best - others >= RELATED * (1 - others)

    def nearest(self, most: int = MOST_NEAREST) -> Numbers:
        """The numbers of the nearest passages and of those around them, ascending."""
        best = self.numbers
        if best.size > most:
            best = best[np.argpartition(self.scores, -most)[-most:]]
        around = (best.astype(np.int64)[:, None] + np.arange(-REACH, REACH + 1)).ravel()
        return np.unique(around[around >= 0]).astype(np.uint32)

    def of(self, numbers: Numbers) -> dict[int, float]:
        """The scores of some passages, those that have one."""
        places = np.flatnonzero(np.isin(self.numbers, numbers))
        found = zip(self.numbers[places].tolist(), self.scores[places].tolist(), strict=True)
        return dict(found)


NOTHING_NEAR = Near(np.zeros(0, np.uint32), np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True)
class Matrix:
    """The packed vectors of passages ``first`` and on; ``lengths`` are as they are packed."""

    first: int
    data: NDArray[np.int8]
    lengths: Floats

    @classmethod
    def read(cls, first: int, data: bytes, dimensions: int) -> Matrix:
        """From what an index holds.  The last vectors may be missing."""
        whole = len(data) - len(data) % dimensions
        rows = np.frombuffer(data[:whole], np.int8).reshape(-1, dimensions)
        return cls(first, rows, _lengths(rows))

    @property
    def end(self) -> int:
        return self.first + self.lengths.size

    @property
    def bytes(self) -> int:
        return self.data.nbytes + self.lengths.nbytes

    def extended(self, more: Matrix) -> Matrix:
        """With the vectors that follow; the newest ``MOST_SEARCHED`` of all."""
        data = np.concatenate([self.data, more.data])[-MOST_SEARCHED:]
        lengths = np.concatenate([self.lengths, more.lengths])[-MOST_SEARCHED:]
        return Matrix(more.end - lengths.size, data, lengths)

    def near(self, question: Array) -> Near:
        """How near each vector is to a question's."""
        sought = (question / max(float(np.linalg.norm(question)), 1e-30)).astype(np.float32)
        there = np.flatnonzero(self.lengths)
        products = [part.astype(np.float32) @ sought for part in _chunks(self.data)]
        if not there.size:
            return NOTHING_NEAR
        scores = (np.concatenate(products)[there] / self.lengths[there]).astype(np.float32)
        return Near((there + self.first).astype(np.uint32), scores)


_NONE = np.zeros(0, np.float32)


def _chunks(data: NDArray[np.int8]) -> Sequence[NDArray[np.int8]]:
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def _lengths(rows: NDArray[np.int8]) -> Floats:
    parts = [np.linalg.norm(part.astype(np.float32), axis=1) for part in _chunks(rows)]
    return np.concatenate(parts).astype(np.float32) if parts else _NONE
