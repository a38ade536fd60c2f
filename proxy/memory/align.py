"""Aligning the messages of a request with the stored log.  Pure; knows hashes, not texts.

An alignment is a list of matches, ascending in the request (M) and in the log (H).  Its *runs* are
matches that are neighbours in both, where a gap in H that holds nothing but tool calls and their
results does not part neighbours (many clients show no tool messages).

Three kinds of match:

* EQUAL    the canonical digests agree;
* SIMILAR  an answer directly after a match, the stored one re-rendered (``similar`` decides);
* REPLACED an answer directly after a match where another answer is stored: the client edited it.

Each run holds at least one EQUAL or SIMILAR assistant message and begins with a user message, at
M's start or after a message that equals nothing in H.  A REPLACED answer may lie inside a run, and
is what a run rests on only where nothing else can be aligned.

Of all alignments the one is taken that ends latest in H, then has most matches, then fewest runs,
then ends earliest in M.  The search runs over the pairs of equal digests, row by row of M; a
Fenwick tree over H answers "the best alignment that ends before here".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

MAX_PAIRS = 20_000
"""Bound on the pairs looked at, so that endless repetition of few texts stays cheap."""


class Kind(Enum):
    EQUAL = "equal"
    SIMILAR = "similar"
    REPLACED = "replaced"


class Match(NamedTuple):
    """Message ``i`` of the request is message ``j`` of the log."""

    i: int
    j: int
    kind: Kind


class Side(Protocol):
    """What the alignment needs of a message, on either side."""

    @property
    def role(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def calls(self) -> tuple[str, ...]: ...
    @property
    def answers(self) -> str | None: ...


Similar = Callable[[int, int], bool]


class Score(NamedTuple):
    matches: int
    fewer_runs: int


@dataclass(slots=True)
class Cell:
    """The best way to reach one match; ``founded`` once the run holds an answer."""

    match: Match
    founded: bool
    score: Score
    before: Cell | None


Row = dict[tuple[int, bool, bool], Cell]
"""Cells of one row by (j, founded, is a replaced answer)."""


def align(m: Sequence[Side], h: Sequence[Side], similar: Similar) -> tuple[Match, ...]:
    """The best alignment, or () if there is none."""
    if not any(x.role == "assistant" for x in m) or not h:
        return ()
    strict = _Search(m, h, similar, lenient=False).best()
    return strict or _Search(m, h, similar, lenient=True).best()


def runs(matches: Sequence[Match], h: Sequence[Side]) -> list[list[Match]]:
    """The matches, parted into runs."""
    parts: list[list[Match]] = []
    for match in matches:
        if parts and _neighbours(parts[-1][-1], match, h):
            parts[-1].append(match)
        else:
            parts.append([match])
    return parts


def of_a_call(message: Side) -> bool:
    """Is it a tool call or a result of one?"""
    return bool(message.calls) or message.role in ("tool", "function")


def _neighbours(a: Match, b: Match, h: Sequence[Side]) -> bool:
    return b.i == a.i + 1 and all(of_a_call(x) for x in h[a.j + 1 : b.j])


class _Best:
    """Fenwick tree: the best finished cell whose j is below a bound."""

    def __init__(self, size: int) -> None:
        self._cells: list[Cell | None] = [None] * (size + 1)

    def add(self, cell: Cell) -> None:
        j = cell.match.j + 1
        while j < len(self._cells):
            old = self._cells[j]
            if old is None or cell.score > old.score:
                self._cells[j] = cell
            j += j & -j

    def below(self, j: int) -> Cell | None:
        best: Cell | None = None
        while j > 0:
            cell = self._cells[j]
            if cell is not None and (best is None or cell.score > best.score):
                best = cell
            j -= j & -j
        return best


class _Search:
    def __init__(
        self, m: Sequence[Side], h: Sequence[Side], similar: Similar, *, lenient: bool
    ) -> None:
        self._m, self._h, self._similar, self._lenient = m, h, similar, lenient
        self._places = _places(h)
        self._known = set(self._places)
        self._gap_start = _gap_starts(h)
        self._finished = _Best(len(h))

    def best(self) -> tuple[Match, ...]:
        top: tuple[tuple[int, Score, int], Cell] | None = None
        row: Row = {}
        for i in range(len(self._m)):
            row = self._row(i, row)
            for cell in self._ends(row):
                rank = (cell.match.j, cell.score, -i)
                if top is None or rank > top[0]:
                    top = (rank, cell)
                self._finished.add(cell)
        return _path(top[1]) if top else ()

    def _ends(self, row: Row) -> list[Cell]:
        """Where an alignment may end: at a match whose run has what it needs."""
        return [
            cell
            for (_, founded, replaced), cell in row.items()
            if founded and (self._lenient or not replaced)
        ]

    def _row(self, i: int, before: Row) -> Row:
        row: Row = {}
        equal = self._equal(i)
        for j in equal:
            self._extend(row, Match(i, j, Kind.EQUAL), before)
            self._begin(row, Match(i, j, Kind.EQUAL))
        if self._m[i].role == "assistant":
            for (j, founded, replaced), cell in before.items():
                if not replaced:
                    self._after(row, i, j, founded, cell, equal)
        return row

    def _equal(self, i: int) -> set[int]:
        """Places in H that equal M's message: the latest, and those on the likeliest diagonals."""
        places = self._places.get(self._m[i].digest, [])
        most = max(8, MAX_PAIRS // len(self._m))
        if len(places) <= most:
            return set(places)
        shift = len(self._h) - len(self._m)
        likely = (i, i + shift - 1, i + shift, i + shift + 1)
        digest = self._m[i].digest
        near = {j for j in likely if 0 <= j < len(self._h) and self._h[j].digest == digest}
        return near | set(places[-most:])

    def _extend(self, row: Row, match: Match, before: Row) -> None:
        assistant = self._m[match.i].role == "assistant"
        for j in range(self._gap_start[match.j] - 1, match.j):
            for founded in (False, True):
                for replaced in (False, True):
                    cell = before.get((j, founded, replaced))
                    if cell:
                        _put(row, match, founded or assistant, cell, cell.score)

    def _begin(self, row: Row, match: Match) -> None:
        if not self._may_begin(match.i):
            return
        finished = self._finished.below(match.j)
        score = finished.score if finished else Score(0, 0)
        fresh = Score(score.matches, score.fewer_runs - 1)
        _put(row, match, self._m[match.i].role == "assistant", finished, fresh)

    def _may_begin(self, i: int) -> bool:
        return self._m[i].role == "user" or i == 0 or self._m[i - 1].digest not in self._known

    def _after(self, row: Row, i: int, j: int, founded: bool, cell: Cell, equal: set[int]) -> None:
        """An answer after a match: the stored one re-rendered, or edited."""
        mine = self._m[i]
        for k in self._next_answers(j, bool(mine.calls)):
            theirs = self._h[k]
            if k in equal or theirs.calls != mine.calls:
                continue
            if self._similar(i, k):
                _put(row, Match(i, k, Kind.SIMILAR), True, cell, cell.score)
            elif not mine.calls:
                _put(row, Match(i, k, Kind.REPLACED), founded or self._lenient, cell, cell.score)

    def _next_answers(self, j: int, calling: bool) -> list[int]:
        """The stored assistant messages that stand directly after j, gaps of calls skipped."""
        found = []
        for k in range(j + 1, len(self._h)):
            if self._h[k].role == "assistant" and bool(self._h[k].calls) == calling:
                found.append(k)
            if not of_a_call(self._h[k]):
                break
        return found


def _places(h: Sequence[Side]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for j, message in enumerate(h):
        places[message.digest].append(j)
    return places


def _gap_starts(h: Sequence[Side]) -> list[int]:
    """For each j the first index of the calls and results that stand unbroken before it."""
    starts: list[int] = []
    for j in range(len(h)):
        starts.append(starts[j - 1] if j and of_a_call(h[j - 1]) else j)
    return starts


def _put(row: Row, match: Match, founded: bool, before: Cell | None, score: Score) -> None:
    replaced = match.kind is Kind.REPLACED
    gained = Score(score.matches + (not replaced), score.fewer_runs)
    key = (match.j, founded, replaced)
    old = row.get(key)
    if old is None or gained > old.score:
        row[key] = Cell(match, founded, gained, before)


def _path(cell: Cell | None) -> tuple[Match, ...]:
    matches: list[Match] = []
    while cell:
        matches.append(cell.match)
        cell = cell.before
    return tuple(reversed(matches))
