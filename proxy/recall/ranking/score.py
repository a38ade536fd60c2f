"""Ranks matches by their context: neighbours, session, speaker, size, time.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import repeat
from operator import add
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from proxy.recall.query.dates import DAY
from proxy.recall.ranking.match import REACH, Matches, Numbers, members
from proxy.recall.ranking.packing import ASKS, FILLER, SAID_BY_USER, Array
from proxy.recall.ranking.repeats import Repeats, counted_again, repeats

MOST_RANKED = 200
"""Passages in a ranking; no budget holds more."""

SHORT = 90
LONG = 300
"""Tokens: shorter passages are priced like ``SHORT`` ones, longer ones are cut and priced like
``LONG`` ones."""

ROLES = frozenset({"user", "assistant"})

READ_FACTOR = 1.4
"""So many times the budget is read: some passages are deleted, repeat others or do not fit."""

MIN_SHARE = 0.2
"""Passages below this share of the best one's sum of parts are dropped."""

_NONE, _ONCE = np.float32(0), np.float32(1)


class Weights(msgspec.Struct, frozen=True):
    """The weights of a score's parts, relative to a passage's own match (1 for the best).

    All optima are flat: half or double of any weight changes the recall of evidence by 1 to 2 %.
    """

    before: float = 0.3
    after: float = 0.25
    around: float = 0.15
    """Of the matches of the passages one before, one after, and two before or after."""
    answer: float = 1.5
    """Factor of ``before`` where the passage before ends with a question."""
    asks: float = -0.1
    """If it ends with a question itself."""
    opens: float = 0.1
    """If it is the first of its session, which often has the topic."""
    session: float = 0.45
    """Of the best match in its session."""
    time: float = 0.5
    """If its session has a passage of the days that the question refers to."""
    said: float = 0.65
    """If its speaker is the one that the question is about."""
    told: float = 1.0
    """The same if the question asks for the order in which things were told."""
    dense: float = 0.35
    """Of its dense score: passages with similar meaning are often irrelevant."""
    price: float = 0.4
    """Exponent of its tokens, by which the score is divided."""


WEIGHTS = Weights()


class Options(msgspec.Struct, frozen=True):
    """How to rank.

    ``session``: only passages of the session with this number.  ``roles``: whose messages.
    ``dense`` are other scores by passage number, any scale, higher is better.
    ``half_life_days``: age that halves a score, None for no decay; ``now`` in Unix seconds.
    """

    now: float = 0.0
    half_life_days: float | None = None
    roles: frozenset[str] = ROLES
    session: int | None = None
    dense: Mapping[int, float] = msgspec.field(default_factory=dict)


PARTS = ("lexical", "dense", "neighbours", "session", "time", "said", "asks", "opens")


class Ranked(msgspec.Struct, frozen=True, gc=False):
    """A passage with its row's session, seq, check, tokens and flags, its score and its parts.

    The score is the sum of the parts, divided by the price of its size, less by age.
    """

    number: int
    session: int
    seq: int
    check: int
    tokens: int
    score: float
    values: tuple[float, ...]
    flags: int = 0

    @property
    def parts(self) -> dict[str, float]:
        """What the score is made of, by name."""
        return dict(zip(PARTS, self.values, strict=True))

    def rounded(self) -> dict[str, float]:
        """The parts rounded to 4 digits, without zeros."""
        # For a former float32 the same as round(part, 4), and several times faster.
        parts = zip(PARTS, self.values, strict=True)
        return {name: round(part * 1e4) / 1e4 for name, part in parts if part}


class Line(NamedTuple):
    """Passages laid out by place, so that neighbours in history have adjacent places.

    ``places`` are those of the passages.  All others are by place: session (0 if empty), flags,
    whether it asks, own score, whether it opens a session, and whether the place one, or two,
    further is of the same session.
    """

    places: Array
    sessions: Array
    flags: Array
    asks: Array
    own: Array
    opens: Array
    same: tuple[Array, Array]

    def at(self, found: Array) -> Array:
        """Values by passage, laid out by place."""
        laid = np.zeros(self.sessions.size, found.dtype)
        laid[self.places] = found
        return laid


