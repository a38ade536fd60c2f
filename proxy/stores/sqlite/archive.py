"""Reading, deleting and moving sessions in the SQLite file, for the memory API.

Functions of a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sqlite3 import Connection
from typing import Any

import msgspec

from proxy.memory.archive import Details, Message, Page, PlacedExchange, Session, StoredMessage
from proxy.memory.model import LOG_START, Exchange, Position, SessionKey, State, message_id
from proxy.recall.index import Owner, Unindexed, after_mark, owner_of
from proxy.stores.common import codec
from proxy.stores.common.history import parse_message_id, read_cursor, sessions_cursor
from proxy.stores.sqlite import items as sqlite_items
from proxy.stores.sqlite import work as sqlite_work
from proxy.stores.sqlite.index import reading as index_reading
from proxy.stores.sqlite.index import writing as index_writing
from proxy.stores.sqlite.restore import cancel
from proxy.stores.sqlite.rows import (
    HAS_MESSAGES,
    ID,
    LIVE,
    STAGED,
    SUMMARY,
    find,
    page_in,
    remove,
    text_in,
)
from proxy.stores.sqlite.waste import clear_conflicting

_SESSION = f"""
SELECT s.session, s.owner, s.messages, s.tokens, s.created_at, s.last_active_at,
       s.title, s.metadata, s.ttl, s.system, s.system_tokens, s.next, s.last, x.profile, {SUMMARY},
       (SELECT json_group_object(profile, json_array(turn, seq)) FROM windows WHERE session = s.id)
FROM sessions s
LEFT JOIN exchanges x ON x.session = s.id AND x.id = s.last
WHERE s.tenant = :tenant AND {LIVE}
"""

_BODY_TEXT, _WIRE_TEXT = text_in("body"), text_in("wire")

_MESSAGES = f"""
SELECT seq, entry, active, coalesce({_WIRE_TEXT}, {_BODY_TEXT}) FROM messages
WHERE session = ({ID}) AND seq > ? AND active IN (?, ?) ORDER BY seq LIMIT ?
"""

_LINES = f"""
SELECT seq, entry, active, {_BODY_TEXT}, {_WIRE_TEXT} FROM messages
WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?
"""

_LINE = f"""
SELECT m.seq, m.entry, m.active, {text_in("m.body")}, {text_in("m.wire")} FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq = x.first + ?3
WHERE x.session = ?1 AND x.id = ?2 AND ?3 < x.size
"""

_RECORD = f"""
SELECT first, size, {text_in("record")}, usage FROM exchanges WHERE session = ? AND id = ?
"""

_EXCHANGES = f"""
SELECT x.id, x.first, {text_in("x.record")}, x.usage,
       (SELECT json_group_array(m.seq - x.first) FROM messages m WHERE m.session = x.session
            AND m.seq >= x.first AND m.seq < x.first + x.size)
