"""From the postings of a question's words to scored passages: BM25.  Pure.

BM25: Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxy.recall.index import POSTING_SIZE, IndexLookup, Postings
from proxy.recall.query.question import Question, has_question_mark
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
"""A word that is in no passage gets the weight of one that is in this share of them, since many
words of questions are in no answer."""

SMOOTHING = 40
"""Virtual passages without any of the words, so that in a history of two messages a word that both
have still has a weight."""

MAX_CANDIDATES = 200
REACH = 2
"""Passages to either side that are considered with a candidate."""

_HINT = (TELLS_TIME,)

_B_TIMES_LENGTH = B * LENGTHS
"""By coded length: float32[256]."""

Floats = NDArray[np.float32]
Numbers = NDArray[np.integer[Any]]

NO_PASSAGES: Numbers = np.zeros(0, np.intp)
"""The numbers of no passages."""


class TermScores(NamedTuple):
    """The postings of a question's terms, one term's behind another's, and what each adds to the
    BM25 score of its passage.

    - ``weights``: float32[n terms], in the order of ``question.terms``: idf times what the term
      counts in the question.
    - ``sizes``: intp[n terms], how many postings are of each term; their sum is n postings.
    - ``passages``: int64[n postings], their numbers, ascending within a term.
    - ``scores``: float32[n postings].
    """

    weights: Floats
    sizes: Array
    passages: Array
    scores: Floats

    def of_term(self, place: int) -> slice:
        """Where the postings of the term at this place are."""
        first = int(self.sizes[:place].sum())
        return slice(first, first + int(self.sizes[place]))


class BestCover(NamedTuple):
    """How much of a question its best passage holds: shares of the words' weight, 0 to 1.

    - ``context``: of words of the messages before, ``own``: of the message's own words.  Both are 1
      if the question does not depend on the messages before.
    - ``strict``: of all words of a general question, else 1.

    In ``own`` and ``strict`` words that are in no passage count as the rarest.
    """

    context: float = 1.0
    own: float = 1.0
    strict: float = 1.0


class Matches(NamedTuple):
    """The n passages of an index that hold terms of a question.

    - ``numbers``: intp[n], ascending.
    - ``scores``: float32[n], BM25, the sums of ``terms.scores``.
    - ``cover``: float32[n], 0 to 1: the share of the weight of the question's distinctive words
      that the passage holds.  ``distinctive``: whether there are such words.
    - ``of_right_days``: numbers of passages of the days that the question refers to,
      ``by_speaker``: of those by a speaker that it names; both ascend, and need hold none of its
      words.
    """

    question: Question
    numbers: Numbers
    scores: Floats
    cover: Floats
    distinctive: bool
    best_cover: BestCover
    terms: TermScores
    of_right_days: Numbers
    by_speaker: Numbers

    @property
    def term_weights(self) -> Mapping[bytes, float]:
        """The weight of each term."""
        return dict(zip(self.question.terms, self.terms.weights.tolist(), strict=False))


def match(question: Question, lookup: IndexLookup, corpus: Corpus) -> Matches:
    """Score all passages in the postings of a lookup of ``question.terms``.

    Those are the terms of its words, then of its days, then of the speakers that it names.
    """
    words_end = sum([len(word.terms) for word in question.words])
    days_end = words_end + len(question.day_terms)
    postings = lookup.postings[:words_end]
    counts = np.array(_counts(question, postings), np.float32)
    weights = _idf(counts, corpus.passages) * _question_weights(question)
    is_distinctive = _is_distinctive(question, counts, corpus.passages)
    terms = _term_scores(postings, weights, corpus)
    scores = _sums(terms.passages, terms.scores)
    (numbers,) = scores.nonzero()
    distinctive = weights * is_distinctive
    full_weight = _full_weight(question, distinctive)
    passage_weights = _weight_by_passage(postings, distinctive, scores.size)
    best_cover = BestCover()
    if question.is_general or question.context_terms:
        as_rare = _idf(np.maximum(counts, 1), corpus.passages) * _question_weights(question)
        best_cover = _best_cover(
            question, postings, passage_weights, distinctive, as_rare * is_distinctive
        )
    return Matches(
        question=question,
        numbers=numbers,
        scores=scores[numbers].astype(np.float32),
        cover=np.minimum(passage_weights[numbers] / max(full_weight, 1e-9), 1.0).astype(np.float32),
        distinctive=full_weight > 0,
        best_cover=best_cover,
        terms=terms,
        of_right_days=_passages(lookup.postings[words_end:days_end]),
        by_speaker=_passages(lookup.postings[days_end:]),
    )


def _term_scores(postings: Sequence[Postings], weights: Floats, corpus: Corpus) -> TermScores:
    read, sizes = _read(postings)
    scores = _saturated(read, corpus) * weights.repeat(sizes)
    return TermScores(weights, np.array(sizes, np.intp), read["passage"].astype(np.int64), scores)


def _read(postings: Sequence[Postings]) -> tuple[Array, list[int]]:
    """All postings, one term's behind another's, and how many are of each."""
    data = [each.newest for each in postings]
    return read_postings(b"".join(data)), [len(each) // POSTING_SIZE for each in data]


def _weight_by_passage(postings: Sequence[Postings], weights: Array, size: int = 0) -> Array:
    """The sum of the ``weights``, float32[n terms], of the terms that a passage has: float64 by
    passage number, ``size`` long or longer.  Terms of weight 0 are skipped: common words have most
    of the postings."""
    (weighted,) = weights.nonzero()
    read, sizes = _read([postings[place] for place in weighted.tolist()])
    return _sums(read["passage"].astype(np.int64), weights[weighted].repeat(sizes), size)


def _best_cover(
    question: Question,
    postings: Sequence[Postings],
    passage_weights: Array,
    weights: Array,
    as_rare: Array,
) -> BestCover:
    """``passage_weights``: by passage number the sum of its terms' ``weights``.  ``as_rare``: the
    same weights if words in no passage count as the rarest; both are float32[n terms]."""
    strict = _best_share(question, passage_weights, as_rare) if question.is_general else 1.0
    if not question.context_terms:
        return BestCover(strict=strict)
    own_words = set(question.own_words)
    own = _of_terms(question, [word in own_words for word in question.words])
    context = _of_terms(
        question, [word.terms[0] in question.context_terms for word in question.words]
    )
    return BestCover(
        context=_best_share(
            question, _weight_by_passage(postings, weights * context), weights * context
        ),
        own=_best_share(question, _weight_by_passage(postings, weights * own), as_rare * own),
        strict=strict,
    )


def _best_share(question: Question, passage_weights: Array, weights: Array) -> float:
    """The largest share of the weight of all words that one passage has."""
    return float(passage_weights.max(initial=0.0)) / max(_full_weight(question, weights), 1e-9)


def _of_terms(question: Question, of_words: Sequence[bool]) -> NDArray[np.bool_]:
    """A mask bool[n words] as bool[n terms]."""
    pairs = zip(question.words, of_words, strict=True)
    return np.array([each for word, each in pairs for _ in word.terms], np.bool_)


def _sums(passages: Array, parts: Array, size: int = 0) -> Array:
    """The sum of ``parts`` for each passage: float64 by passage number, ``size`` long or longer.
    Converting to float64 first is faster in numpy."""
    return np.bincount(passages, parts.astype(np.float64), size)


def _counts(question: Question, postings: Sequence[Postings]) -> list[int]:
    """In how many passages each term is (its document frequency); the terms of one word count as
    one term."""
    found = [each.count for each in postings]
    counts: list[int] = []
    for word in question.words:
        place, terms = len(counts), len(word.terms)
        counts += [sum(found[place : place + terms])] * terms
    return counts


def _question_weights(question: Question) -> Array:
    """What each term counts in the question: float32[n terms]."""
    return np.array([word.weight for word in question.words for _ in word.terms], np.float32)


def _is_distinctive(question: Question, counts: Array, passages: int) -> NDArray[np.bool_]:
    """A mask of terms, bool[n terms], that make a passage relevant: not "tells a time", and not
    those that many of all ``passages`` have.  The latter count too if a self-contained question
    with a question mark has no other word that is in a passage: then it is about the main topic."""
    found = _of_terms(question, [word.terms != _HINT for word in question.words])
    if passages < COMMON_MIN_PASSAGES:
        return found
    rare = found & (counts < COMMON_SHARE * passages)
    alone = not question.context_terms and not question.is_general
    if alone and has_question_mark(question.text) and not (rare & (counts > 0)).any():
        return found
    return rare


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
        return NO_PASSAGES
    found = read_postings(b"".join(some))["passage"]
    return np.unique(found) if len(some) > 1 else found


def is_member(numbers: Numbers, some: Numbers) -> NDArray[np.bool_]:
    """A mask of those of ``numbers``, bool[n numbers], that are in ``some``; both ascend."""
    if not some.size:
        return np.zeros(numbers.size, np.bool_)
    places = np.searchsorted(some, numbers)
    places[places == some.size] = 0
    found: NDArray[np.bool_] = some[places] == numbers
    return found


def time_scores(matches: Matches, numbers: Numbers) -> Floats | None:
    """The part of "tells a time" in the BM25 scores of passages, float32[n numbers]; ``numbers``
    ascend.  None if the question does not ask for a time."""
    question, terms = matches.question, matches.terms
    if not any(word.terms == _HINT for word in question.words):
        return None
    hint = terms.of_term(question.terms.index(TELLS_TIME))
    by_number = _sums(terms.passages[hint], terms.scores[hint], int(numbers[-1]) + 1)
    return by_number[numbers].astype(np.float32)


def candidates(matches: Matches) -> Numbers:
    """The numbers to rank, ascending: the best matches, passages of the right days, and their
    neighbours.  Some numbers may have no passage.
    """
    best, most = matches.numbers, MAX_CANDIDATES
    if best.size > most:
        best = best[matches.scores.argpartition(-most)[-most:]]
    seeds = np.concatenate([best, matches.of_right_days[-most:]])
    # A mask is faster than sorting.  Its indexes are shifted by ``REACH``.
    is_candidate = np.zeros(int(seeds.max(initial=0)) + 2 * REACH + 1, np.bool_)
    is_candidate[seeds[:, None] + _AROUND] = True
    (numbers,) = is_candidate[REACH:].nonzero()
    return numbers


_AROUND = np.arange(2 * REACH + 1)
