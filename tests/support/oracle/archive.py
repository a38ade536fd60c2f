"""What people see of a session and change in it: what the contract means, in the plainest words."""

from __future__ import annotations

from collections.abc import Collection

from proxy.memory.archive import (
    Message,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.model import MAX_VERSIONS, State
from proxy.stores.common.history import SeqSpan, counts_of
from tests.support.oracle.session import Record, SessionState, wire_of

# Reading


def describe(id: str, state: SessionState) -> Session:
    return Session(
        id=id,
        user=state.owner,
        messages=len(state.log),
        tokens=state.tokens,
        window_start=state.window_start,
        created_at=state.created_at,
        last_active_at=state.last_active_at,
        details=state.details,
        summary=state.summary,
        end=state.next - 1,
        last=state.last,
        windows=dict(state.windows),
    )


def lines(state: SessionState, after: int) -> list[StoredMessage]:
    """The messages behind a seq, by seq."""
    return [state.lines[seq] for seq in sorted(seq for seq in state.lines if seq > after)]


def messages(state: SessionState, states: Collection[State], after: int) -> list[Message]:
    found = (line for line in lines(state, after) if line.state in states)
    return [Message(x.position.seq, x.card, x.state, wire_of(x)) for x in found]


def exchanges(state: SessionState, before: int | None) -> list[PlacedExchange]:
    """Those that have messages, the newest first."""
    placed = (
        PlacedExchange(x.span.first, x.value, state.ids(id)) for id, x in state.records.items()
    )
    found = [x for x in placed if x.messages and (before is None or x.first < before)]
    return sorted(found, key=lambda x: x.first, reverse=True)


# Revising


def revise(state: SessionState, revision: Revision) -> bool:
    if not _is_as_it_was(state, revision):
        return False
    for edited in revision.edited:
        line = state.find(edited.card.id)
        assert line is not None  # looked at before
        state.edit(line, edited)
    gone = _remove(state, revision.removed)
    superseded = state.switch(revision.superseded, "superseded")
    back = state.switch(revision.activated, "active")
    if gone or superseded or back:
        state.windows.clear()
    state.details = revision.details or state.details
    return True


def _is_as_it_was(state: SessionState, revision: Revision) -> bool:
    if revision.expected_details not in (None, state.details):
        return False
    if revision.log_size not in (None, (state.next - 1, len(state.log), state.tokens)):
        return False
    found = [(edited.replaced_wire, state.find(edited.card.id)) for edited in revision.edited]
    return all(line is not None and wire_of(line) == was for was, line in found)


def _remove(state: SessionState, ids: Collection[str]) -> bool:
    """Whether a message has gone."""
    found = {line.position.seq: line for line in map(state.find, ids) if line}
    for seq, line in found.items():
        del state.lines[seq]
        state.changed(line.position)
    for exchange in {line.card.exchange for line in found.values()}:
        if not state.lines_of(exchange):
            _forget(state, exchange)
    return bool(found)


def _forget(state: SessionState, exchange: str) -> None:
    """The record of an exchange, the keys that name it, and that it was the last one."""
    del state.records[exchange]
    state.keys = {key: id for key, id in state.keys.items() if id != exchange}
    if state.last == exchange:
        newest = exchanges(state, None)
        state.last = newest[0].exchange.id if newest else None


# Restoring


def restore(archived: SessionArchive) -> SessionState:
    session, known = archived.session, counts_of(archived)
    return SessionState(
        created_at=session.created_at,
        last_active_at=session.last_active_at,
        owner=session.user or None,
        details=session.details,
        next=known.next,
        last=known.last,
        lines={line.position.seq: line for line in archived.lines},
        records={
            placed.exchange.id: Record(placed.exchange, SeqSpan(placed.first, placed.exchange.size))
            for placed in archived.exchanges
        },
        windows=dict(session.windows),
        versions=list(archived.summaries[:MAX_VERSIONS]),
    )
