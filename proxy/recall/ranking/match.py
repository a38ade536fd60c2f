"""From the postings of a question's words to scored passages: BM25.  Pure.

BM25: Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxy.recall.index import POSTING_SIZE, Look, Postings
from proxy.recall.query.question import Question
from proxy.recall.query.words import TELLS_TIME, Corpus
from proxy.recall.ranking.packing import LENGTHS, Array, read_postings

K1 = 1.2
B = 0.75
"""BM25's saturation of frequency and its normalisation by length."""

RARITY = 1.4
"""Exponent of the idf: one rare word is better than two common ones."""

COMMON_SHARE = 1 / 3
COMMON_MIN_PASSAGES = 20
"""A word in so large a share of the passages is ignored, if there are at least so many passages."""

ABSENT_SHARE = 1 / 20
"""A word in no passage has the weight of one in this share of them: many words of questions are in
no answer."""

SMOOTHING = 40
"""Passages without any of the words that are added to the corpus, so that in a history of two
messages a word in both still has a weight."""

MOST_CANDIDATES = 200
REACH = 2
"""Passages to either side that are considered with a candidate."""

_HINT = (TELLS_TIME,)

_OF_LENGTH = B * LENGTHS

Floats = NDArray[np.float32]
Numbers = NDArray[np.integer[Any]]

NOBODY: Numbers = np.zeros(0, np.intp)
"""The numbers of no passages."""


class Hits(NamedTuple):
    """The postings of a question's terms, concatenated: passages (ascending within a term), scores
    in them, and the number of postings of each term."""

    passages: Array
    scores: Array
    sizes: Array


class Matches(NamedTuple):
    """The passages with terms of ``question``, by number, ascending.

    ``scores`` are BM25, the sums of ``hits``.  ``cover`` is the share of the weight of the
    question's words that a passage has; ``goes_on`` is the largest such share for the words of the
    messages before, 1 if the question does not depend on them.  ``dated`` are passages of the days
    that the question refers to, ``spoken`` passages by the speaker that it names.  ``worths`` are
    the terms' weights in order, ``whole`` is the sum for all distinctive words.  ``known`` is the
    largest cover if absent words count as the rarest; only for general questions, else 1.
    ``itself`` is the same for the message's own words; only for questions that depend on the
    messages before, else 1.
    """

    question: Question
    numbers: Numbers
    scores: Floats
    cover: Floats
    goes_on: float
    dated: Numbers
    spoken: Numbers
    worths: Floats
    whole: float
    hits: Hits
    known: float = 1.0
    itself: float = 1.0

    @property
    def worth(self) -> Mapping[bytes, float]:
        """The weight of each term."""
        return dict(zip(self.question.terms, self.worths.tolist(), strict=False))


