"""Ranks matches by their context: neighbours, session, speaker, size, time.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import compress
from operator import add
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from proxy.recall.query.dates import DAY
from proxy.recall.ranking.match import REACH, Matches, Numbers, is_member, time_scores
from proxy.recall.ranking.packing import ENDS_WITH_QUESTION, FILLER, SAID_BY_USER, Array
from proxy.recall.ranking.repeats import Repeats, repeats, weight_of_repeats

MAX_RANKED = 200
"""Passages in a ranking; no budget holds more."""

SHORT_TOKENS = 90
LONG_TOKENS = 300
"""Shorter passages are priced like ``SHORT_TOKENS`` ones; longer ones are cut, and priced like
``LONG_TOKENS`` ones."""

ROLES = frozenset({"user", "assistant"})

READ_FACTOR = 1.4
"""So many times the budget is read: some passages are deleted, repeat others or do not fit."""

MIN_SHARE = 0.2
"""Passages below this share of the best one's sum of parts are dropped."""

ANSWERED_COVER = 0.6
"""A passage with such a ``cover`` has most words of the question; see ``_tells_only_time``."""

_NONE, _ONCE = np.float32(0), np.float32(1)


class Weights(msgspec.Struct, frozen=True):
    """The weights of a score's parts, relative to a passage's own match, which is near 1 for the
    best.

    They were set on conversations with labelled evidence, see ``docs/recall.md``.  All optima are
    flat: half or double of any weight changes the recall of evidence by 1 to 2 %.
    """

    previous: float = 0.3
    following: float = 0.25
    two_away: float = 0.15
    """Of the matches of the passages one before, one after, and two before or after."""
    after_question: float = 1.5
    """Factor of ``previous`` where the passage before ends with a question."""
    is_question: float = -0.1
    """If it ends with a question itself."""
    is_first: float = 0.1
    """If it is the first of its session, which often has the topic."""
    best_of_session: float = 0.45
    """Of the best match in its session."""
    right_day: float = 0.5
    """If its session has a passage of the days that the question refers to."""
    right_speaker: float = 0.65
    """If its speaker is the one that the question is about."""
    right_speaker_in_order: float = 1.0
    """The same if the question asks for the order in which things were told."""
    dense: float = 0.35
    """Of its dense score: passages with similar meaning are often irrelevant."""
    size_exponent: float = 0.4
    """Of its tokens: the score is divided by their power."""


WEIGHTS = Weights()


class RankingOptions(msgspec.Struct, frozen=True):
    """How to rank.

    ``now`` is in Unix seconds; ``half_life_days``: age that halves a score, None for no decay.
    ``roles``: whose messages; ``session``: only those of the session with this number, None for
    all.  ``dense_scores``: similarity of meaning by passage number, of any scale, higher is better.
    """

    now: float = 0.0
    half_life_days: float | None = None
    roles: frozenset[str] = ROLES
    session: int | None = None
    dense_scores: Mapping[int, float] = msgspec.field(default_factory=dict)


PARTS = ("lexical", "dense", "neighbours", "session", "time", "said", "asks", "opens")


class Ranked(msgspec.Struct, frozen=True, gc=False):
    """A passage with its row's session, seq, check, tokens and flags, its score and its parts,
    which are rounded to 4 digits.

    The score is the sum of the parts, divided by the price of its size, less by age.
    """

    number: int
    session: int
    seq: int
    check: int
    tokens: int
    score: float
    part_values: tuple[float, ...]
    flags: int = 0

    @property
    def parts(self) -> dict[str, float]:
        """What the score is made of, by name; without what is 0."""
        return dict(compress(zip(PARTS, self.part_values, strict=True), self.part_values))


