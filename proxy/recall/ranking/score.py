"""Matches ranked by what surrounds them: neighbours, session, who speaks, size, time.  Pure."""

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
"""Tokens: what is shorter is not cheaper by as much as it says less, what is longer is cut."""

ROLES = frozenset({"user", "assistant"})

MORE = 1.4
"""So many times the budget is read: some passages are gone, say it twice or do not fit."""

LEAST = 0.2
"""Share of what the parts of the best passage add up to; what has less is not worth its tokens."""

_NONE, _ONCE = np.float32(0), np.float32(1)


class Weights(msgspec.Struct, frozen=True):
    """What each thing counts beside a passage's own match, of which the best are 1.

    All optima are flat: half or twice of any one moves the recall of evidence by a percent or two.
    """

    before: float = 0.3
    after: float = 0.25
    around: float = 0.15
    """Of the match of the passages one before, one after and two away."""
    answer: float = 1.5
    """Factor of ``before`` where the passage before ends with a question."""
    asks: float = -0.1
    """That it ends with a question itself."""
    opens: float = 0.1
    """That a session begins with it: who begins to talk says what it is about."""
    session: float = 0.45
    """Of the best match in its session."""
    time: float = 0.5
    """That its session has a passage of the days that the question points at."""
    said: float = 0.65
    """That it was said by the one whom the question asks about."""
    told: float = 1.0
    """The same where it asks for the order in which somebody told things."""
    dense: float = 0.35
    """Of its dense score: what is near in meaning is often beside the point."""
    price: float = 0.4
    """Exponent of the tokens that it costs, by which its score is divided."""


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
        """The same for people, without what does not count."""
        # Of what was a float32 it is the same as round(part, 4), and several times faster.
        parts = zip(PARTS, self.values, strict=True)
        return {name: round(part * 1e4) / 1e4 for name, part in parts if part}


class Line(NamedTuple):
    """Passages laid out so that those next to each other stand side by side.

    ``places`` is where each stands.  By place: their sessions (0 where nothing stands), flags,
    whether they ask, own scores, whether a session begins there, and whether the place one, or two,
    further on is of the same session.
    """

    places: Array
    sessions: Array
    flags: Array
    asks: Array
    own: Array
    opens: Array
    same: tuple[Array, Array]

    def at(self, found: Array) -> Array:
        """By place what is given by passage."""
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
    (worth,) = (whole >= LEAST * whole.max()).nonzero()
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
    """The passages in their order, as far apart as their numbers are, but at most ``REACH + 1``:
    what is further away than ``REACH`` counts for nothing."""
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
    """The passages' own scores, laid out by number: a search for each takes longer."""
    if not matches.numbers.size:
        return np.zeros(numbers.size, np.float32)
    laid = np.zeros(max(int(matches.numbers[-1]), int(numbers[-1])) + 1, np.float32)
    laid[matches.numbers] = matches.scores
    return laid[numbers]


def readable(tokens: Array, budget: int) -> int:
    """How many passages of so many tokens are read until they are more than enough."""
    read = np.minimum(tokens, LONG).cumsum(dtype=np.int64)
    return int(read.searchsorted(MORE * budget + LONG, side="right")) + 1


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
    """Thanks, praise and the like, unless it is what somebody asked for."""
    nothing: NDArray[np.bool_] = (line.flags & FILLER) > 0
    behind = nothing[1:]
    behind &= ~(line.asks[:-1] & line.same[0])
    return nothing


def _near(line: Line, numbers: Numbers, dated: Array | None, options: Options) -> NDArray[np.bool_]:
    """Which passages match or are of the right days, or near one of their session that is."""
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
    """What the scores of the passages at the places ``there`` are made of, by place; None: of
    nothing.  ``dated`` of these are of the right days; ``again`` see ``counted_again``."""
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
    """What is near the question in meaning."""
    whose = numbers[np.searchsorted(line.places, there)].tolist()
    found = np.array([options.dense.get(number, np.nan) for number in whose], np.float32)
    known = ~np.isnan(found)
    if not known.any():
        return None
    # What is as far away as most is no better than what has no vector.
    laid = np.zeros(line.sessions.size, np.float32)
    laid[there] = np.where(known, np.maximum(found - np.median(found[known]), 0.0), 0.0)
    scaled: Array = WEIGHTS.dense * (laid / _unit(laid, there))
    return scaled


def _unit(scores: Array, there: Array) -> float:
    """What counts as 1: the mean of the three best scores of those ``there``."""
    best = scores[there]
    best.sort()
    best = best[-3:]
    mean = float(np.add.reduce(best) / np.float32(best.size))  # mean() takes five times as long
    return max(mean, 1e-6)


def _neighbours(own: Array, line: Line, less: Sequence[Repeats]) -> Array:
    """What the passages around tell, those of the same session; ``less`` what of it counts no
    more, by distance."""
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
    """What it counts that a passage was said by the one asked about: someone named, the user, or
    the model."""
    question = matches.question
    said = line.at(members(numbers, matches.spoken)) if matches.spoken.size else None
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
