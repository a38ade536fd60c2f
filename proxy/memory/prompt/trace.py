"""The trace of a prompt: what was put into it, piece by piece, as ids and numbers, never text.
Pure.

It is stored with the exchange, so it must be small: messages of one exchange, nearly always
neighbours, share its id; known and recalled memories are listed in the exchange already, so that
only their order is stored here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from proxy.memory.model import Card, Injection, Recalled, SessionKey, message_id

NOWHERE = -1
"""The index for a message whose id is not of the form EXCHANGE.INDEX: then the whole id is used."""


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Stored messages of one exchange, with the indexes from ``first`` on, and their tokens."""

    exchange: str
    first: int
    tokens: tuple[int, ...]

    @property
    def ids(self) -> Iterator[str]:
        if self.first == NOWHERE:
            return iter([self.exchange])
        return (message_id(self.exchange, self.first + n) for n in range(len(self.tokens)))


RunsOf = Callable[[Sequence[Card]], tuple[Run, ...]]
"""The messages as runs, in order."""


SeqRange = tuple[int, int]
"""The first and the last of consecutive seqs."""


class PromptTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a prompt had apart from the client's own messages.

    The tokens are those of the remembered system message and of the blocks, with their frames.
    ``runs`` are the stored messages in their order.  ``order`` are the indexes in
    ``Injection.recalled`` of learned and recalled memories, as they stand in the prompt: the first
    ``memories_before_summary`` of them before the summary, the others after the first
    ``messages_before_memories`` stored messages.  Of all these pieces, only the first ``listed``
    are listed, and ``unlisted`` are not.
    ``resent`` is where the stored messages stand that the client itself sent once more.
    ``rewriting`` is what came of writing the question out for recall, "" where that was not tried.
    """

    system_tokens: int = msgspec.field(name="system", default=0)
    summary_tokens: int = msgspec.field(name="summary", default=0)
    summary_version: int = msgspec.field(name="version", default=0)
    learned_tokens: int = msgspec.field(name="known", default=0)
    recall_tokens: int = msgspec.field(name="recall", default=0)
    runs: tuple[Run, ...] = ()
    messages_before_memories: int = msgspec.field(name="before", default=0)
    order: tuple[int, ...] = ()
    memories_before_summary: int = msgspec.field(name="ahead", default=0)
    listed: int = msgspec.field(name="kept", default=0)
    unlisted: int = msgspec.field(name="cut", default=0)
    resent: tuple[SeqRange, ...] = ()
    rewriting: str = ""

    def limited(
        self, cards: Sequence[Card], max_listed: int, runs: RunsOf | None = None
    ) -> PromptTrace:
        """With these messages of a session, and at most ``max_listed`` pieces listed, and
        ranges of resent ones.  ``runs``: as ``runs_of``."""
        others = bool(self.system_tokens) + bool(self.summary_version) + len(self.order)
        pieces = others + len(cards)
        listed = min(max_listed, pieces)
        return msgspec.structs.replace(
            self,
            runs=(runs or runs_of)(cards[:listed]),
            listed=listed,
            unlisted=pieces - listed,
            resent=self.resent[-max_listed:] if max_listed else (),
        )


def runs_of(cards: Iterable[Card]) -> tuple[Run, ...]:
    """The messages as runs, in order; computed for every recorded exchange."""
    runs: list[tuple[str, int, list[int]]] = []
    exchange, index, tokens = "", 0, list[int]()
    for card in cards:
        id = card.id
        begins = id[-2:] == ".0"  # most exchanges begin so, and no other message can
        if begins or not index or id != f"{exchange}.{index}":
            exchange, index = (id[:-2], 0) if begins else _split_id(id)
            tokens = []
            runs.append((exchange, index, tokens))
        tokens.append(card.tokens)
        index += 1
    return tuple([Run(exchange, first, tuple(tokens)) for exchange, first, tokens in runs])


WINDOWS = 64
"""Sessions whose window's runs are cached.  A long one takes some 30 KB."""