class Layout(NamedTuple):
    """n passages laid out at m places, so that neighbours in history have adjacent places."""

    numbers: Numbers
    """int[n], ascending."""
    places: Array
    """Where each of them is: intp[n], ascending."""
    sessions: Array
    """The number of the session: uint32[m], 0 at an empty place."""
    flags: Array
    """Those of the row: uint8[m]."""
    is_question: Array
    """Whether it ends with a question: bool[m]."""
    is_first: Array
    """Whether it is the first of its session: bool[m]."""
    bm25: Array
    """Its own score, 0 without a match: float32[m]."""
    has_right_day: Array | None
    """Whether it is of the days that the question refers to: bool[m]; None if that refers to
    none."""
    same_session: tuple[Array, Array]
    """Whether the place one, or two, further is of the same session: bool[m - 1], bool[m - 2]."""

    def by_place(self, values: Array) -> Array:
        """Values by passage, [n], at their places, [m]; 0 at empty ones."""
        laid = np.zeros(self.sessions.size, values.dtype)
        laid[self.places] = values
        return laid

    def restricted_to(self, eligible: Array) -> Layout:
        """Without the scores and days of all places but ``eligible``, bool[m], so that they add
        nothing to the scores of others."""
        dated = None if self.has_right_day is None else self.has_right_day & eligible
        return self._replace(bm25=np.where(eligible, self.bm25, _NONE), has_right_day=dated)


def rank_passages(
    matches: Matches,
    numbers: Numbers,
    rows: Array,
    options: RankingOptions,
    budget: int | None = None,
) -> list[Ranked]:
    """The best passages, in order, ``MAX_RANKED`` at most.

    ``numbers``, int[n], ascending, are those of the candidates, ``rows``, ROW[n], theirs.  With
    ``budget`` those that are worth reading for so many tokens: more than it holds.
    """
    if not numbers.size:
        return []
    layout = _layout(matches, numbers, rows)
    allowed = _allowed(layout, options)
    eligible = _within_reach(matches, layout, allowed, options) & allowed
    (found,) = eligible[layout.places].nonzero()
    if not found.size:
        return []
    layout = layout.restricted_to(eligible)
    parts = _parts(matches, layout, layout.places[found], options, weight_of_repeats(budget))
    sums = reduce(add, [part for part in parts if part is not None])[layout.places[found]]
    found, scores = _best(found, np.maximum(sums, 0.0), rows, options, budget)
    places = layout.places[found]
    values = [part if part is None else part[places] for part in parts]
    return _as_ranked(numbers[found], rows.take(found), scores, values)


def _layout(matches: Matches, numbers: Numbers, rows: Array) -> Layout:
    """Distances are those of the numbers, but at most ``REACH + 1``, since passages further apart
    than ``REACH`` do not affect each other."""
    places = np.empty(numbers.size, np.intp)
    places[0] = 0
    np.minimum(numbers[1:] - numbers[:-1], REACH + 1).cumsum(out=places[1:])
    size = int(places[-1]) + 1
    sessions, flags = np.zeros(size, np.uint32), np.zeros(size, np.uint8)
    sessions[places], flags[places] = rows["session"], rows["flags"]
    opens, bm25 = np.zeros(size, np.bool_), np.zeros(size, np.float32)
    opens[places], bm25[places] = rows["seq"] == 1, _bm25_of(matches, numbers)
    same_session = (sessions[1:] == sessions[:-1], sessions[2:] == sessions[:-2])
    asks = (flags & ENDS_WITH_QUESTION) > 0
    layout = Layout(numbers, places, sessions, flags, asks, opens, bm25, None, same_session)
    if not matches.of_right_days.size:
        return layout
    return layout._replace(has_right_day=layout.by_place(is_member(numbers, matches.of_right_days)))


def _bm25_of(matches: Matches, numbers: Numbers) -> Array:
    """The BM25 scores of passages, float32[n], 0 for those that do not match; indexing an array by
    number is faster than searching."""
    if not matches.numbers.size:
        return np.zeros(numbers.size, np.float32)
    by_number = np.zeros(max(int(matches.numbers[-1]), int(numbers[-1])) + 1, np.float32)
    by_number[matches.numbers] = matches.scores
    return by_number[numbers]


def _within_reach(
    matches: Matches, layout: Layout, allowed: Array, options: RankingOptions
) -> NDArray[np.bool_]:
    """A mask of places, bool[m]: passages that match, are of the right days or have a dense score,
    and those of the same session up to ``REACH`` places from one."""
    seeds = layout.bm25 > 0
    if (tells_only_time := _tells_only_time(matches, layout, allowed)) is not None:
        seeds &= ~tells_only_time
    if layout.has_right_day is not None:
        seeds |= layout.has_right_day
    if options.dense_scores:
        seeds |= layout.by_place(np.isin(layout.numbers, list(options.dense_scores)))
    reached = seeds.copy()
    for distance, same_session in enumerate(layout.same_session, 1):
        after, before = reached[distance:], reached[:-distance]
        after |= same_session & seeds[:-distance]
        before |= same_session & seeds[distance:]
    return reached


