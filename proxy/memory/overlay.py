"""A snapshot as it will be once a commit that still waits in the spool is carried out.  Pure."""

from __future__ import annotations

from dataclasses import replace

from proxy.memory.model import BEGINNING, Ask, Commit, Draft, Entry, Exchange, Position, Snapshot


def overlay(snapshot: Snapshot, commit: Commit, ask: Ask) -> Snapshot:
    """``snapshot`` with ``commit`` applied.  Sequence numbers of new entries are provisional."""
    if any(entry.card.exchange == commit.exchange.id for entry in snapshot.log):
        return snapshot  # replayed between our two looks
    if snapshot.owner and commit.user and snapshot.owner != commit.user:
        return snapshot
    positions = _placed(snapshot, commit)
    gone = set(commit.superseded)
    kept = [entry for entry in snapshot.log if entry.card.id not in gone]
    back = [e for e in _inactive(snapshot) if e.card.id in commit.activated]
    new = [Entry(positions[d.card.id], d.card) for d in commit.drafts if d.state == "active"]
    log = tuple(sorted((*kept, *back, *new), key=lambda entry: entry.position))
    return replace(
        snapshot,
        exists=True,
        owner=snapshot.owner or commit.user,
        system=snapshot.system if commit.system is None else commit.system,
        system_tokens=snapshot.system_tokens if commit.system is None else commit.system_tokens,
        start=_start(snapshot, commit, positions, ask),
        log=log,
        bodies={**snapshot.bodies, **{d.card.id: d.body for d in commit.drafts}},
        last=commit.exchange,
        attempt=_attempt(snapshot, commit, ask),
        messages=snapshot.messages + len(log) - len(snapshot.log),
        tokens=snapshot.tokens + _tokens(log) - _tokens(snapshot.log),
    )


def _tokens(log: tuple[Entry, ...]) -> int:
    return sum(entry.card.tokens for entry in log)


def _inactive(snapshot: Snapshot) -> list[Entry]:
    return [entry for group in snapshot.alternates.values() for entry in group]


def _placed(snapshot: Snapshot, commit: Commit) -> dict[str, Position]:
    """Where every message is, the new ones behind all that the snapshot shows."""
    positions = {entry.card.id: entry.position for entry in snapshot.log}
    seq = max((position.seq for position in positions.values()), default=0)
    for draft in commit.drafts:
        seq += 1
        positions[draft.card.id] = Position(_turn(draft, positions, seq), seq)
    return positions


def _turn(draft: Draft, positions: dict[str, Position], seq: int) -> int:
    return positions[draft.turn].turn if draft.turn in positions else seq


def _start(
    snapshot: Snapshot, commit: Commit, positions: dict[str, Position], ask: Ask
) -> Position | None:
    move = commit.window
    if move is None or move.profile != ask.profile or move.start not in positions:
        return snapshot.start
    start = positions[move.start]
    return start if move.anew else max(start, snapshot.start or BEGINNING)


def _attempt(snapshot: Snapshot, commit: Commit, ask: Ask) -> Exchange | None:
    same = commit.idempotency_key is not None and commit.idempotency_key == ask.idempotency_key
    return commit.exchange if same else snapshot.attempt
