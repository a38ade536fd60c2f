"""Answers that stand side by side in a request, as one message.  Pure.

A client that leaves out calls and their results leaves nothing between what was said around them.
Where the wire does not show where an answer ends, the log does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from proxy.chat.message import ChatMessage
from proxy.memory.model import Entry

MAX_PIECES = 4000
"""Of all messages of a request that may be several; where they have more, each stays one."""

READS_PER_PIECE = 10
"""How often a piece of them is read, at most: alone, and in what it may be a part of."""

BYTES_PER_UNIT = 100
"""Bytes of them that count as a message."""


def known_digests(log: Iterable[Entry]) -> frozenset[str]:
    """What messages are known by: their digests, and those without the ids of calls."""
    cards = (entry.card for entry in log if not entry.card.blank)
    return frozenset(mark for card in cards for mark in (card.digest, card.shape) if mark)


def split_cost(m: Iterable[ChatMessage], known: AbstractSet[str]) -> int:
    """As many messages take about as long as telling these apart; 0 where they stay as they are."""
    doubtful = [message for message in m if known and _may_be_several(message, known)]
    pieces = sum(message.pieces for message in doubtful)
    if pieces > MAX_PIECES:
        return 0
    return (
        READS_PER_PIECE * pieces + sum(len(message.raw) for message in doubtful) // BYTES_PER_UNIT
    )


def _may_be_several(message: ChatMessage, known: AbstractSet[str]) -> bool:
    """May it be several, and is not known as one?"""
    return message.apart is not None and known.isdisjoint((message.digest, message.shape))


def split_known_answers(
    m: Sequence[ChatMessage], known: AbstractSet[str]
) -> tuple[ChatMessage, ...]:
    """The messages, those apart that are stored apart."""
    return tuple(each for message in m for each in _split_if_known(message, known))


def _split_if_known(message: ChatMessage, known: AbstractSet[str]) -> Sequence[ChatMessage]:
    if message.apart is None or not _may_be_several(message, known):
        return (message,)
    parts = _longest_known(message.apart(message), known)
    return (message,) if known.isdisjoint(part.digest for part in parts) else parts


def _longest_known(
    runs: Sequence[Sequence[ChatMessage]], known: AbstractSet[str]
) -> list[ChatMessage]:
    """Where an answer of several parts is known, it stays one."""
    found: list[ChatMessage] = []
    at = 0
    while at < len(runs):
        sizes = range(len(runs[at]), 1, -1)
        size = next((n for n in sizes if runs[at][n - 1].digest in known), 1)
        found.append(runs[at][size - 1])
        at += size
    return found
