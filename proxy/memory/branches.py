"""Branches of a conversation: what was said another way, and how it comes back.  Pure.

History is append-only, so a message that was edited, or an answer that was made again, is still
there, superseded.  Each exchange says which message it *followed*, the last one of the log when it
was recorded, so that history is a tree: the way to a message is its own exchange up to it, then the
message that this exchange followed with the way to that one.

A branch is made the active one by making its way active.  Of all else that is active only what was
recorded before the branch and stands before the *fork point* stays, the last message of the way
that was active already: that is what ran beside the conversation and belongs to neither branch.

An exchange that does not say what it followed (an older release has recorded it), or that followed
what has been removed since, is taken to follow the newest active message before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from proxy.memory.archive import Line, Placed
from proxy.memory.model import BEGINNING, exchange_of


@dataclass(frozen=True, slots=True)
class Switch:
    """Ids of messages that leave the log, and of those that come back into it."""

    superseded: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()


NO_SWITCH = Switch()


def switch_to(
    lines: Sequence[Line], exchanges: Sequence[Placed], message: str, *, whole: bool = True
) -> Switch | None:
    """What makes the branch of a message the active one; None if there is no such message.

    ``lines`` and ``exchanges`` are all that the session has, ascending.  The branch ends with the
    message's exchange, or, unless ``whole``, with the message itself.  Nothing changes for a
    message that is active already, unless something behind it has to leave.
    """
    tree = _Tree(lines, exchanges)
    target = tree.lines.get(message)
    if target is None:
        return None
    if whole and target.state == "active":
        return NO_SWITCH
    way = tree.way(target, whole=whole)
    fork = max((x.position for x in way.values() if x.state == "active"), default=BEGINNING)
    begin = tree.first(target)
    return Switch(
        superseded=tuple(
            x.card.id
            for x in lines
            if x.state == "active"
            and x.card.id not in way
            and (x.position.seq >= begin or x.position > fork)
        ),
        activated=tuple(x.card.id for x in lines if x.card.id in way and x.state != "active"),
    )


class _Tree:
    """The messages of a session and what each exchange followed."""

    def __init__(self, lines: Sequence[Line], exchanges: Sequence[Placed]) -> None:
        self.lines = {line.card.id: line for line in lines}
        self._placed = {placed.exchange.id: placed for placed in exchanges}
        self._of: dict[str, list[Line]] = {}
        for line in lines:
            self._of.setdefault(line.card.exchange, []).append(line)
        self._active = [line for line in lines if line.state == "active"]
        self._newest = list(accumulate(self._active, _later))

    def first(self, line: Line) -> int:
        """The first seq of a message's exchange."""
        placed = self._placed.get(line.card.exchange)
        return placed.first if placed else self._of[line.card.exchange][0].position.seq

    def way(self, target: Line, *, whole: bool) -> dict[str, Line]:
        """All that leads to a message, and with ``whole`` the rest of its exchange."""
        end = self._of[target.card.exchange][-1] if whole else target
        steps: list[Line] = []
        at, until = target, end.position.seq
        while True:
            steps += self._own(at, until)
            before = self._before(at)
            if before is None:
                return {line.card.id: line for line in self._without_replaced(steps)}
            at, until = before, before.position.seq

    def _own(self, at: Line, until: int) -> list[Line]:
        """The messages of an exchange up to a seq, of several choices the one that is meant."""
        own = [x for x in self._of[at.card.exchange] if x.position.seq <= until]
        choices = [x for x in self._of[at.card.exchange] if x.card.origin == "response"]
        chosen = at if at in choices else _chosen(choices)
        return [x for x in own if x.card.origin != "response" or x is chosen]

    def _before(self, line: Line) -> Line | None:
        """The message that the exchange of this one followed."""
        placed = self._placed.get(line.card.exchange)
        follows = placed.exchange.follows if placed else None
        if follows == "":
            return None
        first = self.first(line)
        found = self.lines.get(follows) if follows else None
        if found is None and follows:
            found = self._last_left(follows)
        if found is not None and found.position.seq < first:
            return found
        before = bisect_left(self._active, first, key=lambda x: x.position.seq)
        return self._newest[before - 1] if before else None

    def _last_left(self, removed: str) -> Line | None:
        """Of the exchange of a removed message, the last of those before it that are there."""
        index = _index(removed)
        left = [x for x in self._of.get(exchange_of(removed), ()) if _index(x.card.id) < index]
        return left[-1] if left else None

    def _without_replaced(self, steps: Iterable[Line]) -> list[Line]:
        """Without answers in whose place a later exchange has put another."""
        kept: list[Line] = []
        for line in sorted(steps, key=_place):
            if kept and self._replaces(line, kept[-1]):
                kept.pop()
            kept.append(line)
        return kept

    def _replaces(self, line: Line, before: Line) -> bool:
        """An answer behind a complete answer of its turn that its exchange did not go on from."""
        if line.position.turn != before.position.turn or not _answer(line) or not _answer(before):
            return False
        placed = self._placed.get(line.card.exchange)
        if line.card.exchange == before.card.exchange or placed is None:
            return False
        return placed.exchange.follows not in (None, before.card.id)


def _chosen(choices: Sequence[Line]) -> Line | None:
    """Of the choices of a reply the one that is memory, else the first."""
    return next((x for x in choices if x.state == "active"), choices[0] if choices else None)


def _answer(line: Line) -> bool:
    return line.card.role == "assistant" and not line.card.calls


def _place(line: Line) -> tuple[int, int]:
    return line.position


def _later(one: Line, other: Line) -> Line:
    return max(one, other, key=_place)


def _index(message: str) -> int:
    tail = message.rpartition(".")[2]
    return int(tail) if tail.isdecimal() else 0
