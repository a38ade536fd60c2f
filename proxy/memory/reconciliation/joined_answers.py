"""Splits a message of a request that is several stored answers joined into one.  Pure.

A client that leaves out tool calls and results may join the answers around them.  The request does
not show where one of them ends; the log does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from proxy.chat.message import ChatMessage
from proxy.memory.model import Entry

MAX_PIECES = 4000
"""Pieces of all messages that may be several answers; with more, none of them is split."""

READS_PER_PIECE = 10
"""How often a piece is read at most: alone, and as a part of longer ones."""

BYTES_PER_UNIT = 100
"""Bytes of such messages that take about as long as one message to plan."""


def known_digests(log: Iterable[Entry]) -> frozenset[str]:
    """The digests of the log's messages, with and without the ids of calls."""
    cards = (entry.card for entry in log if not entry.card.blank)
    return frozenset(mark for card in cards for mark in (card.digest, card.shape) if mark)


def split_cost(m: Iterable[ChatMessage], known: AbstractSet[str]) -> int:
    """The cost of splitting, as a number of messages to plan; 0 if nothing is to be split."""
    doubtful = [message for message in m if known and _may_be_several(message, known)]
    pieces = sum(message.max_parts for message in doubtful)
    if pieces > MAX_PIECES:
        return 0
    return (
        READS_PER_PIECE * pieces + sum(len(message.raw) for message in doubtful) // BYTES_PER_UNIT
    )


def _may_be_several(message: ChatMessage, known: AbstractSet[str]) -> bool:
    """Whether it may be several answers, and is not stored as one."""
    return message.splitter is not None and known.isdisjoint((message.digest, message.shape))


def split_known_answers(
    m: Sequence[ChatMessage], known: AbstractSet[str]
) -> tuple[ChatMessage, ...]:
    """The messages, with those split that are stored as several."""
    return tuple(each for message in m for each in _split_if_known(message, known))


def _split_if_known(message: ChatMessage, known: AbstractSet[str]) -> Sequence[ChatMessage]:
    if message.splitter is None or not _may_be_several(message, known):
        return (message,)
    parts = _longest_known(message.splitter(message), known)
    return (message,) if known.isdisjoint(part.digest for part in parts) else parts


def _longest_known(
    runs: Sequence[Sequence[ChatMessage]], known: AbstractSet[str]
) -> list[ChatMessage]:
    """The parts, joined where the log has several of them as one answer."""
    found: list[ChatMessage] = []
    at = 0
    while at < len(runs):
        sizes = range(len(runs[at]), 1, -1)
        size = next((n for n in sizes if runs[at][n - 1].digest in known), 1)
        found.append(runs[at][size - 1])
        at += size
    return found