def ranked(
    matches: Matches, numbers: Numbers, rows: Array, options: Options, budget: int | None = None
) -> list[Ranked]:
    """The best passages, in order.  ``rows`` are those of ``numbers`` (ascending).

    With ``budget`` those that are worth reading for so many tokens: more than it holds.
    """
    if not numbers.size:
        return []
    line = _line(matches, numbers, rows)
    dated = line.at(members(numbers, matches.dated)) if matches.dated.size else None
    wanted = _near(line, numbers, dated, options) & _wanted(line, options)
    (found,) = wanted[line.places].nonzero()
    if not found.size:
        return []
    there = line.places[found]
    line = line._replace(own=np.where(wanted, line.own, _NONE))
    right_days = dated & wanted if dated is not None else None
    again = counted_again(budget)
    parts = _parts(matches, numbers, line, there, right_days, options, again)
    whole = np.maximum(reduce(add, [part for part in parts if part is not None])[there], 0.0)
    (worth,) = (whole >= MIN_SHARE * whole.max()).nonzero()
    found, whole = found[worth], whole[worth]
    tokens = rows["tokens"][found]
    score = _priced(whole, rows["time"][found], tokens, options)
    order = (-score).argsort(kind="stable")[:MOST_RANKED]
    if budget is not None:
        order = order[: readable(tokens[order], budget)]
    found = found[order]
    there = line.places[found]
    values = [part if part is None else part[there] for part in parts]
    return _ranked(numbers, rows, found, score[order], values)


def _line(matches: Matches, numbers: Numbers, rows: Array) -> Line:
    """The layout: distances are those of the numbers, but at most ``REACH + 1``, since passages
    further apart than ``REACH`` do not affect each other."""
    places = np.empty(numbers.size, np.intp)
    places[0] = 0
    np.minimum(numbers[1:] - numbers[:-1], REACH + 1).cumsum(out=places[1:])
    size = int(places[-1]) + 1
    sessions, flags = np.zeros(size, np.uint32), np.zeros(size, np.uint8)
    sessions[places], flags[places] = rows["session"], rows["flags"]
    opens = np.zeros(size, np.bool_)
    opens[places] = rows["seq"] == 1
    same = (sessions[1:] == sessions[:-1], sessions[2:] == sessions[:-2])
    own = np.zeros(size, np.float32)
    own[places] = _own(matches, numbers)
    return Line(places, sessions, flags, (flags & ASKS) > 0, own, opens, same)


def _own(matches: Matches, numbers: Numbers) -> Array:
    """The passages' own scores; indexing an array by number is faster than searching."""
    if not matches.numbers.size:
        return np.zeros(numbers.size, np.float32)
    laid = np.zeros(max(int(matches.numbers[-1]), int(numbers[-1])) + 1, np.float32)
    laid[matches.numbers] = matches.scores
    return laid[numbers]


def readable(tokens: Array, budget: int) -> int:
    """How many passages of so many tokens are read until they are more than enough."""
    read = np.minimum(tokens, LONG).cumsum(dtype=np.int64)
    return int(read.searchsorted(READ_FACTOR * budget + LONG, side="right")) + 1


def _ranked(
    numbers: Numbers, rows: Array, found: Array, score: Array, parts: Sequence[Array | None]
) -> list[Ranked]:
    rows = rows.take(found)
    columns = [
        numbers[found].tolist(),
        *(rows[name].tolist() for name in ("session", "seq", "check", "tokens")),
        score.tolist(),
    ]
    values = zip(
        *(repeat(0.0, found.size) if p is None else p.tolist() for p in parts), strict=True
    )
    return list(map(Ranked, *columns, values, rows["flags"].tolist()))


def _wanted(line: Line, options: Options) -> NDArray[np.bool_]:
    wanted: NDArray[np.bool_] = (line.sessions > 0) & ~_says_nothing(line)
    if options.session is not None:
        wanted &= line.sessions == options.session
    if options.roles < ROLES:
        wanted &= ((line.flags & SAID_BY_USER) > 0) == ("user" in options.roles)
    return wanted


def _says_nothing(line: Line) -> NDArray[np.bool_]:
    """A mask of thanks, praise and the like, unless they answer a question."""
    nothing: NDArray[np.bool_] = (line.flags & FILLER) > 0
    behind = nothing[1:]
    behind &= ~(line.asks[:-1] & line.same[0])
    return nothing


def _near(line: Line, numbers: Numbers, dated: Array | None, options: Options) -> NDArray[np.bool_]:
    """A mask of passages that match or are of the right days, and of their neighbours in the same
    session."""
    seeds = line.own > 0
    if dated is not None:
        seeds |= dated
    if options.dense:
        seeds |= line.at(np.isin(numbers, list(options.dense)))
    near = seeds.copy()
    for distance, same in enumerate(line.same, 1):
        after, before = near[distance:], near[:-distance]
        after |= same & seeds[:-distance]
        before |= same & seeds[distance:]
    return near


