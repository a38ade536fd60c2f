"""A commit that others were faster than: what it means for the session as it is now.  Pure.

Requests that only go on from the same message stand one behind the other.  Where one of them has
taken something back, that would leave a log that is nobody's conversation: then the branch that is
recorded last is the log, and what it has not seen of others is a branch in history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from proxy.memory.archive import PlacedExchange, StoredMessage
from proxy.memory.history.branches import NO_SWITCH, switch_to
from proxy.memory.model import Commit, Position, WindowMove


def settled(
    commit: Commit, lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange]
) -> Commit:
    """``lines`` and ``exchanges`` are all that the session has now, ascending."""
    commit = _turned(commit, lines, exchanges)
    gone = set(commit.superseded)
    behind = _left_behind(commit, lines, _unseen(commit, exchanges))
    return replace(commit, superseded=(*commit.superseded, *(x for x in behind if x not in gone)))


def _turned(
    commit: Commit, lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange]
) -> Commit:
    """With what it goes on from back, if something else has taken its place; what nothing has taken
    the place of, a person has taken back."""
    follows = commit.exchange.follows or ""
    away = {line.card.id for line in lines if line.state != "active"}
    if follows not in away and not commit.activated:
        return commit
    switch = switch_to(lines, exchanges, follows, whole=False) or NO_SWITCH
    if not switch.superseded:
        return commit
    return replace(
        commit,
        superseded=_more(commit.superseded, switch.superseded, commit.activated),
        activated=_more(commit.activated, switch.activated, commit.superseded),
    )


def _more(ids: Sequence[str], others: Iterable[str], without: Sequence[str]) -> tuple[str, ...]:
    known = {*ids, *without}
    return (*ids, *(id for id in others if id not in known))


def _unseen(commit: Commit, exchanges: Sequence[PlacedExchange]) -> Sequence[PlacedExchange]:
    last = commit.seen.last if commit.seen else ""
    ids = [placed.exchange.id for placed in exchanges]
    return exchanges[ids.index(last) + 1 :] if last in ids else exchanges


def _left_behind(
    commit: Commit, lines: Sequence[StoredMessage], unseen: Sequence[PlacedExchange]
) -> Iterator[str]:
    """What goes on from something that has left the log, or has taken the place of the same."""
    if not (commit.superseded or commit.activated):
        return
    there = {line.card.id for line in lines}
    active = {line.card.id for line in lines if line.state == "active"}
    raced = not active.issuperset(there.intersection(commit.superseded))
    active = (active - set(commit.superseded)).union(commit.activated)
    for placed in unseen:
        follows = placed.exchange.follows
        beside = raced and follows == commit.exchange.follows
        if beside or (follows in there and follows not in active):
            own = active.intersection(placed.messages)
            active -= own
            yield from sorted(own)


def shown(
    commit: Commit,
    before: Sequence[str],
    lines: Sequence[StoredMessage],
    start: Position | None,
) -> Commit:
    """With a window that begins before what comes back beside what did ``before``; ``start`` is
    where it begins now."""
    back = set(commit.activated).difference(before)
    first = min((x.position, x.card.id) for x in lines if x.card.id in back) if back else None
    if start is None or first is None or start <= first[0]:
        return commit
    window = WindowMove(profile=commit.exchange.profile, start=first[1], anew=True)
    return replace(commit, window=window)
