"""Aligning the messages of a request with the stored log.  Pure; knows hashes, not texts.

An alignment is a list of matches, ascending in the request (M) and in the log (H).  Its *runs* are
matches that are neighbours in both, where a gap in H that holds nothing but tool calls and their
results does not part neighbours (many clients show no tool messages).

Four kinds of match:

* EQUAL    the canonical digests agree;
* SIMILAR  an answer directly after a match, the stored one re-rendered (``similar`` decides); or a
           call or a result that equals nothing in H but for the ids of the calls;
* REPLACED an answer directly after a match where another answer is stored, which it *alters*: the
           client edited it, or sends a call in a form of its own;
* KEPT     the same, where later messages of that turn match, or a question or a result of which the
           answer does: the log goes on from the stored form.  ``match`` finds these, nothing here.

Each run holds at least one EQUAL or SIMILAR assistant message and begins with a user message, at
M's start or after a message that equals nothing in H.  An answer that M ends with is a prefill, and
clients repeat theirs: behind other messages it begins no run, and where it equals one that the
client made up no run rests on it.  A REPLACED answer may lie inside a run, and is what a run rests
on only where nothing else can be aligned.  What follows an altered call and equals nothing in H, a
result in another form, does not part neighbours.  What the client alone has of an answer, its
thoughts as a message before it, keeps neither from what was asked, but parts their runs.

Of all alignments the one is taken that ends latest in H, then has most matches, then fewest runs,
then ends earliest in M.  The search is dynamic programming over the pairs of equal digests alone,
row by row of M, as in Hunt and Szymanski 1977.  Each pair costs a few steps however long a gap of
calls is, for a row is swept once from its beginning to its end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card

MAX_PAIRS = 20_000
"""Bound on the pairs looked at, so that endless repetition of few texts stays cheap."""

MAX_SAME_CALLS = 4
"""How many stored messages with the same calls are looked at for one that is re-rendered."""

MAX_BEGUN = 16
"""How many unknown messages may stand between what was asked and what is known of its answer."""

_MATCH = 1 << 32
"""What a match is worth in a score: more than any number of runs that it may cost."""


class MatchKind(Enum):
    EQUAL = "equal"
    SIMILAR = "similar"
    REPLACED = "replaced"
    KEPT = "kept"


class Match(NamedTuple):
    """Message ``i`` of the request is message ``j`` of the log."""

    i: int
    j: int
    kind: MatchKind


Side = ChatMessage | Card
"""A message on either side, of the request or of the log."""

Similar = Callable[[int, int], bool]


class Cell(NamedTuple):
    """The best alignment that ends with one match; ``before`` is the cell of the match before.

    ``founded``: its last run holds an answer.  ``score``: ``_MATCH`` for each match but REPLACED
    ones, less 1 for each run.
    """

    i: int
    j: int
    kind: MatchKind
    founded: bool
    score: int
    before: Cell | None


_place = attrgetter("j", "founded")

Best = dict[tuple[int, bool], Cell]
"""The best cell by a number and ``founded``.  For a row of M that is the place in H: there each
message of H is of one kind."""


def align(
    m: Sequence[Side],
    h: Sequence[Side],
    similar: Similar,
    made_up: AbstractSet[int] = frozenset(),
    returned: AbstractSet[str] = frozenset(),
) -> tuple[Match, ...]:
    """The best alignment, or () if there is none; ``made_up`` are H's answers of the client's.

    ``returned`` are digests of answers that were said before the calls which now stand there.
    """
    if not any(x.role == "assistant" for x in m) or not h:
        return ()
    if whole := _full_resend(m, h):
        return whole
    log, similar = Log(h, returned), cache(similar)
    strict = _Search(m, log, similar, made_up, lenient=False).best()
    return strict or _Search(m, log, similar, made_up, lenient=True).best()


def last_run(matches: Sequence[Match], h: Sequence[Side]) -> Iterator[Match]:
    """The matches of the last run, the last first."""
    for n in range(len(matches) - 1, -1, -1):
        yield matches[n]
        if n and not _neighbours(matches[n - 1], matches[n], h):
            return


def is_call_or_result(message: Side) -> bool:
    """Is it a tool call or a result of one?"""
    return bool(message.calls) or message.role in ("tool", "function")


def _neighbours(a: Match, b: Match, h: Sequence[Side]) -> bool:
    near = b.i == a.i + 1 or a.kind in (MatchKind.REPLACED, MatchKind.KEPT)
    return near and all(is_call_or_result(h[j]) for j in range(a.j + 1, b.j))


def _full_resend(m: Sequence[Side], h: Sequence[Side]) -> tuple[Match, ...]:
    """All of H, and more behind it, as most clients resend it: no alignment is better."""
    if len(h) >= len(m) or m[len(h) - 1].digest != h[-1].digest:
        return ()
    if any(mine.digest != theirs.digest for mine, theirs in zip(m, h, strict=False)):
        return ()
    if not any(x.role == "assistant" for x in h):
        return ()
    return tuple(Match(i, i, MatchKind.EQUAL) for i in range(len(h)))


class Log:
    """The stored log, with indexes of it.  Its *plain* messages are no calls and no results."""

    def __init__(self, h: Sequence[Side], returned: AbstractSet[str] = frozenset()) -> None:
        self.h, self._returned = h, returned
        self.by_digest: defaultdict[str, list[int]] = defaultdict(list)
        self.by_shape: defaultdict[str, list[int]] = defaultdict(list)
        self._by_calls: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        self._plain: list[int] = []
        """The places of plain messages, and behind them the end of the log."""
        self.plain_before = [0]
        """For each place, and for the end, how many plain messages stand before it."""
        for j, message in enumerate(h):
            self.by_digest[message.digest].append(j)
            if message.shape:
                self.by_shape[message.shape].append(j)
            if message.calls:
                self._by_calls[message.calls].append(j)
            if not is_call_or_result(message):
                self._plain.append(j)
            self.plain_before.append(len(self._plain))
        self._plain.append(len(h))

    def _plain_behind(self, j: int) -> int:
        """The first plain message after j, or the end of the log."""
        return self._plain[self.plain_before[j + 1]]

    def answer_behind(self, j: int) -> int | None:
        """The stored answer that stands directly after j, calls and results skipped."""
        k = self._plain_behind(j)
        return k if k < len(self.h) and self.h[k].role == "assistant" else None

    def same_calls_behind(self, j: int, calls: tuple[str, ...]) -> list[int]:
        """The messages that make these calls and stand directly after j, others skipped."""
        places = self._by_calls.get(calls, [])
        first = bisect_right(places, j)
        end = self._plain_behind(j)
        return [k for k in places[first : first + MAX_SAME_CALLS] if k < end]

    def altered_by(self, message: Side, j: int) -> list[int]:
        """The answers that ``message``, an answer after j, may alter, the likelier first.

        A plain answer alters the next plain answer, or the call that stands there; a call, or an
        answer of another branch, alters whatever answer stands there.
        """
        k = j + 1
        next_to = k < len(self.h) and self.h[k].role == "assistant"
        there = bool(message.calls) or (next_to and message.digest in self._returned)
        answer = None if there else self.answer_behind(j)
        if answer is None or answer == k:
            return [k] if next_to else []
        return [answer, k] if next_to else [answer]


class _Finished:
    """The best finished cell before any place: cells by place, their scores never falling."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._cells: list[Cell] = []

    def add(self, cell: Cell) -> None:
        at = bisect_right(self._places, cell.j)
        if at and (self._cells[at - 1].score, self._places[at - 1]) >= (cell.score, cell.j):
            return
        end = at
        while end < len(self._cells) and self._cells[end].score < cell.score:
            end += 1
        self._places[at:end] = [cell.j]
        self._cells[at:end] = [cell]

    def before(self, j: int) -> Cell | None:
        at = bisect_left(self._places, j)
        return self._cells[at - 1] if at else None


