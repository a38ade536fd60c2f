"""The file of a spool: making it, what tells it from another, what it takes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from proxy.memory.recording.spool_stamp import Stamp

Identity = tuple[int, int] | None


class OpenFile(NamedTuple):
    """One in use: how it is written, how looked at, and by what it and its log are known."""

    db: sqlite3.Connection
    look: sqlite3.Connection
    stamp: Stamp
    file: Identity
    log: Identity

    def close(self) -> None:
        """The stamp is closed with its last reader: the loop may be at it."""
        self.db.close()
        self.look.close()


def create(path: Path) -> None:
    """An empty file that only we can read.  One that exists is not opened: closing it again would
    drop the locks that SQLite holds on it in this process (POSIX record locks)."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Whoever writes through it waits so many seconds for others."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=patience)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
    except BaseException:
        db.close()
        raise
    return db


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
