"""What two messages beside each other both hold: in little room it is found once.  Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxy.recall.ranking.match import REACH, Hits, Numbers
from proxy.recall.ranking.packing import Array

MUCH_ROOM = 1000
"""Tokens from which on there is room for the neighbours of what was found as well."""


class Repeats(NamedTuple):
    """By place: how much of the scores of the passage before it, and of the one after it, is of
    terms that the passage at the place has as well."""

    before: Array
    after: Array


def counted_again(budget: int | None) -> float:
    """The share, 0 to 1, that counts of what a neighbour only says again; with little room less."""
    return 1.0 if budget is None else min(1.0, budget / MUCH_ROOM)


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
    # So far apart that no term's last place is next to another's first one.
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
