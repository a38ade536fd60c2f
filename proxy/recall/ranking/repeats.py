"""Discounts terms that neighbouring messages share: in a small budget they count once.  Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxy.recall.ranking.match import REACH, Hits, Numbers
from proxy.recall.ranking.packing import Array

FULL_WEIGHT_TOKENS = 1000
"""With a budget of so many tokens nothing is discounted: there is room for neighbours too."""


class Repeats(NamedTuple):
    """By place: the part of the previous passage's score, and of the next one's, that is of terms
    which the passage at the place has too."""

    before: Array
    after: Array


def counted_again(budget: int | None) -> float:
    """The weight, 0 to 1, of terms that a neighbour repeats, by the budget in tokens."""
    return 1.0 if budget is None else min(1.0, budget / FULL_WEIGHT_TOKENS)


def repeats(hits: Hits, numbers: Numbers, places: Array, own: Array, share: float) -> list[Repeats]:
    """The repeats of passages one place apart, and of those two places apart, each times ``share``.

    Only passages with a score of their ``own`` have any.  ``places`` are where those of ``numbers``
    stand.
    """
    laid = np.full(max(int(hits.passages.max(initial=0)), int(numbers[-1])) + 1, -1)
    laid[numbers] = np.where(own[places] > 0, places, -1)
    there = laid[hits.passages]
    (known,) = (there >= 0).nonzero()
    there, scores = there[known], share * hits.scores[known]
    # Spaced so that the last place of a term is not next to the first of another.
    terms = np.arange(hits.sizes.size).repeat(hits.sizes)[known] * (own.size + REACH)
    return [_apart(terms + there, there, scores, distance, own.size) for distance in (1, 2)]


def _apart(keys: Array, places: Array, scores: Array, distance: int, size: int) -> Repeats:
    """The repeats of passages at this distance.

    ``keys`` ascend by term and, within a term, by place.  Two places so far apart have at most
    ``distance - 1`` others between them, so that no more neighbours in the list are compared.
    """
    steps = range(1, distance + 1)
    found = [(keys[step:] - keys[:-step] == distance).nonzero()[0] for step in steps]
    first = np.concatenate(found)
    second = np.concatenate([there + step for there, step in zip(found, steps, strict=True)])
    return Repeats(
        np.bincount(places[second], scores[first], size).astype(np.float32),
        np.bincount(places[first], scores[second], size).astype(np.float32),
    )