class _Search:
    def __init__(
        self,
        m: Sequence[Side],
        log: Log,
        similar: Similar,
        made_up: AbstractSet[int],
        *,
        lenient: bool,
    ) -> None:
        self._m, self._log, self._similar, self._lenient = m, log, similar, lenient
        self._made_up = made_up
        self._most = max(2, MAX_PAIRS // len(m))
        self._finished = _Finished()
        self._known_before = False
        """Does the message before the row's equal something in H?"""
        self._carried: list[Cell] = []
        """What lies further back and can be gone on from, see ``_over``."""

    def best(self) -> tuple[Match, ...]:
        top: Cell | None = None
        row: Best = {}
        for i in range(len(self._m)):
            row = self._row(i, self._before(row))
            for cell in row.values():
                if not cell.founded or (cell.kind is MatchKind.REPLACED and not self._lenient):
                    continue
                if top is None or (cell.j, cell.score) > (top.j, top.score):
                    top = cell
                self._finished.add(cell)
        return _path(top)

    def _before(self, row: Best) -> list[Cell]:
        """The cells that the next row can go on from, by their place in H."""
        return sorted((*row.values(), *self._carried), key=_place)

    def _row(self, i: int, before: list[Cell]) -> Best:
        kind, places = self._places(i)
        row: Best = {}
        if near := self._near(i, places):
            self._extend(row, i, kind, near, before)
            if self._may_begin(i, kind):
                self._begin(row, i, kind, near)
        if self._m[i].role == "assistant" and before:
            self._after(row, i, before, set(near))
        self._known_before = kind is MatchKind.EQUAL
        self._carried = [] if places else self._over(i, before)
        return row

    def _over(self, i: int, before: Sequence[Cell]) -> list[Cell]:
        """What goes on behind M's message, which is unknown: altered calls; and, as another
        run, a question or a result, where the message is how its answer begins."""
        over = [cell for cell in before if self._of_a_call(cell)]
        if i + 1 == len(self._m) or not self._m[i].role == self._m[i + 1].role == "assistant":
            return over
        asked = (x for x in before if self._m[x.i].role != "assistant" and i - x.i <= MAX_BEGUN)
        return [*over, *(x._replace(score=x.score - (x.i == i - 1)) for x in asked)]

    def _of_a_call(self, cell: Cell) -> bool:
        """Is it an altered call, or an answer altered into a call?"""
        if cell.kind is not MatchKind.REPLACED:
            return False
        return bool(self._m[cell.i].calls or self._log.h[cell.j].calls)

    def _places(self, i: int) -> tuple[MatchKind, Sequence[int]]:
        """Where M's message stands in H; where it does not, what is the same but for ids."""
        places = self._log.by_digest.get(self._m[i].digest)
        if places:
            return MatchKind.EQUAL, places
        shape = self._m[i].shape if self._log.by_shape else ""
        return MatchKind.SIMILAR, self._log.by_shape.get(shape, ()) if shape else ()

    def _may_begin(self, i: int, kind: MatchKind) -> bool:
        """The same call may be made again: under other ids it begins a run only where M does."""
        if i == 0 or kind is MatchKind.SIMILAR:
            return i == 0
        if self._m[i].role == "user":
            return True
        return not self._is_prefill(i) and not self._known_before

    def _is_prefill(self, i: int) -> bool:
        return i == len(self._m) - 1 and self._m[i].role == "assistant"

    def _founds(self, i: int, j: int) -> bool:
        if self._m[i].role != "assistant":
            return False
        return j not in self._made_up or not self._is_prefill(i)

    def _near(self, i: int, places: Sequence[int]) -> Sequence[int]:
        """Of many places the latest, and those on the likeliest diagonals; ascending."""
        if len(places) <= self._most:
            return places
        shift = len(self._log.h) - len(self._m)
        likely = {i, i + shift - 1, i + shift, i + shift + 1}
        return sorted({j for j in likely if _contains(places, j)}.union(places[-self._most :]))

    def _extend(
        self, row: Best, i: int, kind: MatchKind, places: Iterable[int], before: Sequence[Cell]
    ) -> None:
        """Go on from the best cells directly before these places: only calls and results are
        between, so that as many plain messages stand before the place as up to the cell.

        Places and cells are sorted, so that each cell is looked at once.
        """
        plain_before, best, seen = self._log.plain_before, Best(), 0
        for j in places:
            while seen < len(before) and before[seen].j < j:
                _keep_better(best, plain_before[before[seen].j + 1], before[seen])
                seen += 1
            for found in (best.get((plain_before[j], False)), best.get((plain_before[j], True))):
                if found is not None:
                    founded = found.founded or self._founds(i, j)
                    _put(row, Cell(i, j, kind, founded, found.score + _MATCH, found))

    def _begin(self, row: Best, i: int, kind: MatchKind, places: Iterable[int]) -> None:
        for j in places:
            finished = self._finished.before(j)
            score = finished.score if finished else 0
            _put(row, Cell(i, j, kind, self._founds(i, j), score + _MATCH - 1, finished))

    def _after(self, row: Best, i: int, before: Sequence[Cell], equal: set[int]) -> None:
        """An answer after a match: the stored one re-rendered or altered."""
        mine, alike = self._m[i], self._similar
        repeated = self._is_prefill(i) and not equal.isdisjoint(self._made_up)
        for cell in before:
            if cell.kind is MatchKind.REPLACED:
                continue
            same = [k for k in self._same_calls(cell.j, mine) if k not in equal and alike(i, k)]
            for k in same:
                _put(row, Cell(i, k, MatchKind.SIMILAR, True, cell.score + _MATCH, cell))
            for k in self._log.altered_by(mine, cell.j):
                if k not in equal and k not in same:
                    founded = cell.founded or (self._lenient and not repeated)
                    _put(row, Cell(i, k, MatchKind.REPLACED, founded, cell.score, cell))

    def _same_calls(self, j: int, mine: Side) -> list[int]:
        if mine.calls:
            return self._log.same_calls_behind(j, mine.calls)
        k = self._log.answer_behind(j)
        return [] if k is None else [k]


def _contains(places: Sequence[int], j: int) -> bool:
    at = bisect_left(places, j)
    return at < len(places) and places[at] == j


def _put(row: Best, cell: Cell) -> None:
    _keep_better(row, cell.j, cell)


def _keep_better(best: Best, number: int, cell: Cell) -> None:
    known = best.get((number, cell.founded))
    if known is None or cell.score > known.score:
        best[number, cell.founded] = cell


def _path(cell: Cell | None) -> tuple[Match, ...]:
    matches: list[Match] = []
    while cell:
        matches.append(Match(cell.i, cell.j, cell.kind))
        cell = cell.before
    return tuple(reversed(matches))
