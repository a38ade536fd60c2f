"""Removes expired and deleted data in small steps, so that no commit waits long."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from proxy.recall.index import Owner
from proxy.stores.sqlite import items, marks
from proxy.stores.sqlite.index import writing as index
from proxy.stores.sqlite.rows import REMOVED_AT, STAGED, mark_removed, remove

PURGED_AT_ONCE = 2
"""Expired sessions, indexes, items and marks that each commit removes, at most of each."""

TIDIED_AT_ONCE = 20
"""The same for transactions of their own, which nobody waits for."""

REMOVE_SECONDS = 0.02
"""Seconds for which one transaction removes sessions: most have a few messages, some megabytes."""

# Each of these reads only the beginning of an index.
WASTE = """
SELECT EXISTS (SELECT 1 FROM sessions WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM owners WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM items WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM erasures WHERE expires_at <= ?1)
    OR EXISTS (SELECT 1 FROM waste)
"""


def has_expired(connection: Connection, now: float) -> bool:
    """Whether there is anything that ``purge`` would remove."""
    return bool(connection.execute(WASTE, (now,)).fetchone()[0])


def purge(connection: Connection, now: float, limit: int = PURGED_AT_ONCE) -> None:
    """Remove what has expired, at most ``limit`` of each kind.

    Of a large session only a part.
    """
    if not has_expired(connection, now):
        return
    expired = connection.execute(
        "SELECT id FROM sessions WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    _remove_some(connection, expired)
    index.discard_expired(connection, now, limit)
    items.discard_expired(connection, now, limit)
    marks.purge(connection, now, limit)
    index.sweep(connection, index.SWEPT_AT_ONCE)


def purge_now(connection: Connection, now: float) -> None:
    """The same in a transaction of its own, which nobody waits for."""
    purge(connection, now, TIDIED_AT_ONCE)
    index.sweep(connection)


CLEARED_AT_ONCE = 500
"""Sessions of a user that are marked as waste in one transaction."""

_EXPIRED = """
SELECT id, session FROM sessions WHERE tenant = ? AND owner = ? AND expires_at <= ? LIMIT ?
"""

_IN_THE_WAY = """
SELECT id, session FROM sessions WHERE tenant = ?1 AND expires_at <= ?2
    AND session IN (SELECT session FROM sessions WHERE tenant = ?3)
"""


def clear_some(connection: Connection, now: float, tenant: str, user: str) -> int:
    """Mark some of a user's expired sessions for removal; their number."""
    expired = connection.execute(_EXPIRED, (tenant, user, now, CLEARED_AT_ONCE)).fetchall()
    return _clear(connection, tenant, expired)


def clear_conflicting(connection: Connection, now: float, old: str, new: str) -> None:
    """Mark expired sessions of tenant ``new`` for removal if ``old`` has one with the same id."""
    _clear(connection, new, connection.execute(_IN_THE_WAY, (new, now, old)).fetchall())


def _clear(connection: Connection, tenant: str, expired: Sequence[tuple[int, str]]) -> int:
    for id, session in expired:
        index.drop(connection, Owner(tenant, session=session))
        connection.execute("DELETE FROM work WHERE tenant = ? AND session = ?", (tenant, session))
        mark_removed(connection, id)
    return len(expired)


SWEPT_AT_ONCE = 100
"""Sessions that are removed in one transaction, at most, where a caller waits for all of them."""

_REMOVED = "SELECT id FROM sessions WHERE tenant = ? AND expires_at = ? LIMIT ?"


def sweep(connection: Connection) -> bool:
    """Remove some rows of dropped indexes and sessions; True if there may be more."""
    left = connection.execute(_REMOVED, (STAGED, REMOVED_AT, SWEPT_AT_ONCE)).fetchall()
    _remove_some(connection, left)
    return index.sweep(connection) or bool(left)


def _remove_some(connection: Connection, sessions: Iterable[tuple[int]]) -> None:
    """Remove sessions one by one until time is up or a large one was among them."""
    ends = time.monotonic() + REMOVE_SECONDS
    for (session,) in sessions:
        if not remove(connection, session) or time.monotonic() >= ends:
            break
