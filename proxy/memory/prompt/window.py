"""Windows: which part of the log is put into a prompt.  Pure functions of cards.

A window bounds what the proxy injects, never what the client sent.  It starts at a position that is
stored, and stays put until the window overflows; then it moves in one step until at most
``evict_to`` of the limit is left, so that the prompt keeps a steady prefix (upstreams bill a cached
prefix at a fraction of the price).  ``evict_to = 1`` is the classic sliding window.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.memory.model import LOG_START, Entry, Position

LOG_END = Position(2**53, 2**53)
"""A position after every message, where an empty window starts."""


class Size(NamedTuple):
    """A number of messages that can be sent, and their tokens."""

    messages: int
    tokens: int


UNBOUNDED = Size(sys.maxsize, sys.maxsize)
"""The room in a window that has no bounds."""


def size_of(entries: Iterable[Entry]) -> Size:
    """The size of these entries; blank messages, which are never sent, do not count."""
    tokens = [entry.card.tokens for entry in entries if not entry.card.blank]
    return Size(len(tokens), sum(tokens))


class Window(msgspec.Struct, frozen=True, gc=False):
    """At most ``max_messages`` and ``max_tokens`` (None: no bound) of the log, the newest.

    ``by_turn`` evicts whole turns, so that a window starts at a user message.
    """

    max_messages: int | None = None
    max_tokens: int | None = None
    evict_to: float = 1.0
    by_turn: bool = True

    @property
    def is_bounded(self) -> bool:
        return self.max_messages is not None or self.max_tokens is not None

    @property
    def shows_nothing(self) -> bool:
        """Whether all but the running turn is evicted."""
        return 0 in (self.max_messages, self.max_tokens)

    def reduced_by(self, tokens: int) -> Window:
        """The window with ``tokens`` less, for something else that is always injected."""
        if self.max_tokens is None or not tokens:
            return self
        return replace(self, max_tokens=max(0, self.max_tokens - tokens))

    def remaining(self, used: Size) -> Size:
        """The room until it overflows, given what is ``used``."""
        messages, tokens = self.max_messages, self.max_tokens
        return Size(
            UNBOUNDED.messages if messages is None else messages - used.messages,
            UNBOUNDED.tokens if tokens is None else tokens - used.tokens,
        )

    def limit(self, share: float = 1.0) -> Size:
        """The largest size that is at most ``share`` of the limits."""
        messages, tokens = self.max_messages, self.max_tokens
        return Size(
            UNBOUNDED.messages if messages is None else int(share * messages),
            UNBOUNDED.tokens if tokens is None else int(share * tokens),
        )

    def fits(self, what: Size, share: float = 1.0) -> bool:
        most = self.limit(share)
        return what.messages <= most.messages and what.tokens <= most.tokens


def advance_start(
    log: Sequence[Entry], start: Position, window: Window, running: int | None = None
) -> Position:
    """Where the window starts now.

    ``log`` is sorted by position and begins at or before ``start``.  The turn ``running`` is always
    in the window, even when it alone exceeds the limit.  An empty window starts at LOG_END.
    """
    shown = visible_entries(log, start, running)
    if window.fits(size_of(shown)):
        return start
    always = size_of(entry for entry in shown if entry.position.turn == running)
    others = [entry for entry in shown if entry.position.turn != running]
    kept = _start_of_newest(others, always, window, window.evict_to)
    if kept is None:
        kept = _start_of_newest(_last_unit(others, window), always, window, 1.0)
    if kept is not None:
        return kept
    newest = shown[-1].position.turn if shown else None
    return LOG_END if running is None or running != newest else Position(running, 0)


def _last_unit(entries: Sequence[Entry], window: Window) -> list[Entry]:
    """The newest entry, or the newest turn where turns are evicted as a whole."""
    if not window.by_turn:
        return list(entries[-1:])
    return [entry for entry in entries if entry.position.turn == entries[-1].position.turn]


def _start_of_newest(
    entries: Sequence[Entry], always: Size, window: Window, share: float
) -> Position | None:
    """Where the newest entries begin that fit together with ``always``, None if none does; whole
    turns of them where turns are evicted as a whole."""
    messages, tokens = always
    most = window.limit(share)
    start: Position | None = None
    for at in range(len(entries) - 1, -1, -1):
        card, position = entries[at].card, entries[at].position
        if not card.blank:
            messages, tokens = messages + 1, tokens + card.tokens
        if messages > most.messages or tokens > most.tokens:
            break
        if not (window.by_turn and at and entries[at - 1].position.turn == position.turn):
            start = position
    return start


def turn_start(
    log: Sequence[Entry], start: Position, running: int | None = None, covered: Position = LOG_START
) -> Position:
    """The first position from ``start`` on at which a turn begins with its first message, or that
    is in the ``running`` turn.

    The first message of a turn may have been deleted, and a prompt must not begin with its answer.
    A turn whose beginning is covered by a summary (before ``covered``) counts too.
    """
    at = bisect_left(log, start, key=attrgetter("position"))
    for n in range(at, len(log)):
        turn = log[n].position.turn
        if _starts_turn(log[n]) or turn == running or Position(turn, turn) < covered:
            return start if n == at else log[n].position
    return start if at == len(log) else LOG_END


def _starts_turn(entry: Entry) -> bool:
    """Whether a turn begins here.  Each choice of a reply without a question begins one."""
    return entry.position.seq - entry.card.choice == entry.position.turn


def visible_entries(
    log: Sequence[Entry], start: Position, running: int | None = None
) -> list[Entry]:
    """The entries that a window starting there shows."""
    at = bisect_left(log, start, key=attrgetter("position"))
    before = [entry for entry in log[:at] if entry.position.turn == running]
    return [*before, *log[at:]]
