"""Branches of a conversation: finding them in history, switching to one, forking a session.  Pure.

History is append-only, so that messages which were edited and answers which were regenerated are
still there, superseded.  Each exchange names the message that it *follows*, the last one of the log
when it was recorded.  So history is a tree.  The path to a message is its own exchange up to it,
preceded by the path to the message that this exchange follows.

To switch to a branch, its path is made active.  The *fork point* is the last message of the path
that was active already.  Of the other active messages only those stay that were recorded before the
branch and are before the fork point: they belong to neither branch, as they ran beside the
conversation.

An exchange that names no message (recorded by an older release), or one that was removed since, is
taken to follow the newest active message before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from proxy.memory.archive import PlacedExchange, SessionArchive, StoredMessage
from proxy.memory.model import LOG_START, Entry, Position, State, Summary, exchange_of


class Switch(msgspec.Struct, frozen=True):
    """A switch to another branch: ids of messages that leave the log, and that come back."""

    superseded: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()


NO_SWITCH = Switch()

_place = attrgetter("position")


def switch_to(
    lines: Sequence[StoredMessage],
    exchanges: Sequence[PlacedExchange],
    message: str,
    *,
    whole: bool = True,
) -> Switch | None:
    """The switch to the branch of a message; None if there is no such message.

    ``lines`` and ``exchanges`` are all that the session has, ascending.  The branch ends with the
    message's exchange, or, unless ``whole``, with the message itself.  For an active message
    nothing changes, except that messages after it may leave the log.
    """
    tree = _Tree(lines, exchanges)
    target = tree.lines.get(message)
    if target is None:
        return None
    if whole and target.state == "active":
        return NO_SWITCH
    way = tree.path(target, whole=whole)
    fork = max((x.position for x in way.values() if x.state == "active"), default=LOG_START)
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


def path_to(
    lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange], message: str
) -> tuple[Entry, ...]:
    """The entries on the path to a message; empty if there is no such message.

    For requests that name the message that they continue: concurrent exchanges are not part of it.
    """
    tree = _Tree(lines, exchanges)
    target = tree.lines.get(message)
    if target is None:
        return ()
    way = tree.path(target, whole=False).values()
    return tuple([Entry(line.position, line.card) for line in way])


class _Tree:
    """The messages of a session and what each exchange followed."""

    def __init__(self, lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange]) -> None:
        self.lines = {line.card.id: line for line in lines}
        self._placed = {placed.exchange.id: placed for placed in exchanges}
        self._of: dict[str, list[StoredMessage]] = {}
        for line in lines:
            self._of.setdefault(line.card.exchange, []).append(line)
        self._active = [line for line in lines if line.state == "active"]
        self._newest = list(accumulate(self._active, _later))

    def first(self, line: StoredMessage) -> int:
        """The first seq of a message's exchange."""
        placed = self._placed.get(line.card.exchange)
        return placed.first if placed else self._of[line.card.exchange][0].position.seq

    def path(self, target: StoredMessage, *, whole: bool) -> dict[str, StoredMessage]:
        """The messages on the path to one, by id; ``whole``: and the rest of its exchange."""
        end = self._of[target.card.exchange][-1] if whole else target
        steps: list[StoredMessage] = []
        at, until = target, end.position.seq
        while True:
            steps += self._messages_of_exchange(at, until)
            before = self._predecessor(at)
            if before is None:
                return {line.card.id: line for line in self._without_replaced(steps)}
            at, until = before, before.position.seq

    def _messages_of_exchange(self, at: StoredMessage, until: int) -> list[StoredMessage]:
        """The messages of an exchange up to a seq, with one of several choices, and without those
        that another exchange had recorded already."""
        own = [x for x in self._of[at.card.exchange] if x.position.seq <= until]
        choices = [x for x in self._of[at.card.exchange] if x.card.origin == "response"]
        chosen = at if at in choices else _active_choice(choices)
        return [x for x in own if x is chosen or (x.card.origin != "response" and not x.card.blank)]

    def _predecessor(self, line: StoredMessage) -> StoredMessage | None:
        """The message that the exchange of this one followed."""
        placed = self._placed.get(line.card.exchange)
        follows = placed.exchange.follows if placed else None
        if follows == "":
            return None
        first = self.first(line)
        found = self.lines.get(follows) if follows else None
        if found is None and follows:
            found = self._last_remaining(follows)
        if found is not None and found.position.seq < first:
            return found
        before = bisect_left(self._active, first, key=lambda x: x.position.seq)
        return self._newest[before - 1] if before else None

    def _last_remaining(self, removed: str) -> StoredMessage | None:
        """The last remaining message before a removed one in its exchange."""
        index = _index(removed)
        left = [x for x in self._of.get(exchange_of(removed), ()) if _index(x.card.id) < index]
        return left[-1] if left else None

    def _without_replaced(self, steps: Iterable[StoredMessage]) -> list[StoredMessage]:
        """The messages without answers that a later exchange replaced."""
        kept: list[StoredMessage] = []
        for line in sorted(steps, key=_place):
            if kept and self._replaces(line, kept[-1]):
                kept.pop()
            kept.append(line)
        return kept

    def _replaces(self, line: StoredMessage, before: StoredMessage) -> bool:
        """Whether it is an answer after another of its turn that its exchange does not follow."""
        if (
            line.position.turn != before.position.turn
            or not _is_answer(line)
            or not _is_answer(before)
        ):
            return False
        placed = self._placed.get(line.card.exchange)
        if line.card.exchange == before.card.exchange or placed is None:
            return False
        return placed.exchange.follows not in (None, before.card.id)


