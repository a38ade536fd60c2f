"""The versions of a session's summary in the SQLite file: functions of a connection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sqlite3 import Connection

from msgspec.structs import replace

from proxy.memory.model import MAX_VERSIONS, Position, SessionKey, Summary
from proxy.stores.common import codec
from proxy.stores.common.rules import session_subject
from proxy.stores.sqlite.marks import is_erased
from proxy.stores.sqlite.rows import Head, find, find_head

_VERSIONS = "SELECT data FROM summaries WHERE session = ? ORDER BY version DESC"

_STALL = "UPDATE sessions SET stalled = ? WHERE id = ?"

_ENTRY = "SELECT entry FROM messages WHERE session = ? AND seq = ?"

_BEGAN = "SELECT created_at FROM sessions WHERE id = ?"


def versions(connection: Connection, now: float, key: SessionKey) -> Sequence[Summary]:
    """All stored versions, newest first."""
    return _versions(connection, find(connection, key, now))


def put(
    connection: Connection,
    now: float,
    key: SessionKey,
    summary: Summary,
    after: int,
    changes: int | None,
    since: float | None = None,
    began: float | None = None,
    seen: str | None = None,
) -> bool:
    head = _head_of(connection, now, key, began)
    if head is None or is_erased(connection, now, [session_subject(key)], since):
        return False
    if changes not in (None, head.changes) or _in_force(connection, head) != after:
        return False
    if seen not in (None, _id_at(connection, head, summary.seen)):
        return False
    connection.execute(
        "INSERT INTO summaries (session, version, data) VALUES (?, ?, ?)",
        (head.id, after + 1, codec.encode(replace(summary, version=after + 1))),
    )
    for old in _versions(connection, head.id)[MAX_VERSIONS:]:
        _remove(connection, head.id, old)
    connection.execute(_STALL, (False, head.id))
    return True


def drop(connection: Connection, now: float, key: SessionKey) -> bool:
    head = find_head(connection, key, now)
    if head is None:
        return False
    connection.execute(_STALL, (False, head.id))
    gone = connection.execute("DELETE FROM summaries WHERE session = ?", (head.id,)).rowcount > 0
    connection.execute("UPDATE sessions SET changes = changes + ? WHERE id = ?", (gone, head.id))
    return gone


def mark_stalled(
    connection: Connection, now: float, key: SessionKey, began: float | None = None
) -> None:
    head = _head_of(connection, now, key, began)
    if head is not None:
        connection.execute(_STALL, (True, head.id))


def drop_covering(connection: Connection, session: int, positions: Collection[Position]) -> None:
    """Remove the versions that cover one of these positions."""
    for version in _versions(connection, session) if positions else ():
        if any(version.covers(position) for position in positions):
            _remove(connection, session, version)


def _head_of(
    connection: Connection, now: float, key: SessionKey, began: float | None
) -> Head | None:
    """The head of the session, if it was created at ``began`` (None: any time)."""
    head = find_head(connection, key, now)
    if head is None or began is None:
        return head
    (created_at,) = connection.execute(_BEGAN, (head.id,)).fetchone()
    return head if created_at == began else None


def _id_at(connection: Connection, head: Head, seq: int) -> str | None:
    row = connection.execute(_ENTRY, (head.id, seq)).fetchone()
    return codec.decode_entries(row)[0].card.id if row else None


def _versions(connection: Connection, session: int | None) -> Sequence[Summary]:
    return [codec.decode_summary(data) for (data,) in connection.execute(_VERSIONS, (session,))]


def _in_force(connection: Connection, head: Head) -> int:
    row = connection.execute("SELECT max(version) FROM summaries WHERE session = ?", (head.id,))
    return row.fetchone()[0] or 0


def _remove(connection: Connection, session: int, summary: Summary) -> None:
    connection.execute(
        "DELETE FROM summaries WHERE session = ? AND version = ?", (session, summary.version)
    )
