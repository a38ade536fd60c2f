"""What people read from the SQLite file: sessions, messages, exchanges."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from proxy.memory.archive import Details, Line, Message, Page, Placed, Session
from proxy.memory.model import BEGINNING, Exchange, Position, SessionKey, State, message_id
from proxy.stores import codec
from proxy.stores.places import locate, read_cursor, sessions_cursor
from proxy.stores.sqlite_head import STAGED
from proxy.stores.sqlite_read import HAS_MESSAGES, LIVE, SUMMARY

_SESSION = f"""
SELECT s.session, s.owner, s.messages, s.tokens, s.created_at, s.last_active_at,
       s.title, s.metadata, s.ttl, s.system, s.system_tokens, s.next, s.last, x.profile, {SUMMARY},
       (SELECT json_group_object(profile, json_array(turn, seq)) FROM windows WHERE session = s.id)
FROM sessions s
LEFT JOIN exchanges x ON x.session = s.id AND x.id = s.last
WHERE s.tenant = :tenant AND {LIVE}
"""

_ID = f"SELECT s.id FROM sessions s WHERE s.tenant = ? AND s.session = ? AND {LIVE}".replace(
    ":now", "?"
)

_MESSAGES = """
SELECT seq, entry, active, coalesce(wire, body) FROM messages
WHERE session = ? AND seq > ? AND active IN (?, ?) ORDER BY seq LIMIT ?
"""

_LINES = """
SELECT entry, active, body, wire FROM messages WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?
"""

_LINE = """
SELECT m.entry, m.active, m.body, m.wire FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq = x.first + ?3
WHERE x.session = ?1 AND x.id = ?2 AND ?3 < x.size
"""

_EXCHANGES = f"""
SELECT x.id, x.first, x.record, x.usage,
       (SELECT json_group_array(m.seq - x.first) FROM messages m WHERE m.session = x.session
            AND m.seq >= x.first AND m.seq < x.first + x.size)
FROM exchanges x WHERE x.session = ? AND x.first < ? AND {HAS_MESSAGES}
ORDER BY x.first DESC LIMIT ?
"""

_LAST = 2**63 - 1
"""Behind every place."""

_windows = msgspec.json.Decoder(dict[str, Position])
_indexes = msgspec.json.Decoder(list[int])


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
    return [tenant for (tenant,) in rows if tenant != STAGED]


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


def message(connection: sqlite3.Connection, key: SessionKey, id: str, now: float) -> Line | None:
    place, session = locate(id), find(connection, key, now)
    rows = connection.execute(_LINE, (session, *place)).fetchall() if place else []
    return next(iter(_lines(rows)), None)


def lines(
    connection: sqlite3.Connection, key: SessionKey, after: int, limit: int, now: float
) -> Page[Line]:
    session = find(connection, key, now)
    rows = connection.execute(_LINES, (session, after, limit + 1)).fetchall()
    page = _lines(rows[:limit])
    return Page(page, str(page[-1].position.seq) if len(rows) > limit else None)


def _lines(rows: Sequence[Any]) -> tuple[Line, ...]:
    entries = codec.decode_entries([row[0] for row in rows])
    return tuple(
        Line(*entry, "active" if active else "superseded", body, wire)
        for entry, (_, active, body, wire) in zip(entries, rows, strict=True)
    )


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
    ids = tuple(message_id(id, seq - first) for (seq,) in places)
    return codec.decode_exchange(record, usage), ids


def exchanges(
    connection: sqlite3.Connection, key: SessionKey, before: int | None, limit: int, now: float
) -> Page[Placed]:
    session = find(connection, key, now)
    last = _LAST if before is None else before
    rows = connection.execute(_EXCHANGES, (session, last, limit + 1)).fetchall()
    page = tuple(_placed(*row) for row in rows[:limit])
    return Page(page, str(page[-1].first) if len(rows) > limit else None)


def _placed(id: str, first: int, record: bytes, usage: bytes | None, indexes: str) -> Placed:
    ids = tuple(message_id(id, index) for index in sorted(_indexes.decode(indexes)))
    return Placed(first, codec.decode_exchange(record, usage), ids)


def _session(row: Sequence[Any]) -> Session:
    id, user, messages, tokens, created_at, last_active_at, *details = row[:11]
    next, last, profile, summary, windows = row[11:]
    starts = _windows.decode(windows)
    return Session(
        id=id,
        user=user,
        messages=messages,
        tokens=tokens,
        window_start=starts.get(profile, BEGINNING).seq,
        created_at=created_at,
        last_active_at=last_active_at,
        details=Details(*details),
        summary=codec.decode_summary(summary) if summary else None,
        end=next - 1,
        last=last,
        windows=starts,
    )


def find(connection: sqlite3.Connection, key: SessionKey, now: float) -> int | None:
    """The row id of a session that has not expired."""
    row = connection.execute(_ID, (key.tenant, key.session, now)).fetchone()
    return row[0] if row else None
