"""The file of a spool: making it, what tells it from another, what it takes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

Identity = tuple[int, int] | None


def create(path: Path) -> None:
    """An empty file that only we can read.  One that exists is not opened: closing it again would
    drop the locks that SQLite holds on it in this process (POSIX record locks)."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def identity(path: Path) -> Identity:
    """What tells a file from another one of its name."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def used(db: sqlite3.Connection) -> int:
    """Bytes that are taken."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    free = db.execute("PRAGMA freelist_count").fetchone()[0]
    size = db.execute("PRAGMA page_size").fetchone()[0]
    return int((pages - free) * size)


def copy(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Put all entries into another file, once; those that are carried out meanwhile count once."""
    columns = "store, tenant, session, exchange, kind, payload, created_at, quarantined"
    rows = old.execute(f"SELECT {columns} FROM entries ORDER BY id")
    new.execute("BEGIN IMMEDIATE")
    new.executemany(
        f"INSERT OR IGNORE INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows
    )
    new.execute("COMMIT")


def is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
