"""Removing sessions from the SQLite file, and handing them to another tenant."""

from __future__ import annotations

import sqlite3

from proxy.memory.model import SessionKey

PURGED_AT_ONCE = 2
"""Expired sessions that one commit removes at most, so that it does not wait long for them."""

_TABLES = ("messages", "exchanges", "windows", "keys")

# A session id that the new tenant has stays where it is.
_MOVE = """
UPDATE sessions SET tenant = :new
WHERE tenant = :old AND (expires_at IS NULL OR expires_at > :now)
    AND session NOT IN (SELECT session FROM sessions WHERE tenant = :new)
"""


def purge(connection: sqlite3.Connection, now: float, limit: int = PURGED_AT_ONCE) -> None:
    """Remove sessions that have expired, at most ``limit``; -1 is all."""
    expired = connection.execute(
        "SELECT id FROM sessions WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (session,) in expired:
        remove(connection, session)


def remove(connection: sqlite3.Connection, session: int) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def delete(connection: sqlite3.Connection, key: SessionKey, now: float) -> bool:
    row = connection.execute(
        "SELECT id, expires_at IS NULL OR expires_at > ? FROM sessions "
        "WHERE tenant = ? AND session = ?",
        (now, *key),
    ).fetchone()
    if row is None:
        return False
    remove(connection, row[0])
    return bool(row[1])


def move(connection: sqlite3.Connection, old: str, new: str, now: float) -> int:
    if old == new:
        return 0
    purge(connection, now, -1)
    return connection.execute(_MOVE, {"old": old, "new": new, "now": now}).rowcount