def _tells_only_time(matches: Matches, layout: Layout, allowed: Array) -> NDArray[np.bool_] | None:
    """A mask of places, bool[m]: passages that match a question for a time by telling one, and have
    none of its words.

    None where they may answer it in other words: none of those ``allowed``, bool[m], has most of
    the question's words; and for other questions.
    """
    for_time = time_scores(matches, layout.numbers)
    if for_time is None:
        return None
    answers = matches.numbers[matches.cover >= ANSWERED_COVER]
    if not is_member(answers, layout.numbers[allowed[layout.places]]).any():
        return None
    return layout.bm25 <= layout.by_place(for_time)


def _allowed(layout: Layout, options: RankingOptions) -> NDArray[np.bool_]:
    """A mask of places, bool[m]: passages of the session and the roles of ``options`` that say
    something."""
    allowed: NDArray[np.bool_] = (layout.sessions > 0) & ~_says_nothing(layout)
    if options.session is not None:
        allowed &= layout.sessions == options.session
    if options.roles < ROLES:
        allowed &= ((layout.flags & SAID_BY_USER) > 0) == ("user" in options.roles)
    return allowed


def _says_nothing(layout: Layout) -> NDArray[np.bool_]:
    """A mask of places, bool[m]: thanks, praise and the like, unless they answer a question."""
    nothing: NDArray[np.bool_] = (layout.flags & FILLER) > 0
    but_first = nothing[1:]
    but_first &= ~(layout.is_question[:-1] & layout.same_session[0])
    return nothing


def _parts(
    matches: Matches, layout: Layout, eligible: Array, options: RankingOptions, repeat_weight: float
) -> list[Array | None]:
    """The parts of the scores in the order of ``PARTS``, each float32[m]; None for one that is 0
    everywhere.

    ``eligible`` are the places that are ranked; for ``repeat_weight`` see ``weight_of_repeats``.
    """
    scale = _mean_of_best(layout.bm25[eligible])
    lexical = layout.bm25 / scale
    dense = _dense(layout, eligible, options) if options.dense_scores else None
    relevance = lexical if dense is None else lexical + dense
    repeated: Sequence[Repeats] = ()
    if repeat_weight < 1:
        share = (1 - repeat_weight) / scale
        repeated = repeats(matches.terms, layout.numbers, layout.places, layout.bm25, share)
    return [
        lexical,
        dense,
        _neighbours(relevance, layout, repeated),
        WEIGHTS.best_of_session * _best_of_session(relevance, layout.sessions),
        _time(layout),
        _said(matches, layout),
        WEIGHTS.is_question * layout.is_question,
        WEIGHTS.is_first * layout.is_first,
    ]


def _mean_of_best(scores: Array) -> float:
    """The mean of the three best scores above 0, by which scores are divided so that those of every
    question are near 1."""
    best = np.sort(scores)[-3:]
    best = best[best > 0]
    if not best.size:
        return 1e-6
    mean = float(np.add.reduce(best) / np.float32(best.size))  # mean() takes five times as long
    return max(mean, 1e-6)


def _dense(layout: Layout, eligible: Array, options: RankingOptions) -> Array | None:
    """The dense part: similarity of meaning with the question."""
    numbers = layout.numbers[np.searchsorted(layout.places, eligible)].tolist()
    similarity = np.array(
        [options.dense_scores.get(number, np.nan) for number in numbers], np.float32
    )
    has_vector = ~np.isnan(similarity)
    if not has_vector.any():
        return None
    # A median similarity counts as none, like a passage without a vector.
    above = np.maximum(similarity - np.median(similarity[has_vector]), 0.0)
    laid = np.zeros(layout.sessions.size, np.float32)
    laid[eligible] = np.where(has_vector, above, 0.0)
    dense: Array = WEIGHTS.dense * (laid / _mean_of_best(laid[eligible]))
    return dense


