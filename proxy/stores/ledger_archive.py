"""What people see of a ledger and change in it: what the contract means, in the plainest words."""

from __future__ import annotations

from collections.abc import Collection

from proxy.memory.archive import Archived, Edited, Line, Message, Placed, Revision, Session
from proxy.memory.model import State
from proxy.memory.summary import MOST_VERSIONS
from proxy.stores.ledger import Ledger, Record
from proxy.stores.places import Span
from proxy.stores.restoring import restored

# Reading


def describe(id: str, ledger: Ledger) -> Session:
    return Session(
        id=id,
        user=ledger.owner,
        messages=len(ledger.log),
        tokens=ledger.tokens,
        window_start=ledger.window_start,
        created_at=ledger.created_at,
        last_active_at=ledger.last_active_at,
        details=ledger.details,
        summary=ledger.summary,
        end=ledger.next - 1,
        last=ledger.last,
        windows=dict(ledger.windows),
    )


def lines(ledger: Ledger, after: int) -> list[Line]:
    """The messages behind a seq, by seq."""
    return [ledger.lines[seq] for seq in sorted(seq for seq in ledger.lines if seq > after)]


def messages(ledger: Ledger, states: Collection[State], after: int) -> list[Message]:
    found = (line for line in lines(ledger, after) if line.state in states)
    return [Message(x.position.seq, x.card, x.state, _wire(x)) for x in found]


def exchanges(ledger: Ledger, before: int | None) -> list[Placed]:
    """Those that have messages, the newest first."""
    placed = (Placed(x.span.first, x.value, ledger.ids(id)) for id, x in ledger.records.items())
    found = [x for x in placed if x.messages and (before is None or x.first < before)]
    return sorted(found, key=lambda x: x.first, reverse=True)


def _wire(line: Line) -> bytes:
    return line.body if line.wire is None else line.wire


# Revising


def revise(ledger: Ledger, revision: Revision) -> bool:
    if not _is_as_it_was(ledger, revision):
        return False
    for edited in revision.edited:
        _edit(ledger, edited)
    gone = _remove(ledger, revision.removed)
    superseded = ledger.switch(revision.superseded, "superseded")
    back = ledger.switch(revision.activated, "active")
    if gone or superseded or back:
        ledger.windows.clear()
    ledger.details = revision.details or ledger.details
    return True


def _is_as_it_was(ledger: Ledger, revision: Revision) -> bool:
    if revision.was not in (None, ledger.details):
        return False
    found = [(edited.was, ledger.find(edited.card.id)) for edited in revision.edited]
    return all(line is not None and _wire(line) == was for was, line in found)


def _edit(ledger: Ledger, edited: Edited) -> None:
    line = ledger.find(edited.card.id)
    assert line is not None  # looked at before
    new = line._replace(card=edited.card, body=edited.body, wire=edited.wire)
    ledger.lines[line.position.seq] = new
    ledger.changed(line.position)


def _remove(ledger: Ledger, ids: Collection[str]) -> bool:
    """Whether a message has gone."""
    found = {line.position.seq: line for line in map(ledger.find, ids) if line}
    for seq, line in found.items():
        del ledger.lines[seq]
        ledger.changed(line.position)
    for exchange in {line.card.exchange for line in found.values()}:
        if not ledger.lines_of(exchange):
            _forget(ledger, exchange)
    return bool(found)


def _forget(ledger: Ledger, exchange: str) -> None:
    """The record of an exchange, the keys that name it, and that it was the last one."""
    del ledger.records[exchange]
    ledger.keys = {key: id for key, id in ledger.keys.items() if id != exchange}
    if ledger.last == exchange:
        newest = exchanges(ledger, None)
        ledger.last = newest[0].exchange.id if newest else None


# Restoring


def restore(archived: Archived) -> Ledger:
    session, known = archived.session, restored(archived)
    return Ledger(
        created_at=session.created_at,
        last_active_at=session.last_active_at,
        owner=session.user or None,
        details=session.details,
        next=known.next,
        last=known.last,
        lines={line.position.seq: line for line in archived.lines},
        records={
            placed.exchange.id: Record(placed.exchange, Span(placed.first, placed.exchange.size))
            for placed in archived.exchanges
        },
        windows=dict(session.windows),
        versions=list(archived.summaries[:MOST_VERSIONS]),
    )
