"""The file of a spool: making it, what identifies it, what it takes, and whether it was
written since."""

from __future__ import annotations

import os
import sqlite3
import sys
import weakref
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

Identity = tuple[int, int] | None

STAMP_SIZE = 8

SET_ASIDE = 9
"""Damaged files that are kept; each may be as large as a spool."""


class Stamp:
    """Whether a spool was written since: asked by every request, without asking SQLite.

    Eight bytes at ``path`` that all processes of a host see, none before the first time.  Who has
    written puts others there, once it is durable: so who sees the same bytes has seen all that was
    written, but for what a process had no time to announce because it was killed.

    They are read and written, not mapped as memory: there a disk without room, or a file that
    somebody has emptied, ends the process with a signal.  Everything raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        weakref.finalize(self, os.close, self._file)

    def __bytes__(self) -> bytes:
        if sys.platform == "win32":
            return self._path.read_bytes()
        return os.pread(self._file, STAMP_SIZE, 0)

    def renew(self) -> None:
        new = os.urandom(STAMP_SIZE)
        if sys.platform == "win32":
            self._path.write_bytes(new)
        else:
            os.pwrite(self._file, new, 0)


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
    """What distinguishes a file from another one of its name."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes that are taken."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    free = db.execute("PRAGMA freelist_count").fetchone()[0]
    size = db.execute("PRAGMA page_size").fetchone()[0]
    return int((pages - free) * size)


def copy_entries(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Put all entries into another file, once, of a damaged one those before and behind the damage;
    those that are carried out meanwhile count once."""
    new.execute("BEGIN IMMEDIATE")
    if not _copy_from(old, new, 0):
        _copy_from(old, new, _behind_damage(old))
    new.execute("COMMIT")


def _copy_from(old: sqlite3.Connection, new: sqlite3.Connection, first: int) -> bool:
    """Was there no damage behind the entry ``first``?  Those before it are copied."""
    columns = "store, tenant, session, exchange, kind, payload, created_at, quarantined"
    query = f"SELECT {columns} FROM entries WHERE id >= ? ORDER BY id"
    try:
        new.executemany(
            f"INSERT OR IGNORE INTO entries ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            old.execute(query, (first,)),
        )
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def _behind_damage(old: sqlite3.Connection) -> int:
    first = 0
    try:
        for row in old.execute("SELECT id, created_at FROM entries ORDER BY id DESC"):
            first = int(row[0])
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return first


def copy_damaged(path: Path, new: sqlite3.Connection) -> None:
    """The same of a file that is not open, of which perhaps nothing can be read."""
    with closing(sqlite3.connect(path)) as old:
        copy_entries(old, new)


def set_aside(path: Path) -> Path:
    """Give a damaged file another name, and its log with it.  Raises OSError."""
    names = (path.with_name(f"{path.name}-damaged-{n}") for n in range(1, SET_ASIDE + 1))
    aside = next((name for name in names if not name.exists()), None)
    if aside is None:
        raise OSError(f"it is damaged, as are {SET_ASIDE} beside it: remove them")
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{aside}{end}")
    return aside


def is_damage(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