def _neighbours(relevance: Array, layout: Layout, repeated: Sequence[Repeats]) -> Array:
    """The part of the neighbours in the same session.  ``relevance``: float32[m]; ``repeated``:
    what to subtract from a neighbour's for terms that it repeats, by distance."""
    total = np.zeros(relevance.size, np.float32)
    weights = ((1, WEIGHTS.previous, WEIGHTS.following), (2, WEIGHTS.two_away, WEIGHTS.two_away))
    answers = np.where(layout.is_question, np.float32(WEIGHTS.after_question), _ONCE)
    for (distance, before, after), same_session in zip(weights, layout.same_session, strict=True):
        earlier, later = relevance[:-distance], relevance[distance:]
        if repeated:
            earlier = earlier - repeated[distance - 1].before[distance:]
            later = later - repeated[distance - 1].after[:-distance]
        of_later, of_earlier = total[distance:], total[:-distance]
        of_later += before * earlier * answers[:-distance] * same_session
        of_earlier += after * later * same_session
    return total


def _best_of_session(values: Array, sessions: Array) -> Array:
    """At each place the largest of the ``values`` in its session; all [m]."""
    best = np.zeros(int(np.maximum.reduce(sessions)) + 1, np.float32)
    np.maximum.at(best, sessions, values)
    by_place: Array = best[sessions]
    return by_place


def _time(layout: Layout) -> Array | None:
    """The part of passages in a session that has one of the right days."""
    if layout.has_right_day is None:
        return None
    return WEIGHTS.right_day * _best_of_session(
        layout.has_right_day.astype(np.float32), layout.sessions
    )


def _said(matches: Matches, layout: Layout) -> Array | None:
    """The part of passages whose speaker the question is about: someone named, the user, or the
    model."""
    question = matches.question
    named = is_member(layout.numbers, matches.by_speaker) if matches.by_speaker.size else None
    said = None if named is None else layout.by_place(named)
    if question.about_assistant or question.about_user:
        by_role = ((layout.flags & SAID_BY_USER) > 0) != question.about_assistant
        said = by_role if said is None else said | by_role
    if said is None:
        return None
    return (WEIGHTS.right_speaker_in_order if question.asks_order else WEIGHTS.right_speaker) * said


def _best(
    found: Array, sums: Array, rows: Array, options: RankingOptions, budget: int | None
) -> tuple[Array, Array]:
    """Of the passages ``found``, indexes of ``rows``, those that are worth reading, best first, and
    their scores; ``sums`` are those of their parts."""
    (near_best,) = (sums >= MIN_SHARE * sums.max()).nonzero()
    found = found[near_best]
    tokens = rows["tokens"][found]
    scores = _priced(sums[near_best], rows["time"][found], tokens, options)
    order = (-scores).argsort(kind="stable")[:MAX_RANKED]
    if budget is not None:
        order = order[: count_worth_reading(tokens[order], budget)]
    return found[order], scores[order]


def _priced(sums: Array, time: Array, tokens: Array, options: RankingOptions) -> Array:
    """Scores: sums of parts, less by age, divided by the price of their size.  ``time`` is in Unix
    seconds."""
    if options.half_life_days:
        age_days = np.maximum(0.0, options.now - time.astype(np.float64)) / DAY
        sums = sums * 0.5 ** (age_days / options.half_life_days)
    size = np.minimum(np.maximum(tokens, SHORT_TOKENS), LONG_TOKENS) / np.float32(SHORT_TOKENS)
    scores: Array = sums / size**WEIGHTS.size_exponent
    return scores


def count_worth_reading(tokens: Array, budget: int) -> int:
    """The number of passages to read, given their tokens in rank order, so that they are more than
    enough for a budget of tokens."""
    read = np.minimum(tokens, LONG_TOKENS).cumsum(dtype=np.int64)
    return int(read.searchsorted(READ_FACTOR * budget + LONG_TOKENS, side="right")) + 1


def _as_ranked(
    numbers: Numbers, rows: Array, scores: Array, parts: Sequence[Array | None]
) -> list[Ranked]:
    """The passages as Ranked values, best first; all arrays are [passages]."""
    columns = [
        numbers.tolist(),
        *(rows[name].tolist() for name in ("session", "seq", "check", "tokens")),
        scores.tolist(),
    ]
    values = np.zeros((numbers.size, len(parts)))
    for column, part in enumerate(parts):
        if part is not None:
            values[:, column] = part
    rounded = np.rint(values * 1e4) / 1e4  # of a former float32 the same as round(part, 4)
    return list(map(Ranked, *columns, map(tuple, rounded.tolist()), rows["flags"].tolist()))