def _parts(
    matches: Matches,
    numbers: Numbers,
    line: Line,
    there: Array,
    dated: Array | None,
    options: Options,
    again: float,
) -> list[Array | None]:
    """The parts of the scores, by place; None for a part that is 0 everywhere.

    ``there`` are the places that are ranked, ``dated`` a mask of places of the right days; for
    ``again`` see ``counted_again``.
    """
    unit = _unit(line.own, there)
    lexical = line.own / unit
    less = (1 - again) / unit
    twice = repeats(matches.hits, numbers, line.places, line.own, less) if again < 1 else ()
    dense = _dense(numbers, line, there, options) if options.dense else None
    told = lexical if dense is None else lexical + dense
    return [
        lexical,
        dense,
        _neighbours(told, line, twice),
        WEIGHTS.session * _best_of_session(told, line.sessions),
        None
        if dated is None
        else WEIGHTS.time * _best_of_session(dated.astype(np.float32), line.sessions),
        _said(matches, numbers, line),
        WEIGHTS.asks * line.asks,
        WEIGHTS.opens * line.opens,
    ]


def _dense(numbers: Numbers, line: Line, there: Array, options: Options) -> Array | None:
    """The dense part: similarity of meaning with the question."""
    whose = numbers[np.searchsorted(line.places, there)].tolist()
    found = np.array([options.dense.get(number, np.nan) for number in whose], np.float32)
    known = ~np.isnan(found)
    if not known.any():
        return None
    # A median similarity counts as none, like a passage without a vector.
    laid = np.zeros(line.sessions.size, np.float32)
    laid[there] = np.where(known, np.maximum(found - np.median(found[known]), 0.0), 0.0)
    scaled: Array = WEIGHTS.dense * (laid / _unit(laid, there))
    return scaled


def _unit(scores: Array, there: Array) -> float:
    """The unit of scores: the mean of the three best at the places ``there``."""
    best = scores[there]
    best.sort()
    best = best[-3:]
    mean = float(np.add.reduce(best) / np.float32(best.size))  # mean() takes five times as long
    return max(mean, 1e-6)


def _neighbours(own: Array, line: Line, less: Sequence[Repeats]) -> Array:
    """The part of the neighbours in the same session; ``less``: what to subtract for repeated
    terms, by distance."""
    total = np.zeros(own.size, np.float32)
    near = ((1, WEIGHTS.before, WEIGHTS.after), (2, WEIGHTS.around, WEIGHTS.around))
    answers = np.where(line.asks, np.float32(WEIGHTS.answer), _ONCE)
    for (distance, before, after), same in zip(near, line.same, strict=True):
        earlier, later = own[:-distance], own[distance:]
        if less:
            earlier = earlier - less[distance - 1].before[distance:]
            later = later - less[distance - 1].after[:-distance]
        behind, ahead = total[distance:], total[:-distance]
        behind += before * earlier * answers[:-distance] * same
        ahead += after * later * same
    return total


def _best_of_session(own: Array, sessions: Array) -> Array:
    best = np.zeros(int(np.maximum.reduce(sessions)) + 1, np.float32)
    np.maximum.at(best, sessions, own)
    found: Array = best[sessions]
    return found


def _said(matches: Matches, numbers: Numbers, line: Line) -> Array | None:
    """The part of passages whose speaker the question is about: someone named, the user, or the
    model."""
    question = matches.question
    said = line.at(members(numbers, matches.by_speaker)) if matches.by_speaker.size else None
    if question.assistant or question.user:
        theirs = ((line.flags & SAID_BY_USER) > 0) != question.assistant
        said = theirs if said is None else said | theirs
    if said is None:
        return None
    return (WEIGHTS.told if question.ordered else WEIGHTS.said) * said


def _priced(whole: Array, time: Array, tokens: Array, options: Options) -> Array:
    """Scores less by age, and divided by the price of their size."""
    if options.half_life_days:
        age = np.maximum(0.0, options.now - time.astype(np.float64)) / DAY
        whole = whole * 0.5 ** (age / options.half_life_days)
    size = np.minimum(np.maximum(tokens, SHORT), LONG) / np.float32(SHORT)
    priced: Array = whole / size**WEIGHTS.price
    return priced
