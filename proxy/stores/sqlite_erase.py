"""Removing sessions from the SQLite file, and handing them to another tenant."""

from __future__ import annotations

import sqlite3

from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.stores import sqlite_index, sqlite_items, sqlite_marks, sqlite_usage
from proxy.stores.sqlite_waste import SWEPT_AT_ONCE, discard_expired, sweep

PURGED_AT_ONCE = 2
"""Of what has expired, sessions and the like, a commit removes so many, so as not to wait long."""

_TABLES = ("messages", "exchanges", "windows", "keys", "summaries")

# A session id that the new tenant has stays where it is.
_FREE = """
tenant = :old AND (expires_at IS NULL OR expires_at > :now)
    AND session NOT IN (SELECT session FROM sessions WHERE tenant = :new)
"""


def purge(connection: sqlite3.Connection, now: float, limit: int = PURGED_AT_ONCE) -> None:
    """Remove what has expired, at most ``limit`` of each kind; -1 is all."""
    expired = connection.execute(
        "SELECT id FROM sessions WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (session,) in expired:
        remove(connection, session)
    discard_expired(connection, now, limit)
    sqlite_items.discard_expired(connection, now, limit)
    sqlite_marks.purge(connection, now, limit)
    sweep(connection, SWEPT_AT_ONCE)


def remove(connection: sqlite3.Connection, session: int) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def delete(connection: sqlite3.Connection, key: SessionKey, now: float) -> bool:
    row = connection.execute(
        "SELECT id, owner, expires_at IS NULL OR expires_at > ? FROM sessions "
        "WHERE tenant = ? AND session = ?",
        (now, *key),
    ).fetchone()
    sqlite_index.drop(connection, Owner(key.tenant, session=key.session))
    connection.execute("DELETE FROM work WHERE tenant = ? AND session = ?", key)
    if row is None:
        return False
    if row[1]:
        owner = Owner(key.tenant, user=row[1])
        sqlite_index.drop_session(connection, owner, key.session, now)
    remove(connection, row[0])
    return bool(row[2])


def move(connection: sqlite3.Connection, old: str, new: str, now: float) -> int:
    if old == new:
        return 0
    purge(connection, now, -1)
    tenants = {"old": old, "new": new, "now": now}
    users = connection.execute(
        f"SELECT DISTINCT owner FROM sessions WHERE owner IS NOT NULL AND {_FREE}", tenants
    ).fetchall()
    for (user,) in users:
        sqlite_index.drop(connection, Owner(new, user=user))
    sqlite_index.drop_tenant(connection, old)
    connection.execute("DELETE FROM work WHERE tenant = ?", (old,))
    sqlite_items.move(connection, old, new)
    sqlite_usage.move(connection, old, new)
    return connection.execute(f"UPDATE sessions SET tenant = :new WHERE {_FREE}", tenants).rowcount