def match(question: Question, look: Look, corpus: Corpus) -> Matches:
    """Score all passages in the postings of a look for ``question.terms``."""
    words = sum([len(word.terms) for word in question.words])
    days = words + len(question.days)
    postings = look.postings[:words]
    found = read_postings(b"".join([each.newest for each in postings]))
    passages = found["passage"].astype(np.int64)
    counts = np.array(_counts(question, postings), np.float32)
    worth = _idf(counts, corpus.passages) * _weights(question)
    tells = ~_says_nothing(question, counts, corpus.passages)
    telling = worth * tells
    sizes = [len(each.newest) // found.itemsize for each in postings]
    hits = Hits(passages, _saturated(found, corpus) * worth.repeat(sizes), np.array(sizes, np.intp))
    scores = _sums(hits.passages, hits.scores)
    cover = _cover(postings, telling, scores.size)
    (numbers,) = scores.nonzero()
    whole, known, itself = _whole(question, telling), 1.0, 1.0
    if question.general or question.context:
        rarest = _idf(np.maximum(counts, 1), corpus.passages) * _weights(question) * tells
        if question.general:
            known = float(cover.max(initial=0.0)) / max(_whole(question, rarest), 1e-9)
        if question.context:
            itself = _itself(question, postings, rarest * (counts > 0), rarest)
    return Matches(
        question,
        numbers,
        scores[numbers].astype(np.float32),
        np.minimum(cover[numbers] / max(whole, 1e-9), 1.0).astype(np.float32),
        _goes_on(question, postings, telling),
        _passages(look.postings[words:days]),
        _passages(look.postings[days:]),
        worth,
        whole,
        hits,
        known,
        itself,
    )


def _cover(postings: Sequence[Postings], worth: Array, size: int) -> Array:
    """The weight of the question's words in each passage.  Terms of weight 0 are skipped: common
    words have most of the postings."""
    (some,) = worth.nonzero()
    data = [postings[place].newest for place in some.tolist()]
    found = read_postings(b"".join(data))["passage"]
    each = worth[some].repeat([len(part) // POSTING_SIZE for part in data])
    return _sums(found.astype(np.int64), each, size)


def _goes_on(question: Question, postings: Sequence[Postings], worth: Array) -> float:
    """See ``Matches``."""
    if not question.context:
        return 1.0
    there = [word.terms[0] in question.context for word in question.words for _ in word.terms]
    worth = np.where(np.array(there, np.bool_), worth, np.float32(0))
    return _most(question, postings, worth, worth)


def _itself(question: Question, postings: Sequence[Postings], held: Array, whole: Array) -> float:
    """See ``Matches``."""
    own = set(question.own)
    there = np.array([word in own for word in question.words for _ in word.terms], np.bool_)
    return _most(question, postings, held * there, whole * there)


def _most(question: Question, postings: Sequence[Postings], held: Array, whole: Array) -> float:
    """The largest weight that one passage has, as a share of the whole."""
    cover = _cover(postings, held, 0)
    return float(cover.max(initial=0.0)) / max(_whole(question, whole), 1e-9)


def _sums(passages: Array, parts: Array, size: int = 0) -> Array:
    """The sum of ``parts`` for each passage; converting to float64 first is faster in numpy."""
    return np.bincount(passages, parts.astype(np.float64), size)


def _counts(question: Question, postings: Sequence[Postings]) -> list[int]:
    """In how many passages each term is; the terms of one word count as one term."""
    counts: list[int] = []
    for word in question.words:
        place = len(counts)
        count = sum(each.count for each in postings[place : place + len(word.terms)])
        counts += [count] * len(word.terms)
    return counts


def _weights(question: Question) -> Array:
    return np.array([word.weight for word in question.words for _ in word.terms], np.float32)


def _says_nothing(question: Question, counts: Array, passages: int) -> Array:
    """A mask of terms that do not make a passage relevant: common ones, and "tells a time"."""
    hints = [word.terms == _HINT for word in question.words for _ in word.terms]
    found = np.array(hints, np.bool_)
    if passages >= COMMON_MIN_PASSAGES:
        found |= counts >= COMMON_SHARE * passages
    return found


def _idf(counts: Array, passages: int) -> Array:
    passages += SMOOTHING
    known = np.where(counts > 0, counts, ABSENT_SHARE * passages)
    found: Array = np.log1p(np.maximum(0.0, passages - known + 0.5) / (known + 0.5)) ** RARITY
    return found


def _whole(question: Question, worth: Array) -> float:
    """The weight of a passage with all words, without hints."""
    firsts = accumulate([len(word.terms) for word in question.words], initial=0)
    pairs = zip(question.words, firsts, strict=False)
    return float(sum([worth[first] for word, first in pairs if word.text]))


def _saturated(found: Array, corpus: Corpus) -> Array:
    average = max(1.0, corpus.length / max(1, corpus.passages))
    norms = K1 * (1 - B + _OF_LENGTH / average)
    frequency = found["frequency"].astype(np.float32)
    saturated: Array = frequency * np.float32(K1 + 1) / (frequency + norms.take(found["length"]))
    return saturated


def _passages(postings: Sequence[Postings]) -> Numbers:
    """Ascending, as those of one term are."""
    some = [each.newest for each in postings if each.newest]
    if not some:
        return NOBODY
    found = read_postings(b"".join(some))["passage"]
    return np.unique(found) if len(some) > 1 else found


def members(numbers: Numbers, some: Numbers) -> NDArray[np.bool_]:
    """A mask of ``numbers`` that are in ``some``; both ascend."""
    if not some.size:
        return np.zeros(numbers.size, np.bool_)
    places = np.searchsorted(some, numbers)
    places[places == some.size] = 0
    found: NDArray[np.bool_] = some[places] == numbers
    return found


def candidates(matches: Matches) -> Numbers:
    """The numbers to rank, ascending: the best matches, passages of the right days, and their
    neighbours.  Some numbers may have no passage.
    """
    best, most = matches.numbers, MOST_CANDIDATES
    if best.size > most:
        best = best[matches.scores.argpartition(-most)[-most:]]
    seeds = np.concatenate([best, matches.dated[-most:]])
    # A mask is faster than sorting.  Its indexes are shifted by ``REACH``.
    there = np.zeros(int(seeds.max(initial=0)) + 2 * REACH + 1, np.bool_)
    there[seeds[:, None] + _AROUND] = True
    (found,) = there[REACH:].nonzero()
    return found


_AROUND = np.arange(2 * REACH + 1)
