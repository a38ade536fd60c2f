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

_B_TIMES_LENGTH = B * LENGTHS
"""By coded length: float32[256]."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.integer[Any]]

NOBODY: Numbers = np.zeros(0, np.intp)
"""The numbers of no passages."""


class Hits(NamedTuple):
    """The postings of a question's terms, one term behind the other.

    - ``passages``: int64[n hits], their numbers, ascending within a term.
    - ``scores``: float32[n hits], the BM25 score of the term in the passage.
    - ``sizes``: intp[n terms], how many hits are of each term; their sum is n hits.
    """

    passages: Array
    scores: Array
    sizes: Array


class Matches(NamedTuple):
    """What an index has of a question's terms, of which it holds n passages.

    - ``numbers``: intp[n passages], ascending; ``scores``: float32[n passages], BM25, the sums of
      ``hits``.
    - ``cover``: float32[n passages], 0 to 1: the share of the weight of the question's distinctive
      words that the passage holds.
    - ``context_cover``, 0 to 1: the largest share of the weight of the words of the messages before
      that one passage holds; 1 if the question does not depend on them.
    - ``dated``: numbers of passages of the days that the question refers to, ``by_speaker`` of
      those by a speaker that it names; both ascend.
    - ``weights``: float32[n terms], in the order of ``question.terms``; ``full_weight``: the sum of
      those of all distinctive words, which a passage with all of them holds.
    - ``strict_cover``, 0 to 1: the largest cover if words that are in no passage count as the
      rarest; only for general questions, else 1.
    - ``own_cover``, 0 to 1: the same for the message's own words; only for questions that depend
      on the messages before, else 1.
    """

    question: Question
    numbers: Numbers
    scores: Floats
    cover: Floats
    context_cover: float
    dated: Numbers
    by_speaker: Numbers
    weights: Floats
    full_weight: float
    hits: Hits
    strict_cover: float = 1.0
    own_cover: float = 1.0

    @property
    def term_weights(self) -> Mapping[bytes, float]:
        """The weight of each term."""
        return dict(zip(self.question.terms, self.weights.tolist(), strict=False))


def match(question: Question, look: Look, corpus: Corpus) -> Matches:
    """Score all passages in the postings of a look for ``question.terms``.

    Those are the terms of its words, then of its days, then of the speakers that it names.
    """
    words_end = sum([len(word.terms) for word in question.words])
    days_end = words_end + len(question.days)
    postings = look.postings[:words_end]
    counts = np.array(_counts(question, postings), np.float32)
    weights = _idf(counts, corpus.passages) * _question_weights(question)
    is_distinctive = _is_distinctive(question, counts, corpus.passages)
    distinctive = weights * is_distinctive
    hits = _hits(postings, weights, corpus)
    scores = _sums(hits.passages, hits.scores)
    held = _held(postings, distinctive, scores.size)
    (numbers,) = scores.nonzero()
    full_weight = _full_weight(question, distinctive)
    strict_cover = own_cover = 1.0
    if question.general or question.context:
        strict = _idf(np.maximum(counts, 1), corpus.passages)
        strict = strict * _question_weights(question) * is_distinctive
        if question.general:
            strict_cover = _best_share(question, held, strict)
        if question.context:
            own_cover = _own_cover(question, postings, strict * (counts > 0), strict)
    return Matches(
        question,
        numbers,
        scores[numbers].astype(np.float32),
        np.minimum(held[numbers] / max(full_weight, 1e-9), 1.0).astype(np.float32),
        _context_cover(question, postings, distinctive),
        _passages(look.postings[words_end:days_end]),
        _passages(look.postings[days_end:]),
        weights,
        full_weight,
        hits,
        strict_cover,
        own_cover,
    )


def _hits(postings: Sequence[Postings], weights: Array, corpus: Corpus) -> Hits:
    """All postings of the terms, scored; ``weights``: float32[n terms]."""
    read = read_postings(b"".join([each.newest for each in postings]))
    sizes = [len(each.newest) // read.itemsize for each in postings]
    scores = _saturated(read, corpus) * weights.repeat(sizes)
    return Hits(read["passage"].astype(np.int64), scores, np.array(sizes, np.intp))


def _held(postings: Sequence[Postings], weights: Array, size: int) -> Array:
    """The sum of the ``weights``, float32[n terms], of the terms that a passage has: float64 by
    passage number, ``size`` long or longer.  Terms of weight 0 are skipped: common words have most
    of the postings."""
    (weighted,) = weights.nonzero()
    data = [postings[place].newest for place in weighted.tolist()]
    passages = read_postings(b"".join(data))["passage"]
    parts = weights[weighted].repeat([len(each) // POSTING_SIZE for each in data])
    return _sums(passages.astype(np.int64), parts, size)


def _context_cover(question: Question, postings: Sequence[Postings], weights: Array) -> float:
    """See ``Matches``."""
    if not question.context:
        return 1.0
    of_context = _of_terms(question, [word.terms[0] in question.context for word in question.words])
    weights = np.where(of_context, weights, np.float32(0))
    return _best_share(question, _held(postings, weights, 0), weights)


def _own_cover(
    question: Question, postings: Sequence[Postings], found: Array, weights: Array
) -> float:
    """See ``Matches``; ``found`` are the ``weights`` of those terms that are in some passage."""
    own = set(question.own)
    is_own = _of_terms(question, [word in own for word in question.words])
    return _best_share(question, _held(postings, found * is_own, 0), weights * is_own)


def _of_terms(question: Question, of_words: Sequence[bool]) -> NDArray[np.bool_]:
    """A mask bool[n words] as bool[n terms]."""
    pairs = zip(question.words, of_words, strict=True)
    return np.array([each for word, each in pairs for _ in word.terms], np.bool_)


def _best_share(question: Question, held: Array, weights: Array) -> float:
    """The most that one passage holds, as a share of the weight of all words."""
    return float(held.max(initial=0.0)) / max(_full_weight(question, weights), 1e-9)


def _sums(passages: Array, parts: Array, size: int = 0) -> Array:
    """The sum of ``parts`` for each passage: float64 by passage number, ``size`` long or longer.
    Converting to float64 first is faster in numpy."""
    return np.bincount(passages, parts.astype(np.float64), size)


def _counts(question: Question, postings: Sequence[Postings]) -> list[int]:
    """In how many passages each term is (its document frequency); the terms of one word count as
    one term."""
    counts: list[int] = []
    for word in question.words:
        place = len(counts)
        count = sum(each.count for each in postings[place : place + len(word.terms)])
        counts += [count] * len(word.terms)
    return counts


def _question_weights(question: Question) -> Array:
    """What each term counts in the question: float32[n terms]."""
    return np.array([word.weight for word in question.words for _ in word.terms], np.float32)


def _is_distinctive(question: Question, counts: Array, passages: int) -> NDArray[np.bool_]:
    """A mask of terms, bool[n terms], that make a passage relevant: not "tells a time", and none
    that many of all ``passages`` have.  These do where a question by itself has no other word that
    was said: it is about what is talked of most."""
    found = _of_terms(question, [word.terms != _HINT for word in question.words])
    if passages < COMMON_MIN_PASSAGES:
        return found
    rare = found & (counts < COMMON_SHARE * passages)
    if question.context or question.general or (rare & (counts > 0)).any():
        return rare
    return found


def _idf(counts: Array, passages: int) -> Array:
    """The inverse document frequency of each term by its count, float32[n terms], among so many
    passages: that of Lucene, log(1 + (N - n + 0.5) / (n + 0.5)), to the power of ``RARITY``."""
    passages += SMOOTHING
    present = np.where(counts > 0, counts, ABSENT_SHARE * passages)
    odds = np.maximum(0.0, passages - present + 0.5) / (present + 0.5)
    idf: Array = np.log1p(odds) ** RARITY
    return idf


def _full_weight(question: Question, weights: Array) -> float:
    """The sum of the ``weights``, float32[n terms], of a passage with all words, each of them once,
    without hints."""
    firsts = accumulate([len(word.terms) for word in question.words], initial=0)
    pairs = zip(question.words, firsts, strict=False)
    return float(sum([weights[first] for word, first in pairs if word.text]))


def _saturated(postings: Array, corpus: Corpus) -> Array:
    """BM25 without the idf: float32[n postings].  It grows less with each further occurrence, and
    less in passages that are longer than the average."""
    average = max(1.0, corpus.length / max(1, corpus.passages))
    norms = K1 * (1 - B + _B_TIMES_LENGTH / average)
    frequency = postings["frequency"].astype(np.float32)
    saturated: Array = frequency * np.float32(K1 + 1) / (frequency + norms.take(postings["length"]))
    return saturated


def _passages(postings: Sequence[Postings]) -> Numbers:
    """The numbers of all passages in the postings, each once, ascending, as those of one term
    are."""
    some = [each.newest for each in postings if each.newest]
    if not some:
        return NOBODY
    found = read_postings(b"".join(some))["passage"]
    return np.unique(found) if len(some) > 1 else found


def members(numbers: Numbers, some: Numbers) -> NDArray[np.bool_]:
    """A mask of those of ``numbers``, bool[n numbers], that are in ``some``; both ascend."""
    if not some.size:
        return np.zeros(numbers.size, np.bool_)
    places = np.searchsorted(some, numbers)
    places[places == some.size] = 0
    found: NDArray[np.bool_] = some[places] == numbers
    return found


def time_scores(matches: Matches, numbers: Numbers) -> Floats | None:
    """What telling a time adds to the BM25 scores of passages, float32[n numbers], which ascend;
    None where the question does not ask for a time."""
    question, hits = matches.question, matches.hits
    if not any(word.terms == _HINT for word in question.words):
        return None
    place = question.terms.index(TELLS_TIME)
    first = int(hits.sizes[:place].sum())
    of_hint = slice(first, first + int(hits.sizes[place]))
    by_number = _sums(hits.passages[of_hint], hits.scores[of_hint], int(numbers[-1]) + 1)
    return by_number[numbers].astype(np.float32)


def candidates(matches: Matches) -> Numbers:
    """The numbers to rank, ascending: the best matches, passages of the right days, and their
    neighbours.  Some numbers may have no passage.
    """
    best, most = matches.numbers, MOST_CANDIDATES
    if best.size > most:
        best = best[matches.scores.argpartition(-most)[-most:]]
    seeds = np.concatenate([best, matches.dated[-most:]])
    # A mask is faster than sorting.  Its indexes are shifted by ``REACH``.
    is_candidate = np.zeros(int(seeds.max(initial=0)) + 2 * REACH + 1, np.bool_)
    is_candidate[seeds[:, None] + _AROUND] = True
    (numbers,) = is_candidate[REACH:].nonzero()
    return numbers


_AROUND = np.arange(2 * REACH + 1)
