"""The marks of what was erased, in the SQLite file: functions of a connection in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from proxy.memory.erasure import Subject
from proxy.stores.marks import UNMARKED, digest_of, expiry, forbids
from proxy.stores.sqlite_file import SQLiteFile

_MARK = """
INSERT INTO erasures (subject, until, expires_at) VALUES (?1, ?2, ?3)
ON CONFLICT (subject) DO UPDATE SET until = ?2, expires_at = ?3
"""

_PURGE = """
DELETE FROM erasures WHERE subject IN
    (SELECT subject FROM erasures WHERE expires_at <= ? LIMIT ?)
"""


class SQLiteErasures(SQLiteFile):
    """See :class:`proxy.memory.erasure.Erasures`."""

    async def mark(self, subject: Subject, until: float) -> None:
        row = (digest_of(subject), until, expiry(until))
        await self._write(lambda c: c.execute(_MARK, row).close())

    async def unmark(self, subject: Subject) -> None:
        digest = digest_of(subject)
        query = "DELETE FROM erasures WHERE subject = ?"
        await self._write(lambda c: c.execute(query, (digest,)).close())

    async def erased(self, subjects: Sequence[Subject], began: float) -> bool:
        return forbids(await self._read(lambda c: mark_of(c, subjects, self._clock())), began)


def mark_of(connection: sqlite3.Connection, subjects: Sequence[Subject], now: float) -> float:
    """The latest mark of these."""
    places = ", ".join("?" * len(subjects))
    query = f"SELECT max(until) FROM erasures WHERE expires_at > ? AND subject IN ({places})"
    row = connection.execute(query, (now, *map(digest_of, subjects))).fetchone()
    return UNMARKED if row[0] is None else float(row[0])


def purge(connection: sqlite3.Connection, now: float, limit: int) -> None:
    """Remove what has expired, at most ``limit`` marks; -1 is all."""
    connection.execute(_PURGE, (now, limit))
