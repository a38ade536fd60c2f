"""What is of no use any more, removed bit by bit: no commit waits long for it."""

from __future__ import annotations

import sqlite3

from proxy.stores.sqlite import items, marks
from proxy.stores.sqlite.index import writing as index
from proxy.stores.sqlite.rows import REMOVED_AT, STAGED, remove

PURGED_AT_ONCE = 2
"""Of what has expired, sessions and the like, a commit removes so many, so as not to wait long."""

# Each of them is one look at the beginning of an index.
WASTE = """
SELECT EXISTS (SELECT 1 FROM sessions WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM owners WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM items WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM erasures WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM waste)
"""


def purge(connection: sqlite3.Connection, now: float, limit: int = PURGED_AT_ONCE) -> None:
    """Remove what has expired, at most ``limit`` of each kind; -1 is all.

    Of a large session a part.
    """
    if not connection.execute(WASTE, (now,)).fetchone()[0]:
        return
    expired = connection.execute(
        "SELECT id FROM sessions WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (session,) in expired:
        remove(connection, session)
    index.discard_expired(connection, now, limit)
    items.discard_expired(connection, now, limit)
    marks.purge(connection, now, limit)
    index.sweep(connection, index.SWEPT_AT_ONCE)


def sweep(connection: sqlite3.Connection) -> bool:
    """Remove some of what is left of indexes and sessions; whether there may be more."""
    left = connection.execute(
        "SELECT id FROM sessions WHERE tenant = ? AND expires_at = ? LIMIT 1", (STAGED, REMOVED_AT)
    ).fetchone()
    if left:
        remove(connection, left[0])
    return index.sweep(connection) or left is not None