FROM exchanges x WHERE x.session = ? AND x.first < ? AND {HAS_MESSAGES}
ORDER BY x.first DESC LIMIT ?
"""

_LAST = 2**63 - 1
"""A seq after all others."""

_windows = msgspec.json.Decoder(dict[str, Position])
_indexes = msgspec.json.Decoder(list[int])


# Reading


def session(connection: Connection, now: float, key: SessionKey) -> Session | None:
    row = connection.execute(
        f"{_SESSION} AND s.session = :session",
        {"tenant": key.tenant, "session": key.session, "now": now},
    ).fetchone()
    return _session(row) if row else None


def tenants(connection: Connection, now: float) -> list[str]:
    rows = connection.execute(
        f"SELECT DISTINCT s.tenant FROM sessions s WHERE {LIVE} ORDER BY s.tenant", {"now": now}
    )
    return [tenant for (tenant,) in rows if tenant != STAGED]


def sessions(
    connection: Connection, now: float, tenant: str, user: str | None, after: str | None, limit: int
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
    rows, more = page_in(connection.execute(statement, arguments), limit)
    page = tuple([_session(row) for row in rows])
    return Page(page, sessions_cursor(page[-1].last_active_at, page[-1].id) if more else None)


def messages(
    connection: Connection,
    now: float,
    key: SessionKey,
    states: Collection[State],
    after: int,
    limit: int,
) -> Page[Message]:
    wanted = [1 if state == "active" else 0 for state in states]
    if not wanted:
        return Page(())
    found = connection.execute(_MESSAGES, (*key, now, after, wanted[0], wanted[-1], limit + 1))
    rows, more = page_in(found, limit)
    cards = [entry.card for entry in codec.decode_entries([row[1] for row in rows])]
    page = tuple(
        Message(seq, card, "active" if active else "superseded", wire)
        for card, (seq, _, active, wire) in zip(cards, rows, strict=True)
    )
    return Page(page, str(page[-1].seq) if more else None)


def unindexed(
    connection: Connection, now: float, key: SessionKey, states: Collection[State], limit: int
) -> Unindexed | None:
    """See ``Index.unindexed``: one job instead of three, since each is handed to a thread."""
    found = session(connection, now, key)
    if found is None:
        return None
    lookup, _ = index_reading.lookup(
        connection, now, owner_of(key, found.user), (), 0, session=key.session
    )
    after = after_mark(lookup.mark)
    return Unindexed(found, lookup, messages(connection, now, key, states, after, limit))


def message(
    connection: Connection, now: float, key: SessionKey, message: str
) -> StoredMessage | None:
    place, session = parse_message_id(message), find(connection, key, now)
    rows = connection.execute(_LINE, (session, *place)).fetchall() if place else []
    return next(iter(_lines(rows)), None)


def lines(
    connection: Connection, now: float, key: SessionKey, after: int, limit: int
) -> Page[StoredMessage]:
    session = find(connection, key, now)
    rows, more = page_in(connection.execute(_LINES, (session, after, limit + 1)), limit)
    return Page(_lines(rows), str(rows[-1][0]) if more else None)


def _lines(rows: Sequence[Any]) -> tuple[StoredMessage, ...]:
    entries = codec.decode_entries([row[1] for row in rows])
    return tuple(
        StoredMessage(entry.position, entry.card, "active" if active else "superseded", body, wire)
        for entry, (_, _, active, body, wire) in zip(entries, rows, strict=True)
    )


def exchange(
    connection: Connection, now: float, key: SessionKey, exchange: str
) -> tuple[Exchange, Sequence[str]] | None:
    session = find(connection, key, now)
    row = connection.execute(_RECORD, (session, exchange)).fetchone()
    if row is None:
        return None
    first, size, record, usage = row
    places = connection.execute(
        "SELECT seq FROM messages WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq",
        (session, first, first + size),
    )
    ids = tuple(message_id(exchange, seq - first) for (seq,) in places)
    return codec.decode_exchange(record, usage), ids


def exchanges(
    connection: Connection, now: float, key: SessionKey, before: int | None, limit: int
) -> Page[PlacedExchange]:
    session = find(connection, key, now)
    last = _LAST if before is None else before
    rows = connection.execute(_EXCHANGES, (session, last, limit + 1)).fetchall()
    page = tuple(_placed(*row) for row in rows[:limit])
    return Page(page, str(page[-1].first) if len(rows) > limit else None)


def _placed(
    id: str, first: int, record: bytes, usage: bytes | None, indexes: str
) -> PlacedExchange:
    ids = tuple(message_id(id, index) for index in sorted(_indexes.decode(indexes)))
    return PlacedExchange(first, codec.decode_exchange(record, usage), ids)


def _session(row: Sequence[Any]) -> Session:
    id, user, messages, tokens, created_at, last_active_at, *details = row[:11]
    next, last, profile, summary, windows = row[11:]
    starts = _windows.decode(windows)
    return Session(
        id=id,
        user=user,
        messages=messages,
        tokens=tokens,
        window_start=starts.get(profile, LOG_START).seq,
        created_at=created_at,
        last_active_at=last_active_at,
        details=Details(*details),
        summary=codec.decode_summary(summary) if summary else None,
        end=next - 1,
        last=last,
        windows=starts,
    )


# Deleting, and moving to another tenant

# A session whose id the new tenant has too is not moved.
_FREE = """
tenant = :old AND (expires_at IS NULL OR expires_at > :now)
    AND session NOT IN (SELECT session FROM sessions WHERE tenant = :new)
"""


def delete(connection: Connection, now: float, key: SessionKey) -> bool:
    row = connection.execute(
        "SELECT id, owner, expires_at IS NULL OR expires_at > ? FROM sessions "
        "WHERE tenant = ? AND session = ?",
        (now, *key),
    ).fetchone()
    index_writing.drop(connection, Owner(key.tenant, session=key.session))
    connection.execute("DELETE FROM work WHERE tenant = ? AND session = ?", key)
    cancel(connection, key)
    if row is None:
        return False
    if row[1]:
        owner = Owner(key.tenant, user=row[1])
        index_writing.drop_session(connection, now, owner, key.session)
    remove(connection, row[0])
    return bool(row[2])


def move(connection: Connection, now: float, old: str, new: str) -> int:
    if old == new:
        return 0
    clear_conflicting(connection, now, old, new)
    tenants = {"old": old, "new": new, "now": now}
    users = connection.execute(
        f"SELECT DISTINCT owner FROM sessions WHERE owner IS NOT NULL AND {_FREE}", tenants
    ).fetchall()
    for (user,) in users:
        index_writing.drop(connection, Owner(new, user=user))
    index_writing.drop_tenant(connection, old)
    connection.execute("DELETE FROM work WHERE tenant = ?", (old,))
    sqlite_items.move(connection, now, old, new)
    sqlite_work.move_spent(connection, old, new)
    return connection.execute(f"UPDATE sessions SET tenant = :new WHERE {_FREE}", tenants).rowcount
