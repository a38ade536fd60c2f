"""Discounts terms that neighbouring messages share: in a small budget they count once.  Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxy.recall.ranking.match import REACH, Numbers, TermScores
from proxy.recall.ranking.packing import Array

FULL_WEIGHT_TOKENS = 1000
"""With a budget of so many tokens nothing is discounted: there is room for neighbours too."""


class Repeats(NamedTuple):
    """The part of the previous passage's score, and of the next one's, that is of terms which the
    passage at the place has too: float32[m places] each."""

    before: Array
    after: Array


def weight_of_repeats(budget: int | None) -> float:
    """The weight, 0 to 1, of terms that a neighbour repeats, by the budget in tokens."""
    return 1.0 if budget is None else min(1.0, budget / FULL_WEIGHT_TOKENS)


def repeats(
    terms: TermScores, numbers: Numbers, places: Array, bm25: Array, share: float
) -> list[Repeats]:
    """The repeats of passages one place apart, and of those two places apart, each times ``share``.

    ``places``, [n], are those of the passages ``numbers``, [n]; ``bm25``, [m places], are the
    passages' own scores: only where there is one are there repeats.
    """
    place_of = np.full(max(int(terms.passages.max(initial=0)), int(numbers[-1])) + 1, -1)
    place_of[numbers] = np.where(bm25[places] > 0, places, -1)
    laid_at = place_of[terms.passages]
    (laid,) = (laid_at >= 0).nonzero()
    laid_at, scores = laid_at[laid], share * terms.scores[laid]
    # Spaced so that the last place of a term is not next to the first of another.
    spaced = np.arange(terms.sizes.size).repeat(terms.sizes)[laid] * (bm25.size + REACH)
    keys = spaced + laid_at
    return [_repeats_at_distance(keys, laid_at, scores, distance, bm25.size) for distance in (1, 2)]


def _repeats_at_distance(
    keys: Array, places: Array, scores: Array, distance: int, size: int
) -> Repeats:
    """The repeats of passages at this distance, ``size`` places long; the others are [postings].

    ``keys`` ascend by term and, within a term, by place.  Two places so far apart have at most
    ``distance - 1`` others between them, so that no more neighbours in the list are compared.
    """
    steps = range(1, distance + 1)
    found = [(keys[step:] - keys[:-step] == distance).nonzero()[0] for step in steps]
    first = np.concatenate(found)
    second = np.concatenate([at + step for at, step in zip(found, steps, strict=True)])
    return Repeats(
        np.bincount(places[second], scores[first], size).astype(np.float32),
        np.bincount(places[first], scores[second], size).astype(np.float32),
    )
