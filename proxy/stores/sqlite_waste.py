"""Removing indexes from the SQLite file: their names at once, what they consist of bit by bit."""

from __future__ import annotations

import sqlite3

SWEPT_AT_ONCE = 100
"""Entries of dropped indexes that go with each commit, so that it does not wait long for them."""

SWEPT_IN_A_STEP = 5000
"""Those that go in one transaction where somebody waits for them all to be gone."""

_PARTS = (
    ("postings", "term", 1),
    ("passages", "number", 1),
    ("vectors", "block", 16),
    ("marks", "session", 1),
)
"""The tables of an index, what their entries are called within an owner's, and how much each counts
for: blocks of vectors are large."""


def discard(connection: sqlite3.Connection, id: int) -> None:
    """Make an owner's index waste."""
    connection.execute("DELETE FROM owners WHERE id = ?", (id,))
    connection.execute("INSERT INTO waste (owner) VALUES (?)", (id,))


def discard_expired(connection: sqlite3.Connection, now: float, limit: int) -> None:
    expired = connection.execute(
        "SELECT id FROM owners WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (id,) in expired:
        discard(connection, id)


def sweep(connection: sqlite3.Connection, limit: int = SWEPT_IN_A_STEP) -> bool:
    """Remove about ``limit`` entries of waste; whether there may be more."""
    row = connection.execute("SELECT owner FROM waste LIMIT 1").fetchone()
    if row is None:
        return False
    for table, entry, weight in _PARTS:
        removed = connection.execute(
            f"DELETE FROM {table} WHERE owner = ?1 AND {entry} IN "
            f"(SELECT {entry} FROM {table} WHERE owner = ?1 LIMIT ?2)",
            (row[0], limit // weight),
        )
        if removed.rowcount:
            return True
    connection.execute("DELETE FROM waste WHERE owner = ?", row)
    return True
