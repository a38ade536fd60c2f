"""Aligns the messages of a request with the stored log.  Pure; knows hashes, not texts.

An alignment is a list of matches, ascending in the request (M) and in the log (H).  A *run* is a
sequence of matches that are neighbours in both; a gap in H of nothing but tool calls and results
does not separate neighbours, since many clients leave these out.

Four kinds of match:

* EQUAL    the canonical digests agree;
* SIMILAR  an answer directly after a match: the stored one, re-rendered (``similar`` decides); or a
           call or result that equals a stored one except for the ids of calls;
* REPLACED an answer directly after a match, in the place of another stored answer, which it
           *alters*: the client edited it, or sends a call in another form;
* KEPT     as REPLACED, but later messages of that turn match; or a question or result whose answer
           matches.  The log keeps the stored form.  Found by ``match``, not here.

Each run has at least one EQUAL or SIMILAR answer as evidence.  It begins with a user message, at
M's start, or after a message that equals nothing in H.  If M ends with an answer, that is a
prefill, which clients repeat: it begins no run except at M's start, and is no evidence if it equals
an answer that the client made up.  A REPLACED answer may be in a run, but is evidence only if
nothing else can be aligned.  After an altered call, a message that equals nothing in H (a result in
another form) does not separate neighbours.  Answers that only the client has (for example thoughts
as a message of their own) may stand before a known answer; there a run ends, and another begins.

The best alignment ends latest in H, then has most matches, then fewest runs, then ends earliest in
M.  The search is dynamic programming over the pairs of equal digests, row by row of M, as in Hunt
and Szymanski 1977.  A row is swept once, so that a pair costs a few steps however long a gap of
calls is.
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
"""The most pairs that are compared, so that long repetitions of a few texts stay cheap."""

MAX_SAME_CALLS = 4
"""The most stored messages with the same calls that are compared with a re-rendered one."""

MAX_UNKNOWN_BETWEEN = 16
"""The most unknown answers between a question or result and the known answer to it."""

_MATCH = 1 << 32
"""The score of a match: more than the penalty of any number of runs."""


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


AnyMessage = ChatMessage | Card
"""A message of the request or of the log."""

Similar = Callable[[int, int], bool]


class Cell(NamedTuple):
    """The best alignment that ends with one match; ``before`` is the cell of the match before.

    ``has_answer``: its last run has an answer as evidence.  ``score``: ``_MATCH`` for each match
    other than REPLACED, minus 1 for each run.
    """

    i: int
    j: int
    kind: MatchKind
    has_answer: bool
    score: int
    before: Cell | None


_place = attrgetter("j", "has_answer")

Best = dict[tuple[int, bool], Cell]
"""The best cells by a number and ``has_answer``; in a row of M the number is the place in H."""


def align(
    m: Sequence[AnyMessage],
    h: Sequence[AnyMessage],
    similar: Similar,
    client_made: AbstractSet[int] = frozenset(),
    returned: AbstractSet[str] = frozenset(),
) -> tuple[Match, ...]:
    """The best alignment, or () if there is none.

    ``client_made`` are the places in H of answers that the client made up; ``returned`` are the
    digests of answers of another branch, in whose place H now has calls.
    """
    if not any(x.role == "assistant" for x in m) or not h:
        return ()
    if whole := _full_resend(m, h):
        return whole
    log, similar = Log(h, returned), cache(similar)
    strict = _Search(m, log, similar, client_made, lenient=False).best()
    return strict or _Search(m, log, similar, client_made, lenient=True).best()


def last_run(matches: Sequence[Match], h: Sequence[AnyMessage]) -> Iterator[Match]:
    """The matches of the last run, the last first."""
    for n in range(len(matches) - 1, -1, -1):
        yield matches[n]
        if n and not _neighbours(matches[n - 1], matches[n], h):
            return


def is_alike(one: AnyMessage, other: AnyMessage) -> bool:
    """Equal, or different only in the ids of calls, which some clients make up anew each time."""
    return one.digest == other.digest or bool(one.shape and one.shape == other.shape)


def is_call_or_result(message: AnyMessage) -> bool:
    """Whether it is a tool call or the result of one."""
    return bool(message.calls) or message.role in ("tool", "function")


def _neighbours(a: Match, b: Match, h: Sequence[AnyMessage]) -> bool:
    near = b.i == a.i + 1 or a.kind in (MatchKind.REPLACED, MatchKind.KEPT)
    return near and all(is_call_or_result(h[j]) for j in range(a.j + 1, b.j))


def _full_resend(m: Sequence[AnyMessage], h: Sequence[AnyMessage]) -> tuple[Match, ...]:
    """The alignment if M is all of H and more, as most clients send it: none is better."""
    if len(h) >= len(m) or m[len(h) - 1].digest != h[-1].digest:
        return ()
    if any(mine.digest != theirs.digest for mine, theirs in zip(m, h, strict=False)):
        return ()
    if not any(x.role == "assistant" for x in h):
        return ()
    return tuple(Match(i, i, MatchKind.EQUAL) for i in range(len(h)))


class Log:
    """The stored log, indexed.  Its *plain* messages are those other than calls and results."""

    def __init__(self, h: Sequence[AnyMessage], returned: AbstractSet[str] = frozenset()) -> None:
        self.h, self._returned = h, returned
        self.by_digest: defaultdict[str, list[int]] = defaultdict(list)
        self.by_shape: defaultdict[str, list[int]] = defaultdict(list)
        self._by_calls: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        self._plain: list[int] = []
        """The places of plain messages, and last the end of the log."""
        self.plain_before = [0]
        """For each place and the end of the log, the number of plain messages before it."""
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

    def _next_plain(self, j: int) -> int:
        """The place of the first plain message after j, or the end of the log."""
        return self._plain[self.plain_before[j + 1]]

    def next_answer(self, j: int) -> int | None:
        """The place of the stored answer directly after j, if calls and results are skipped."""
        k = self._next_plain(j)
        return k if k < len(self.h) and self.h[k].role == "assistant" else None

    def next_with_calls(self, j: int, calls: tuple[str, ...]) -> list[int]:
        """The places of messages with these calls between j and the next plain message."""
        places = self._by_calls.get(calls, [])
        first = bisect_right(places, j)
        end = self._next_plain(j)
        return [k for k in places[first : first + MAX_SAME_CALLS] if k < end]

    def alterable_by(self, message: AnyMessage, j: int) -> list[int]:
        """The places of answers that ``message``, an answer after j, may alter, likeliest first.

        A plain answer alters the next plain answer, or the call directly after j; a call, or an
        answer of another branch, alters any answer directly after j.
        """
        k = j + 1
        next_to = k < len(self.h) and self.h[k].role == "assistant"
        there = bool(message.calls) or (next_to and message.digest in self._returned)
        answer = None if there else self.next_answer(j)
        if answer is None or answer == k:
            return [k] if next_to else []
        return [answer, k] if next_to else [answer]


class _Finished:
    """Finds the best finished cell before a place: its cells ascend by place and score."""

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
        m: Sequence[AnyMessage],
        log: Log,
        similar: Similar,
        client_made: AbstractSet[int],
        *,
        lenient: bool,
    ) -> None:
        self._m, self._log, self._similar, self._lenient = m, log, similar, lenient
        self._client_made = client_made
        self._most = max(2, MAX_PAIRS // len(m))
        self._finished = _Finished()
        self._known_before = False
        """Whether the message before that of the current row equals one in H."""
        self._resumable: list[Cell] = []
        """Cells of earlier rows from which a run can continue, see ``_skip_unknown``."""

    def best(self) -> tuple[Match, ...]:
        top: Cell | None = None
        row: Best = {}
        for i in range(len(self._m)):
            row = self._row(i, self._predecessors(row))
            for cell in row.values():
                if not cell.has_answer or (cell.kind is MatchKind.REPLACED and not self._lenient):
                    continue
                if top is None or (cell.j, cell.score) > (top.j, top.score):
                    top = cell
                self._finished.add(cell)
        return _path(top)

    def _predecessors(self, row: Best) -> list[Cell]:
        """The cells that the next row can continue, by place in H."""
        return sorted((*row.values(), *self._resumable), key=_place)

    def _row(self, i: int, before: list[Cell]) -> Best:
        kind, places = self._places_of(i)
        row: Best = {}
        if near := self._limit_places(i, places):
            self._extend_runs(row, i, kind, near, before)
            if self._may_begin_run(i, kind):
                self._begin_runs(row, i, kind, near)
        if self._m[i].role == "assistant" and before:
            self._add_changed_answers(row, i, before, set(near))
        self._known_before = kind is MatchKind.EQUAL
        self._resumable = [] if places else self._skip_unknown(i, before)
        return row

    def _skip_unknown(self, i: int, before: Sequence[Cell]) -> list[Cell]:
        """The cells that can continue after an unknown message of M: altered calls; and, with
        a new run, questions and results, if the message is the beginning of their answer."""
        over = [cell for cell in before if self._is_altered_call(cell)]
        if i + 1 == len(self._m) or not self._m[i].role == self._m[i + 1].role == "assistant":
            return over
        asked = (
            x for x in before if self._m[x.i].role != "assistant" and i - x.i <= MAX_UNKNOWN_BETWEEN
        )
        return [*over, *(x._replace(score=x.score - (x.i == i - 1)) for x in asked)]

    def _is_altered_call(self, cell: Cell) -> bool:
        """Whether it is an altered call, or an answer altered into a call."""
        if cell.kind is not MatchKind.REPLACED:
            return False
        return bool(self._m[cell.i].calls or self._log.h[cell.j].calls)

    def _places_of(self, i: int) -> tuple[MatchKind, Sequence[int]]:
        """The places in H of messages equal to M's; if none, of those equal except for ids."""
        places = self._log.by_digest.get(self._m[i].digest)
        if places:
            return MatchKind.EQUAL, places
        shape = self._m[i].shape if self._log.by_shape else ""
        return MatchKind.SIMILAR, self._log.by_shape.get(shape, ()) if shape else ()

    def _may_begin_run(self, i: int, kind: MatchKind) -> bool:
        """Whether a run may begin here.  The same call may be made again: with other ids it
        begins a run only at M's start."""
        if i == 0 or kind is MatchKind.SIMILAR:
            return i == 0
        if self._m[i].role == "user":
            return True
        return not self._is_prefill(i) and not self._known_before

    def _is_prefill(self, i: int) -> bool:
        return i == len(self._m) - 1 and self._m[i].role == "assistant"

    def _is_evidence(self, i: int, j: int) -> bool:
        if self._m[i].role != "assistant":
            return False
        return j not in self._client_made or not self._is_prefill(i)

    def _limit_places(self, i: int, places: Sequence[int]) -> Sequence[int]:
        """At most ``_most`` latest places, and those on the likeliest diagonals; ascending."""
        if len(places) <= self._most:
            return places
        shift = len(self._log.h) - len(self._m)
        likely = {i, i + shift - 1, i + shift, i + shift + 1}
        return sorted({j for j in likely if _contains(places, j)}.union(places[-self._most :]))

    def _extend_runs(
        self, row: Best, i: int, kind: MatchKind, places: Iterable[int], before: Sequence[Cell]
    ) -> None:
        """Continue the best cells directly before these places, with only calls and results
        between: as many plain messages are before the place as up to the cell.

        Places and cells are sorted, so that each cell is visited once.
        """
        plain_before, best, seen = self._log.plain_before, Best(), 0
        for j in places:
            while seen < len(before) and before[seen].j < j:
                _keep_better(best, plain_before[before[seen].j + 1], before[seen])
                seen += 1
            for found in (best.get((plain_before[j], False)), best.get((plain_before[j], True))):
                if found is not None:
                    has_answer = found.has_answer or self._is_evidence(i, j)
                    _offer(row, Cell(i, j, kind, has_answer, found.score + _MATCH, found))

    def _begin_runs(self, row: Best, i: int, kind: MatchKind, places: Iterable[int]) -> None:
        for j in places:
            finished = self._finished.before(j)
            score = finished.score if finished else 0
            _offer(row, Cell(i, j, kind, self._is_evidence(i, j), score + _MATCH - 1, finished))

    def _add_changed_answers(
        self, row: Best, i: int, before: Sequence[Cell], equal: set[int]
    ) -> None:
        """Add cells for an answer after a match: the stored one re-rendered or altered."""
        mine, alike = self._m[i], self._similar
        repeated = self._is_prefill(i) and not equal.isdisjoint(self._client_made)
        for cell in before:
            if cell.kind is MatchKind.REPLACED:
                continue
            same = [
                k for k in self._rerendered_places(cell.j, mine) if k not in equal and alike(i, k)
            ]
            for k in same:
                _offer(row, Cell(i, k, MatchKind.SIMILAR, True, cell.score + _MATCH, cell))
            for k in self._log.alterable_by(mine, cell.j):
                if k not in equal and k not in same:
                    has_answer = cell.has_answer or (self._lenient and not repeated)
                    _offer(row, Cell(i, k, MatchKind.REPLACED, has_answer, cell.score, cell))

    def _rerendered_places(self, j: int, mine: AnyMessage) -> list[int]:
        if mine.calls:
            return self._log.next_with_calls(j, mine.calls)
        k = self._log.next_answer(j)
        return [] if k is None else [k]


def _contains(places: Sequence[int], j: int) -> bool:
    at = bisect_left(places, j)
    return at < len(places) and places[at] == j


def _offer(row: Best, cell: Cell) -> None:
    _keep_better(row, cell.j, cell)


def _keep_better(best: Best, number: int, cell: Cell) -> None:
    known = best.get((number, cell.has_answer))
    if known is None or cell.score > known.score:
        best[number, cell.has_answer] = cell


def _path(cell: Cell | None) -> tuple[Match, ...]:
    matches: list[Match] = []
    while cell:
        matches.append(Match(cell.i, cell.j, cell.kind))
        cell = cell.before
    return tuple(reversed(matches))
