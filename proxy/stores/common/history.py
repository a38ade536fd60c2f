"""What all stores compute of a history in the same way.

Message ids as places, the final form of a commit, where a log begins, cursors, restored sessions.
Pure.  Knows the domain values and no back end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple

import msgspec

from proxy.memory.archive import SessionArchive
from proxy.memory.model import Card, Commit, Exchange, LoadOptions, Position, Summary
from proxy.stores.common.damage import BadCursor

FIRST_SEQ = 1
"""Sequence numbers start here, so that ``LOG_START`` lies before every message."""


class MessagePlace(NamedTuple):
    """Where a message id points: the exchange, and the index in it."""

    exchange: str
    number: int


class SeqSpan(NamedTuple):
    """The sequence numbers that an exchange has taken: ``size`` of them from ``first``."""

    first: int
    size: int

    def seq(self, index: int) -> int | None:
        return self.first + index if index < self.size else None


def parse_message_id(message: str) -> MessagePlace | None:
    """The place that a message id names; None for a string that is no message id.

    Strict, because seqs are computed from it: ``x.01`` must not find ``x.1``.
    """
    exchange, dot, tail = message.rpartition(".")
    digits = tail.isascii() and tail.isdigit() and len(tail) <= 9
    if not dot or not digits or str(int(tail)) != tail:
        return None
    return MessagePlace(exchange, int(tail))


def parse_message_ids(messages: Iterable[str]) -> list[MessagePlace]:
    return [place for place in map(parse_message_id, messages) if place is not None]


def with_size(commit: Commit) -> Exchange:
    """The exchange of a commit with its ``size``: the number of its messages and reserved
    places."""
    size = len(commit.drafts) + commit.reserved
    if commit.exchange.size == size:
        return commit.exchange
    return msgspec.structs.replace(commit.exchange, size=size)


def is_choice(card: Card) -> bool:
    """Whether the message is a further choice of a reply."""
    return card.choice > 0 and card.origin == "response"


def first_turn(
    backwards: Callable[[], Iterable[tuple[int, int]]],
    start: Position | None,
    newest: int,
    options: LoadOptions,
    summary: Summary | None,
) -> int:
    """The first turn of a bounded log.

    ``backwards`` gives (turn, tokens) of the active log from its end, each time anew; it is read no
    further than needed.  ``newest`` is the last turn of the log, ``summary`` the one in force.
    """
    if start is None:
        first = _turn_over_bounds(backwards(), options.max_messages, options.max_tokens)
    else:
        first = min(start.turn, newest)
    covered = summary.until.turn if summary else 0
    if options.max_uncovered_tokens is None or covered >= first:
        return first
    rest = takewhile(lambda entry: entry[0] > covered, backwards())
    return min(first, max(covered, _turn_over_bounds(rest, None, options.max_uncovered_tokens)))


def _turn_over_bounds(
    backwards: Iterable[tuple[int, int]], max_messages: int | None, max_tokens: int | None
) -> int:
    """The turn at which a bound is exceeded, counted from the end; 0 if none is."""
    if max_messages is None and max_tokens is None:
        return 0
    messages = tokens = 0
    for turn, size in backwards:
        messages, tokens = messages + 1, tokens + size
        if _exceeds(messages, max_messages) or _exceeds(tokens, max_tokens):
            return turn
    return 0


def is_within_bounds(messages: int, tokens: int, options: LoadOptions) -> bool:
    """Whether the entire log is within the bounds of ``options``."""
    return not (_exceeds(messages, options.max_messages) or _exceeds(tokens, options.max_tokens))


def _exceeds(value: int, bound: int | None) -> bool:
    return bound is not None and value > bound


def sessions_cursor(last_active_at: float, session: str) -> str:
    """The cursor behind a session in a list; visible ASCII like the id it ends with."""
    return f"{last_active_at!r}:{session}"


def read_cursor(cursor: str) -> tuple[float, str]:
    """The inverse of :func:`sessions_cursor`.  Raises BadCursor for anything else."""
    at, colon, session = cursor.partition(":")
    try:
        if colon and math.isfinite(float(at)):
            return float(at), session
    except ValueError:
        pass
    raise BadCursor("not a cursor of this list")


# Restoring a session


class RestoredCounts(msgspec.Struct, frozen=True):
    """``messages`` and ``tokens`` count the active log; ``next`` is the first free seq.

    ``last`` is the id of the newest exchange, ``choices`` are the ids of those whose replies have
    several.
    """

    messages: int
    tokens: int
    next: int
    last: str | None
    choices: frozenset[str]


def counts_of(archived: SessionArchive) -> RestoredCounts:
    active = [line.card for line in archived.lines if line.state == "active"]
    return RestoredCounts(
        messages=len(active),
        tokens=sum(card.tokens for card in active),
        next=_last_taken_seq(archived) + 1,
        last=_newest_exchange(archived),
        choices=frozenset(line.card.exchange for line in archived.lines if is_choice(line.card)),
    )


def _last_taken_seq(archived: SessionArchive) -> int:
    """The last seq in use, also of reserved places and of removed messages."""
    seqs = (line.position.seq for line in archived.lines)
    ends = (placed.first + placed.exchange.size - 1 for placed in archived.exchanges)
    return max(FIRST_SEQ - 1, archived.session.end, *seqs, *ends)


def _newest_exchange(archived: SessionArchive) -> str | None:
    """The id of the session's last exchange if it is in the archive, else of the newest by seq."""
    known = {placed.exchange.id: placed.first for placed in archived.exchanges}
    if archived.session.last in known:
        return archived.session.last
    return max(known, key=lambda id: known[id], default=None)
