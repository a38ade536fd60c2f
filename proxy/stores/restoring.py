"""What every store computes alike for a session that is put back.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.memory.archive import Archived
from proxy.stores.places import FIRST_SEQ, is_choice


@dataclass(frozen=True, slots=True)
class Restored:
    """``messages`` and ``tokens`` count the active log; ``next`` is the first seq that is free.

    ``last`` is the id of the newest exchange, ``choices`` are the ids of those whose replies have
    several.
    """

    messages: int
    tokens: int
    next: int
    last: str | None
    choices: frozenset[str]


def restored(archived: Archived) -> Restored:
    active = [line.card for line in archived.lines if line.state == "active"]
    return Restored(
        messages=len(active),
        tokens=sum(card.tokens for card in active),
        next=_taken(archived) + 1,
        last=_last(archived),
        choices=frozenset(line.card.exchange for line in archived.lines if is_choice(line.card)),
    )


def _taken(archived: Archived) -> int:
    """The last seq that is taken, by a reserved place or by what is gone, too."""
    seqs = (line.position.seq for line in archived.lines)
    ends = (placed.first + placed.exchange.size - 1 for placed in archived.exchanges)
    return max(FIRST_SEQ - 1, archived.session.end, *seqs, *ends)


def _last(archived: Archived) -> str | None:
    """As the session says, if that exchange is there, else the newest by place."""
    known = {placed.exchange.id: placed.first for placed in archived.exchanges}
    if archived.session.last in known:
        return archived.session.last
    return max(known, key=lambda id: known[id], default=None)
