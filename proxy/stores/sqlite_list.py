"""What people read from the SQLite file: sessions, messages, exchanges."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

from proxy.memory.archive import Message, Page, Session
from proxy.memory.model import Exchange, SessionKey, State
from proxy.stores import codec
from proxy.stores.places import read_cursor, sessions_cursor
from proxy.stores.sqlite_read import LIVE, SUMMARY

_SESSION = f"""
SELECT s.session, s.owner, s.messages, s.tokens, s.system, coalesce(w.seq, 0), s.ttl,
       s.created_at, s.last_active_at, {SUMMARY}
FROM sessions s
LEFT JOIN exchanges x ON x.session = s.id AND x.id = s.last
LEFT JOIN windows w ON w.session = s.id AND w.profile = x.profile
WHERE s.tenant = :tenant AND {LIVE}
"""

_ID = f"SELECT s.id FROM sessions s WHERE s.tenant = ? AND s.session = ? AND {LIVE}".replace(
    ":now", "?"
)

_MESSAGES = """
SELECT seq, entry, active, coalesce(wire, body) FROM messages
WHERE session = ? AND seq > ? AND active IN (?, ?) ORDER BY seq LIMIT ?
"""


def session(connection: sqlite3.Connection, key: SessionKey, now: float) -> Session | None:
    row = connection.execute(
        f"{_SESSION} AND s.session = :session",
        {"tenant": key.tenant, "session": key.session, "now": now},
    ).fetchone()
    return _session(row) if row else None


def tenants(connection: sqlite3.Connection, now: float) -> list[str]:
    rows = connection.execute(
        f"SELECT DISTINCT s.tenant FROM sessions s WHERE {LIVE} ORDER BY s.tenant", {"now": now}
    )
    return [tenant for (tenant,) in rows]


def sessions(
    connection: sqlite3.Connection,
    tenant: str,
    user: str | None,
    after: str | None,
    limit: int,
    now: float,
) -> Page[Session]:
    """Newest activity first.  Raises ValueError for a cursor that is none."""
    statement = _SESSION
    at, name = read_cursor(after) if after is not None else (0.0, "")
    if user is not None:
        statement += " AND s.owner = :user"
    if after is not None:
        statement += " AND (s.last_active_at, s.session) < (:at, :name)"
    statement += " ORDER BY s.last_active_at DESC, s.session DESC LIMIT :limit"
    arguments = {
        "tenant": tenant,
        "user": user,
        "at": at,
        "name": name,
        "limit": limit + 1,
        "now": now,
    }
    rows = [_session(row) for row in connection.execute(statement, arguments)]
    page = tuple(rows[:limit])
    more = len(rows) > limit
    return Page(page, sessions_cursor(page[-1].last_active_at, page[-1].id) if more else None)


def messages(
    connection: sqlite3.Connection,
    key: SessionKey,
    states: Collection[State],
    after: int,
    limit: int,
    now: float,
) -> Page[Message]:
    wanted = [1 if state == "active" else 0 for state in states]
    if not wanted:
        return Page(())
    rows = connection.execute(
        _MESSAGES, (find(connection, key, now), after, wanted[0], wanted[-1], limit + 1)
    ).fetchall()
    cards = [entry.card for entry in codec.decode_entries([row[1] for row in rows])]
    page = tuple(
        Message(seq, card, "active" if active else "superseded", wire)
        for card, (seq, _, active, wire) in zip(cards, rows, strict=True)
    )[:limit]
    return Page(page, str(page[-1].seq) if len(rows) > limit else None)


def exchange(
    connection: sqlite3.Connection, key: SessionKey, id: str, now: float
) -> tuple[Exchange, Sequence[str]] | None:
    session = find(connection, key, now)
    row = connection.execute(
        "SELECT first, size, record, usage FROM exchanges WHERE session = ? AND id = ?",
        (session, id),
    ).fetchone()
    if row is None:
        return None
    first, size, record, usage = row
    places = connection.execute(
        "SELECT seq FROM messages WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq",
        (session, first, first + size),
    )
    ids = tuple(f"{id}.{seq - first}" for (seq,) in places)
    return codec.decode_exchange(record, usage), ids


def _session(row: Sequence[Any]) -> Session:
    values = (*row[:-1], codec.decode_summary(row[-1]) if row[-1] else None)
    return Session(*values)


def find(connection: sqlite3.Connection, key: SessionKey, now: float) -> int | None:
    """The row id of a session that has not expired."""
    row = connection.execute(_ID, (key.tenant, key.session, now)).fetchone()
    return row[0] if row else None
