"""Revisions of a session in the SQLite file: edits, removals, states of messages, details.

Functions of a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection

from proxy.memory.archive import Details, LogSize, Revision
from proxy.memory.model import MessageEdit, Position, SessionKey
from proxy.recall.index import owner_of
from proxy.stores.common import codec
from proxy.stores.common.history import MessagePlace, parse_message_id, parse_message_ids
from proxy.stores.sqlite import summaries as sqlite_summaries
from proxy.stores.sqlite.index import writing as index_writing
from proxy.stores.sqlite.rows import (
    HAS_MESSAGES,
    Head,
    find_head,
    find_message,
    read_details,
    save_details,
    save_head,
    set_active,
    store_text,
    text_in,
)

_WIRE = f"""
SELECT coalesce({text_in("wire")}, {text_in("body")}) FROM messages WHERE session = ? AND seq = ?
"""

_EDIT = """
UPDATE messages SET tokens = ?, entry = ?, body = ?, wire = ? WHERE session = ? AND seq = ?
"""

_LEFT = """
SELECT m.entry FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq >= x.first AND m.seq < x.first + x.size
WHERE x.session = ? AND x.id = ?
"""

_NEWEST = f"""
SELECT x.id FROM exchanges x WHERE x.session = ? AND {HAS_MESSAGES} ORDER BY x.first DESC LIMIT 1
"""


def revise(connection: Connection, now: float, key: SessionKey, revision: Revision) -> bool:
    head = find_head(connection, key, now)
    if head is None or not _is_as_it_was(connection, head, revision):
        return False
    edited = [_edit(connection, head, each) for each in revision.edited]
    moved = [
        *_remove(connection, head, parse_message_ids(revision.removed)),
        *set_active(connection, head, parse_message_ids(revision.superseded), active=False),
        *set_active(connection, head, parse_message_ids(revision.activated), active=True),
    ]
    if moved:
        connection.execute("DELETE FROM windows WHERE session = ?", (head.id,))
    sqlite_summaries.drop_covering(connection, head.id, {*edited, *moved})
    if revision.details is not None:
        _save_details(connection, head, revision.details, now)
        index_writing.set_life(connection, now, owner_of(key, head.owner), head.ttl)
    save_head(connection, head)
    return True


def _is_as_it_was(connection: Connection, head: Head, revision: Revision) -> bool:
    if revision.expected_details not in (None, read_details(connection, head.id)):
        return False
    if revision.log_size not in (None, LogSize(head.next - 1, head.messages, head.tokens)):
        return False
    return all(
        _wire(connection, head, each.card.id) == each.replaced_wire for each in revision.edited
    )


def edit_answer(connection: Connection, head: Head, edited: MessageEdit) -> int | None:
    """Edit a message; its seq, or None, and no change, if it is not as ``edited.replaced_wire``
    says."""
    if _wire(connection, head, edited.card.id) != edited.replaced_wire:
        return None
    place = _edit(connection, head, edited)
    sqlite_summaries.drop_covering(connection, head.id, {place})
    return place.seq


def _wire(connection: Connection, head: Head, message: str) -> bytes | None:
    """The JSON of a message as it came, None if there is no such message."""
    found = find_message(connection, head.id, parse_message_id(message))
    row = connection.execute(_WIRE, (head.id, found[1])).fetchone() if found else None
    return row[0] if row else None


def _edit(connection: Connection, head: Head, edited: MessageEdit) -> Position:
    """Edit a message; its position."""
    found = find_message(connection, head.id, parse_message_id(edited.card.id))
    assert found is not None  # looked at before
    turn, seq, tokens, active = found
    entry = codec.encode_entry(turn, seq, edited.card)
    texts = (store_text(connection, edited.body), store_text(connection, edited.wire))
    row = (edited.card.tokens, entry, *texts, head.id, seq)
    connection.execute(_EDIT, row)
    head.tokens += edited.card.tokens - tokens if active else 0
    head.changes += 1
    _update_exchange(connection, head, edited.card.exchange)
    return Position(turn, seq)


def _remove(connection: Connection, head: Head, places: Iterable[MessagePlace]) -> list[Position]:
    """Remove messages; the positions of those that existed."""
    removed: dict[Position, str] = {}
    for place in places:
        found = find_message(connection, head.id, place)
        if found is None:
            continue
        turn, seq, tokens, active = found
        connection.execute("DELETE FROM messages WHERE session = ? AND seq = ?", (head.id, seq))
        head.messages -= active
        head.tokens -= tokens if active else 0
        removed[Position(turn, seq)] = place.exchange
    head.changes += len(removed)
    for exchange in set(removed.values()):
        _update_exchange(connection, head, exchange)
    return list(removed)


def _update_exchange(connection: Connection, head: Head, exchange: str) -> None:
    """After a change of messages: update whether their exchange has choices, or delete it if it has
    no messages any more."""
    rows = connection.execute(_LEFT, (head.id, exchange)).fetchall()
    entries = codec.decode_entries([entry for (entry,) in rows])
    if entries:
        connection.execute(
            "UPDATE exchanges SET choices = ? WHERE session = ? AND id = ?",
            (codec.has_choices(entry.card for entry in entries), head.id, exchange),
        )
        return
    place = (head.id, exchange)
    connection.execute("DELETE FROM exchanges WHERE session = ? AND id = ?", place)
    connection.execute("DELETE FROM keys WHERE session = ? AND exchange = ?", place)
    if head.last == exchange:
        newest = connection.execute(_NEWEST, (head.id,)).fetchone()
        head.last = newest[0] if newest else None


def _save_details(connection: Connection, head: Head, details: Details, now: float) -> None:
    save_details(connection, head.id, details)
    if details.ttl != head.ttl:
        head.ttl = details.ttl
        head.expires_at = now + details.ttl if details.ttl else None
