"""Applies commits and amendments that wait in the spool to a snapshot.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from proxy.memory.model import (
    LOG_START,
    Amendment,
    Commit,
    Draft,
    Entry,
    Exchange,
    LoadOptions,
    Position,
    Snapshot,
    Summary,
)


def overlay(snapshot: Snapshot, commit: Commit, options: LoadOptions) -> Snapshot:
    """``snapshot`` with ``commit`` applied.  Sequence numbers of new entries are provisional.

    A commit that the store would refuse, as far as the snapshot shows, changes nothing.
    """
    same_key = (
        commit.idempotency_key is not None and commit.idempotency_key == options.idempotency_key
    )
    # What this is another attempt of: known only of the key that was asked for.
    attempt = snapshot.attempt if same_key else None
    if _is_refused(snapshot, commit, attempt):
        return snapshot
    known = _entries_by_id(snapshot, commit)
    there = {entry.card.id for entry in snapshot.log}
    gone = there & _superseded(snapshot, commit, attempt)
    added = {draft.card.id for draft in commit.drafts if draft.state == "active"}
    active = (there - gone).union(commit.activated, added) & known.keys()
    switched = _switched_positions(snapshot, commit, gone, there - gone)
    log = tuple(sorted((known[id] for id in active), key=lambda entry: entry.position))
    return replace(
        snapshot,
        exists=True,
        owner=snapshot.owner or commit.user,
        system=snapshot.system if commit.system is None else commit.system,
        system_tokens=snapshot.system_tokens if commit.system is None else commit.system_tokens,
        start=_start(snapshot, commit, known, options),
        log=log,
        bodies={**snapshot.bodies, **{d.card.id: d.body for d in commit.drafts}},
        alternates=_alternates(snapshot, known, active),
        last=commit.exchange,
        attempt=commit.exchange if same_key else snapshot.attempt,
        messages=snapshot.messages + len(log) - len(snapshot.log),
        tokens=snapshot.tokens + _tokens(log) - _tokens(snapshot.log),
        summary=_summary(snapshot, switched),
        changes=snapshot.changes + len(switched),
    )


def with_amendment(snapshot: Snapshot, amendment: Amendment) -> Snapshot:
    """``snapshot`` with the answer that ``amendment`` edits."""
    edited = amendment.edited
    old = next((e for e in snapshot.log if edited and e.card.id == edited.card.id), None)
    if edited is None or old is None:
        return snapshot
    new = replace(old, card=edited.card)
    return replace(
        snapshot,
        log=tuple(new if entry is old else entry for entry in snapshot.log),
        bodies={**snapshot.bodies, new.card.id: edited.body},
        tokens=snapshot.tokens + new.card.tokens - old.card.tokens,
        summary=_summary(snapshot, [old.position]),
        changes=snapshot.changes + 1,
    )


def _is_refused(snapshot: Snapshot, commit: Commit, attempt: Exchange | None) -> bool:
    """Whether it is a duplicate, of another user's session, or a retry that comes too late."""
    id, last = commit.exchange.id, snapshot.last
    if last is not None and last.id == id or any(e.card.exchange == id for e in snapshot.log):
        return True
    if snapshot.owner and commit.user and snapshot.owner != commit.user:
        return True
    if attempt is None:
        return False
    followed = last is not None and last.id != attempt.id
    return followed or attempt.started_at > commit.exchange.started_at


def _entries_by_id(snapshot: Snapshot, commit: Commit) -> dict[str, Entry]:
    """All entries of the snapshot by id, and the new ones after them."""
    known = {entry.card.id: entry for entry in (*snapshot.log, *snapshot.inactive_choices)}
    seqs = [entry.position.seq for entry in known.values()]
    # Behind all that the summary has seen: of what is new it covers nothing.
    seen = snapshot.summary.seen if snapshot.summary else 0
    last = max([*seqs, (snapshot.start or LOG_START).seq, seen])
    for seq, draft in enumerate(commit.drafts, last + 1):
        known[draft.card.id] = Entry(Position(_turn(draft, known, seq), seq), draft.card)
    return known


def _turn(draft: Draft, known: Mapping[str, Entry], seq: int) -> int:
    return known[draft.turn].position.turn if draft.turn in known else seq


def _superseded(snapshot: Snapshot, commit: Commit, attempt: Exchange | None) -> set[str]:
    """Ids of the messages that the commit supersedes; may have ids that are not in the log."""
    gone = set(commit.superseded)
    if attempt is not None:
        gone.update(e.card.id for e in snapshot.log if e.card.exchange == attempt.id)
    return gone


def _switched_positions(
    snapshot: Snapshot, commit: Commit, gone: set[str], kept: set[str]
) -> list[Position]:
    """Positions of messages that leave the log or come back; twice for one that does both."""
    left = [entry.position for entry in snapshot.log if entry.card.id in gone]
    back = set(commit.activated) - kept
    return left + [
        e.position for e in (*snapshot.log, *snapshot.inactive_choices) if e.card.id in back
    ]


def _summary(snapshot: Snapshot, switched: Sequence[Position]) -> Summary | None:
    """The summary if it covers none of these positions, else None: others are not loaded."""
    summary = snapshot.summary
    if summary is None or any(summary.covers(position) for position in switched):
        return None
    return summary


def _alternates(
    snapshot: Snapshot, known: Mapping[str, Entry], active: set[str]
) -> Mapping[str, tuple[Entry, ...]]:
    """The inactive choices of replies with several choices."""
    several = set(snapshot.alternates)
    several.update(e.card.exchange for e in known.values() if e.card.choice)
    idle: defaultdict[str, tuple[Entry, ...]] = defaultdict(tuple)
    for id, entry in known.items():
        if id not in active and entry.card.origin == "response" and entry.card.exchange in several:
            idle[entry.card.exchange] += (entry,)
    return dict(idle)


def _start(
    snapshot: Snapshot, commit: Commit, known: Mapping[str, Entry], options: LoadOptions
) -> Position | None:
    move = commit.window
    if move is None or move.profile != options.profile or move.start not in known:
        return snapshot.start
    start = known[move.start].position
    return start if move.may_move_back else max(start, snapshot.start or LOG_START)


def _tokens(log: tuple[Entry, ...]) -> int:
    return sum(entry.card.tokens for entry in log)
