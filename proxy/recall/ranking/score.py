"""Matches ranked by what surrounds them: neighbours, session, who speaks, size, time.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxy.recall.ranking.match import REACH, Matches, Numbers
from proxy.recall.ranking.packing import ASKS, SAID_BY_USER, Array

MOST_RANKED = 200
"""Passages in a ranking; no budget holds more."""

SHORT = 80
LONG = 300
"""Tokens: what is shorter is not cheaper by as much as it says less, what is longer is cut."""

ROLES = frozenset({"user", "assistant"})

MORE = 1.4
"""So many times the budget is read: some passages are gone, say it twice or do not fit."""

LEAST = 0.2
"""Share of what the parts of the best passage add up to; what has less is not worth its tokens."""

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Weights:
    """What each thing counts beside a passage's own match, of which the best are 1.

    All optima are flat: half or twice of any one moves the recall of evidence by a percent or two.
    """

    before: float = 0.3
    after: float = 0.25
    around: float = 0.1
    """Of the match of the passages one before, one after and two away."""
    answer: float = 1.5
    """Factor of ``before`` where the passage before ends with a question."""
    asks: float = -0.1
    """That it ends with a question itself."""
    session: float = 0.45
    """Of the best match in its session."""
    time: float = 0.5
    """That its session has a passage of the days that the question points at."""
    said: float = 0.5
    """That it was said by the one whom the question asks about."""
    dense: float = 0.3
    """Of its dense score: what is near in meaning is often beside the point."""
    price: float = 0.4
    """Exponent of the tokens that it costs, by which its score is divided."""


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Options:
    """How to rank.

    ``session``: only passages of the session with this number.  ``roles``: whose messages.
    ``dense`` are other scores by passage number, any scale, higher is better.
    ``half_life_days``: age that halves a score, None for no decay; ``now`` in Unix seconds.
    """

    now: float = 0.0
    half_life_days: float | None = None
    roles: frozenset[str] = ROLES
    session: int | None = None
    dense: Mapping[int, float] = field(default_factory=dict)
    weights: Weights = WEIGHTS


PARTS = ("lexical", "dense", "neighbours", "session", "time", "said", "asks")


class Ranked(NamedTuple):
    """A passage with its row's session, seq, check and tokens, its score and the score's parts.

    The score is the sum of the parts, divided by the price of its size, less by age.
    """

    number: int
    session: int
    seq: int
    check: int
    tokens: int
    score: float
    values: tuple[float, ...]

    @property
    def parts(self) -> dict[str, float]:
        """What the score is made of, by name."""
        return dict(zip(PARTS, self.values, strict=True))

    def rounded(self) -> dict[str, float]:
        """The same for people, without what does not count."""
        parts = zip(PARTS, self.values, strict=True)
        return {name: round(part, 4) for name, part in parts if part}


def ranked(
    matches: Matches, numbers: Numbers, rows: Array, options: Options, budget: int | None = None
) -> list[Ranked]:
    """The best passages, in order.  ``rows`` are those of ``numbers`` (ascending).

    With ``budget`` those that are worth reading for so many tokens: more than it holds.
    """
    own = _own(matches, numbers)
    near = _connected(matches, numbers, rows["session"], own, options)
    there = np.flatnonzero(near & _wanted(rows, options))
    if not there.size:
        return []
    numbers, rows = numbers[there], rows[there]
    parts = _parts(matches, numbers, rows, own[there], options)
    size = np.clip(rows["tokens"], SHORT, LONG) / np.float32(SHORT)
    whole = np.maximum(sum(parts), 0.0)
    score = whole * _decay(rows, options) / size**options.weights.price
    order = np.argsort(-score, kind="stable")
    order = order[whole[order] >= LEAST * whole.max()][:MOST_RANKED]
    if budget is not None:
        order = order[: readable(rows["tokens"][order], budget)]
    return _ranked(order, numbers, rows, score, parts)


def readable(tokens: Array, budget: int) -> int:
    """How many passages of so many tokens are read until they are more than enough."""
    read = np.cumsum(np.minimum(tokens, LONG), dtype=np.int64)
    return int(np.searchsorted(read, MORE * budget + LONG, side="right")) + 1


def _ranked(
    order: Array, numbers: Numbers, rows: Array, score: Array, parts: Sequence[Array]
) -> list[Ranked]:
    columns = [
        numbers[order].tolist(),
        *(rows[name][order].tolist() for name in ("session", "seq", "check", "tokens")),
        score[order].tolist(),
    ]
    values = zip(*(part[order].tolist() for part in parts), strict=True)
    return [Ranked(*fields) for fields in zip(*columns, values, strict=True)]


def _wanted(rows: Array, options: Options) -> NDArray[np.bool_]:
    wanted: NDArray[np.bool_] = rows["session"] > 0
    if options.session is not None:
        wanted &= rows["session"] == options.session
    if options.roles < ROLES:
        wanted &= ((rows["flags"] & SAID_BY_USER) > 0) == ("user" in options.roles)
    return wanted


def _connected(
    matches: Matches, numbers: Numbers, sessions: Array, own: Array, options: Options
) -> NDArray[np.bool_]:
    """Which passages match or are of the right days, or near one of their session that is."""
    seeds = own > 0
    if matches.dated.size:
        seeds |= np.isin(numbers, matches.dated)
    if options.dense:
        seeds |= np.isin(numbers, list(options.dense))
    near = seeds.copy()
    for distance in range(1, REACH + 1):
        same = sessions[distance:] == sessions[:-distance]
        same &= numbers[distance:] - numbers[:-distance] <= REACH
        near[distance:] |= same & seeds[:-distance]
        near[:-distance] |= same & seeds[distance:]
    return near


def _parts(
    matches: Matches, numbers: Numbers, rows: Array, own: Array, options: Options
) -> list[Array]:
    weights = options.weights
    lexical = _scaled(own)
    dense = _dense(numbers, options)
    asks = (rows["flags"] & ASKS) > 0
    return [
        lexical,
        dense,
        _neighbours(lexical + dense, asks, numbers, rows["session"], weights),
        weights.session * _best_of_session(lexical + dense, rows["session"]),
        weights.time * _dated(matches, numbers, rows["session"]),
        weights.said * _said(matches, numbers, rows),
        weights.asks * asks,
    ]


def _own(matches: Matches, numbers: Numbers) -> Array:
    scores = np.zeros(numbers.size, np.float32)
    if matches.numbers.size:
        places = np.searchsorted(matches.numbers, numbers).clip(max=matches.numbers.size - 1)
        same = matches.numbers[places] == numbers
        scores[same] = matches.scores[places[same]]
    return scores


def _dense(numbers: Numbers, options: Options) -> Array:
    if not options.dense:
        return np.zeros(numbers.size, np.float32)
    found = np.array([options.dense.get(number, np.nan) for number in numbers.tolist()], np.float32)
    known = ~np.isnan(found)
    if not known.any():
        return np.zeros(numbers.size, np.float32)
    # What is as far away as most is no better than what has no vector.
    found = np.where(known, np.maximum(found - np.median(found[known]), 0.0), 0.0)
    return options.weights.dense * _scaled(found)


def _scaled(scores: Array) -> Array:
    """Scores such that the mean of the three best is 1."""
    best = float(np.sort(scores)[-3:].mean())
    return scores / np.float32(max(best, 1e-6))


def _neighbours(
    own: Array, asks: Array, numbers: Numbers, sessions: Array, weights: Weights
) -> Array:
    """What the passages around tell, those of the same session."""
    total = np.zeros(numbers.size, np.float32)
    signed = numbers.astype(np.int64)
    around = ((-1, weights.before), (1, weights.after), (-2, weights.around), (2, weights.around))
    for distance, weight in around:
        places = np.searchsorted(signed, signed + distance).clip(max=numbers.size - 1)
        same = (signed[places] == signed + distance) & (sessions[places] == sessions)
        told = weight * own[places]
        if distance < 0:
            told = np.where(asks[places], weights.answer * told, told)
        total += np.where(same, told, 0.0)
    return total


def _best_of_session(own: Array, sessions: Array) -> Array:
    best = np.full(int(sessions.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, sessions, own)
    found: Array = best[sessions]
    return found


def _dated(matches: Matches, numbers: Numbers, sessions: Array) -> Array:
    """Which passages are of a session that has one of the right days."""
    if not matches.dated.size:
        return np.zeros(numbers.size, np.float32)
    return _best_of_session(np.isin(numbers, matches.dated).astype(np.float32), sessions)


def _said(matches: Matches, numbers: Numbers, rows: Array) -> Array:
    """Whether a passage was said by the one asked about: someone named, the user, or the model."""
    by_user = (rows["flags"] & SAID_BY_USER) > 0
    said: Array = np.isin(numbers, matches.spoken)
    question = matches.question
    if question.assistant:
        return said | ~by_user
    return said | by_user if question.user else said


def _decay(rows: Array, options: Options) -> Array | float:
    if not options.half_life_days:
        return 1.0
    age = np.maximum(0.0, options.now - rows["time"].astype(np.float64)) / _DAY
    found: Array = 0.5 ** (age / options.half_life_days)
    return found