def _active_choice(choices: Sequence[StoredMessage]) -> StoredMessage | None:
    """The active choice of a reply, else the first."""
    return next((x for x in choices if x.state == "active"), choices[0] if choices else None)


def _is_answer(line: StoredMessage) -> bool:
    return line.card.role == "assistant" and not line.card.calls


def _later(one: StoredMessage, other: StoredMessage) -> StoredMessage:
    return max(one, other, key=_place)


def _index(message: str) -> int:
    tail = message.rpartition(".")[2]
    return int(tail) if tail.isdecimal() else 0


class NoMessage(LookupError):
    """There is no such message in this session."""


class Fork(msgspec.Struct, frozen=True):
    """A fork to be made: its id, its creation time (Unix seconds), and its last message, None for
    all.  Without a ``title`` it has that of the original."""

    id: str
    at: float
    until: str | None = None
    title: str | None = None


def fork_archive(archived: SessionArchive, fork: Fork) -> SessionArchive:
    """The new session, with everything that was recorded up to and including the message.

    Ids, positions, times, exchanges, windows and owner are the same.  The branch of the message is
    active.  Versions of the summary that cover a message that is left out are left out too.
    Raises NoMessage.
    """
    lines, exchanges = _up_to(archived, fork.until)
    end = max((placed.first + placed.exchange.size - 1 for placed in exchanges), default=0)
    if fork.until is None:
        end = archived.session.end
    left_out = archived.lines[len(lines) :]
    switch = NO_SWITCH
    if fork.until is not None:
        switch = switch_to(lines, exchanges, fork.until, whole=False) or NO_SWITCH
    lines = tuple(_switched(line, switch) for line in lines)
    last = max((line.position for line in lines if line.state == "active"), default=LOG_START)
    summaries = tuple(
        replace(summary, seen=min(summary.seen, end))
        for summary in archived.summaries
        if _is_still_valid(summary, left_out, archived.lines, switch)
    )
    session, details = archived.session, archived.session.details
    return SessionArchive(
        session=replace(
            session,
            id=fork.id,
            messages=sum(line.state == "active" for line in lines),
            tokens=sum(line.card.tokens for line in lines if line.state == "active"),
            created_at=fork.at,
            last_active_at=fork.at,
            details=details if fork.title is None else replace(details, title=fork.title),
            summary=summaries[0] if summaries else None,
            end=end,
            last=exchanges[-1].exchange.id if exchanges else None,
            windows=_windows(archived, switch, last),
        ),
        lines=lines,
        exchanges=exchanges,
        summaries=summaries,
    )


def _up_to(
    archived: SessionArchive, until: str | None
) -> tuple[tuple[StoredMessage, ...], tuple[PlacedExchange, ...]]:
    """The messages up to this one by seq, and their exchanges with what is left of them."""
    if until is None:
        return archived.lines, archived.exchanges
    cut = next((x.position.seq for x in archived.lines if x.card.id == until), None)
    if cut is None:
        raise NoMessage
    lines = tuple(x for x in archived.lines if x.position.seq <= cut)
    there = {line.card.id for line in lines}
    placed = (
        each._replace(messages=tuple(id for id in each.messages if id in there))
        for each in archived.exchanges
    )
    return lines, tuple(each for each in placed if each.messages)


def _switched(line: StoredMessage, switch: Switch) -> StoredMessage:
    state: State = line.state
    if line.card.id in switch.activated:
        state = "active"
    elif line.card.id in switch.superseded:
        state = "superseded"
    return line if state == line.state else line._replace(state=state)


def _is_still_valid(
    summary: Summary,
    left_out: Sequence[StoredMessage],
    lines: Sequence[StoredMessage],
    switch: Switch,
) -> bool:
    """Whether all that a version of the summary covers is still there, in the same state."""
    changed = {*switch.activated, *switch.superseded}
    touched = (*left_out, *(line for line in lines if line.card.id in changed))
    return not any(summary.covers(line.position) for line in touched)


def _windows(archived: SessionArchive, switch: Switch, last: Position) -> dict[str, Position]:
    """The starts of windows that are within the fork; the others are computed anew."""
    if switch != NO_SWITCH:
        return {}
    windows = archived.session.windows
    return {profile: start for profile, start in windows.items() if start <= last}
