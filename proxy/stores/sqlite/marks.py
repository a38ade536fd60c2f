"""Erasure marks in the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from proxy.memory.erasure import Subject
from proxy.stores.common.rules import NO_MARK, digest_of, expiry, is_refused

_MARK = """
INSERT INTO erasures (subject, until, expires_at) VALUES (?1, ?2, ?3)
ON CONFLICT (subject) DO UPDATE SET until = ?2, expires_at = ?3
"""

_PURGE = """
DELETE FROM erasures WHERE subject IN
    (SELECT subject FROM erasures WHERE expires_at <= ? LIMIT ?)
"""


_LIFT = "DELETE FROM erasures WHERE subject = ?1 AND (?2 IS NULL OR until < ?2)"


def mark(connection: Connection, subjects: Sequence[Subject], until: float) -> None:
    rows = [(digest_of(subject), until, expiry(until)) for subject in subjects]
    connection.executemany(_MARK, rows)


def unmark(connection: Connection, subject: Subject, began: float | None = None) -> None:
    connection.execute(_LIFT, (digest_of(subject), began))


def is_erased(
    connection: Connection, now: float, subjects: Sequence[Subject], began: float | None
) -> bool:
    """Whether any of these was erased after ``began`` (None: unknown, not refused)."""
    return began is not None and is_refused(mark_of(connection, subjects, now), began)


def mark_of(connection: Connection, subjects: Sequence[Subject], now: float) -> float:
    """The time of the latest mark of these."""
    places = ", ".join("?" * len(subjects))
    query = f"SELECT max(until) FROM erasures WHERE expires_at > ? AND subject IN ({places})"
    row = connection.execute(query, (now, *map(digest_of, subjects))).fetchone()
    return NO_MARK if row[0] is None else float(row[0])


def purge(connection: Connection, now: float, limit: int) -> None:
    """Remove expired marks, at most ``limit``."""
    connection.execute(_PURGE, (now, limit))
