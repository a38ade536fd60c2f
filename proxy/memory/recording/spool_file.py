"""The SQLite file of a spool: size, copying, and detection of writes."""

from __future__ import annotations

import os
import sqlite3
import sys
import weakref
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from proxy.process.sqlite_file import FileIdentity, is_damage

STAMP_SIZE = 8

MAX_DAMAGED_FILES = 9
"""The most damaged files that are kept; each may be as large as a spool."""


class Stamp:
    """Tells without SQLite whether a spool was written since; checked by every request.

    Eight bytes in a file at ``path`` that the processes of a host share; it is empty before the
    first write.  After each durable write they are replaced by random ones.  So a reader that finds
    the same bytes has seen all writes, except those of a process that was killed in between.

    The file is not mapped into memory, as a full disk or a truncated file would then end the
    process with a signal.  All methods raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        weakref.finalize(self, os.close, self._file)

    def __bytes__(self) -> bytes:
        if sys.platform == "win32":
            return self._path.read_bytes()
        return os.pread(self._file, STAMP_SIZE, 0)

    def update(self) -> None:
        new = os.urandom(STAMP_SIZE)
        if sys.platform == "win32":
            self._path.write_bytes(new)
        else:
            os.pwrite(self._file, new, 0)


class OpenFile(NamedTuple):
    """An open spool: connections to write and to read, its stamp, and the identities of its file
    and of its write-ahead log."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    stamp: Stamp
    file: FileIdentity
    log: FileIdentity

    def close(self) -> None:
        """Close the connections.  The stamp is closed when unused: the event loop may read it."""
        self.writer.close()
        self.reader.close()


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that waits ``timeout`` seconds for locks of others."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
    except BaseException:
        db.close()
        raise
    return db


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the pages in use."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    free = db.execute("PRAGMA freelist_count").fetchone()[0]
    size = db.execute("PRAGMA page_size").fetchone()[0]
    return int((pages - free) * size)


def copy_entries(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy all entries into another file, each once; of a damaged file those before and after the
    damage."""
    new.execute("BEGIN IMMEDIATE")
    if not _copy_from(old, new, 0):
        _copy_from(old, new, _first_after_damage(old))
    new.execute("COMMIT")


def _copy_from(old: sqlite3.Connection, new: sqlite3.Connection, first: int) -> bool:
    """Copy the entries from id ``first`` on, up to any damage; False if there was damage."""
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


def _first_after_damage(old: sqlite3.Connection) -> int:
    first = 0
    try:
        for row in old.execute("SELECT id, created_at FROM entries ORDER BY id DESC"):
            first = int(row[0])
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return first


def copy_damaged(path: Path, new: sqlite3.Connection) -> None:
    """As ``copy_entries``, for a file that is not open, of which perhaps nothing can be read."""
    with closing(sqlite3.connect(path)) as old:
        copy_entries(old, new)


def set_aside(path: Path) -> Path:
    """Rename a damaged file with its log; returns the new path.  Raises OSError."""
    names = (path.with_name(f"{path.name}-damaged-{n}") for n in range(1, MAX_DAMAGED_FILES + 1))
    aside = next((name for name in names if not name.exists()), None)
    if aside is None:
        raise OSError(f"it is damaged, as are {MAX_DAMAGED_FILES} beside it: remove them")
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{aside}{end}")
    return aside
