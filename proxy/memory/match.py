"""Which stored messages the messages of a request are.  Pure; around ``align``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.memory.align import Kind, Match, Side, align, of_a_call, runs
from proxy.memory.model import Card, Entry, Snapshot
from proxy.memory.request import Incoming, Rerendered, visible

MAX_WANTED = 500
"""How many stored answers are fetched to be compared with re-rendered ones."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Matches in terms of M and the log; ``evidence``: their last run holds a real answer."""

    matches: tuple[Match, ...] = ()
    evidence: bool = False


def match_messages(
    log: Sequence[Entry], snapshot: Snapshot, m: Sequence[Incoming], rerendered: Rerendered
) -> Alignment:
    """Align what is visible: neither blank messages nor later system ones part neighbours."""
    if not any(x.role == "assistant" for x in m):
        return Alignment()  # nothing could be aligned, and most requests are so
    mine = [i for i, x in enumerate(m) if visible(x)]
    theirs = [j for j, e in enumerate(log) if not e.card.blank]
    cards = [log[j].card for j in theirs]

    def similar(i: int, j: int) -> bool:
        message, card = m[mine[i]], cards[j]
        return alternate(snapshot, card, message.digest) is not None or rerendered(message, card)

    seen = [m[i] for i in mine]
    found = _with_edited_answers(align(seen, cards, similar), seen, cards)
    if not found:
        return Alignment()
    evidence = any(cards[x.j].evidence for x in runs(found, cards)[-1])
    return Alignment(tuple(Match(mine[x.i], theirs[x.j], x.kind) for x in found), evidence)


def wanted_bodies(snapshot: Snapshot, m: Sequence[Incoming]) -> list[str]:
    """Ids of stored answers that may be re-rendered in M and whose text the snapshot lacks."""
    if not any(x.role == "assistant" for x in m):
        return []
    cards = [entry.card for entry in snapshot.log]
    digests = {card.digest for card in cards}
    pairs = zip(m, m[1:], strict=False)
    asked = {a.digest for a, b in pairs if b.role == "assistant" and b.digest not in digests}
    wanted: list[str] = []
    for j, card in enumerate(cards):
        k = _next_answer(cards, j) if card.digest in asked else None
        if k is not None and cards[k].id not in snapshot.bodies:
            wanted.append(cards[k].id)
    return wanted[-MAX_WANTED:]


def alternate(snapshot: Snapshot, card: Card, digest: str) -> Entry | None:
    """The inactive choice of the same reply that has this digest."""
    for entry in snapshot.alternates.get(card.exchange, ()):
        if entry.card.digest == digest:
            return entry
    return None


def _with_edited_answers(
    matches: Sequence[Match], m: Sequence[Side], h: Sequence[Side]
) -> tuple[Match, ...]:
    """Add the edited answers that stand directly behind a run (inside runs they are found)."""
    taken = {x.i for x in matches}
    ends = [*(x.j for x in matches[1:]), len(h)]
    added: list[Match] = []
    for match, end in zip(matches, ends, strict=False):
        i, j = match.i + 1, _next_answer(h, match.j)
        if match.kind is Kind.REPLACED or i in taken or i >= len(m) or not _answer(m[i]):
            continue
        if j is not None and j < end:
            added.append(Match(i, j, Kind.REPLACED))
    return tuple(sorted((*matches, *added)))


def _answer(message: Side) -> bool:
    return message.role == "assistant" and not message.calls


def _next_answer(h: Sequence[Side], j: int) -> int | None:
    for k in range(j + 1, len(h)):
        if not of_a_call(h[k]):
            return k if _answer(h[k]) else None
    return None