class _Window(NamedTuple):
    """Messages, and their runs."""

    cards: Sequence[Card] = ()
    runs: tuple[Run, ...] = ()

    def common_part(self, cards: Sequence[Card]) -> _Window:
        """The part of it that ``cards`` begin with; empty if more has changed than that the oldest
        runs are gone."""
        if cards[0] not in self.cards:
            return _Window()
        gone = left = self.cards.index(cards[0])
        for n, run in enumerate(self.runs):
            if left <= 0:
                known = self.cards[gone:]
                same = not left and cards[: len(known)] == known
                return _Window(known, self.runs[n:]) if same else _Window()
            left -= len(run.tokens)
        return _Window()


class KnownRuns:
    """Caches the runs of recent windows: a steady window only grows, and one that moves loses its
    oldest messages.

    Cards are compared by identity, which is cheap.
    """

    def __init__(self) -> None:
        self._windows: LRUCache[SessionKey, _Window] = LRUCache(WINDOWS)

    def __len__(self) -> int:
        return len(self._windows)

    def of(self, key: SessionKey, cards: Sequence[Card]) -> tuple[Run, ...]:
        """As ``runs_of``, for a session's window."""
        if not cards:
            return ()
        known = self._windows.get(key, _Window()).common_part(cards)
        *before, last = known.runs or [Run("", NOWHERE, ())]  # the last one may go on
        runs = (*before, *runs_of(cards[len(known.cards) - len(last.tokens) :]))
        self._windows[key] = _Window(cards, runs)
        return runs


def seq_ranges(seqs: Iterable[int]) -> tuple[SeqRange, ...]:
    """Ascending seqs as ranges: a conversation that was resent whole is one range."""
    stretches: list[SeqRange] = []
    for seq in sorted(seqs):
        if stretches and seq == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], seq)
        else:
            stretches.append((seq, seq))
    return tuple(stretches)


def _split_id(id: str) -> tuple[str, int]:
    """The exchange and the index of a message."""
    exchange, _, index = id.rpartition(".")
    if index.isdecimal() and message_id(exchange, int(index)) == id:
        return exchange, int(index)
    return id, NOWHERE


class TracePiece(msgspec.Struct, frozen=True):
    """One thing in a prompt.

    ``kind`` is "system", "summary", "message", or that of something known or recalled.  ``id`` is
    of a message or a memory, None where there is none; ``session`` is None for the exchange's own.
    """

    kind: str
    tokens: int
    id: str | None = None
    session: str | None = None
    score: float | None = None
    version: int | None = None


def decode_trace(injection: Injection) -> PromptTrace | None:
    """The trace of an exchange; None without one, as memory was off or failed, or the record is
    old.

    Raises ValueError if it cannot be read.
    """
    return msgspec.json.decode(injection.trace, type=PromptTrace | None)


def readable_trace(injection: Injection) -> PromptTrace | None:
    """The trace; None also if it cannot be read, so that one record does not break a list."""
    with suppress(ValueError):
        return decode_trace(injection)
    return None


def pieces_of(shown: PromptTrace, recalled: Sequence[Recalled]) -> list[TracePiece]:
    """All listed pieces, in the order of the prompt."""
    memories = [_recalled_piece(recalled[n]) for n in shown.order if 0 <= n < len(recalled)]
    messages = [
        TracePiece("message", tokens, id)
        for run in shown.runs
        for id, tokens in zip(run.ids, run.tokens, strict=False)
    ]
    pieces = [
        *([TracePiece("system", shown.system_tokens)] if shown.system_tokens else []),
        *memories[: shown.memories_before_summary],
        *(
            [TracePiece("summary", shown.summary_tokens, version=shown.summary_version)]
            if shown.summary_version
            else []
        ),
        *messages[: shown.messages_before_memories],
        *memories[shown.memories_before_summary :],
        *messages[shown.messages_before_memories :],
    ]
    return pieces[: shown.listed]


def _recalled_piece(recalled: Recalled) -> TracePiece:
    session = recalled.session or None
    return TracePiece(
        recalled.kind, recalled.tokens, recalled.message or None, session, recalled.score or None
    )
