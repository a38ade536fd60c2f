"""Opens the spool's file, and replaces it if it is damaged."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from proxy.memory.recording import store_names
from proxy.memory.recording.spool_file import OpenFile, Stamp, connect, copy_damaged, set_aside
from proxy.memory.recording.store_names import IsSame
from proxy.process.sqlite_file import create_private, identity, is_busy

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    store TEXT NOT NULL, tenant TEXT NOT NULL, session TEXT NOT NULL,
    exchange TEXT NOT NULL, kind TEXT NOT NULL, payload BLOB NOT NULL,
    created_at REAL NOT NULL, quarantined TEXT,
    UNIQUE (store, exchange, kind)
);
CREATE INDEX IF NOT EXISTS by_session ON entries (store, tenant, session, id);
"""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for other processes."""

RETRY_SECONDS = 0.01
"""Seconds between attempts."""


class SpoolPlace:
    """The path of a spool's file; ``store`` is the name of the store that its entries are for.

    All methods raise sqlite3.Error and OSError.
    """

    def __init__(self, path: Path, store: str, is_same: IsSame) -> None:
        self._path, self._store, self._is_same = path, store, is_same

    def open(self) -> OpenFile:
        if not self._path.exists():
            for left in ("wal", "shm"):  # those of a file that is gone, which may be in use still
                self.sibling(left).unlink(missing_ok=True)
        create_private(self._path)
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                stamp, (writer, reader) = Stamp(self.sibling("stamp")), self._connect()
                file, log = identity(self._path), identity(self.sibling("wal"))
                return OpenFile(writer, reader, stamp, file, log)
            except sqlite3.OperationalError as error:
                # Processes that open a new file at once lock each other out: SQLite's own patience
                # does not cover the change to write-ahead logging.
                if not is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(RETRY_SECONDS)

    def replace_damaged(self) -> OpenFile:
        """Rename a damaged file, and copy its readable entries into a new one."""
        aside = set_aside(self._path)
        logger.error(
            "the spool was damaged: what can be read of it is in a new one; exchanges that cannot"
            " may be in the old one, which is %s now",
            aside,
        )
        new = self.open()
        try:
            copy_damaged(aside, new.writer)
        except BaseException:
            new.close()
            raise
        return new

    def sibling(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}-{what}")

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock for creating these files and for removing those of older ones."""
        return file_lock(self.sibling("lock"), LOCK_TIMEOUT)

    def is_current(self, file: OpenFile) -> bool:
        """Whether the open file is still the one at the path."""
        there = identity(self._path)
        return there is not None and there == file.file

    def _connect(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        db = connect(self._path, LOCK_TIMEOUT)
        try:
            db.executescript(_SCHEMA)
            store_names.adopt_entries(db, self._store, self._is_same)
            return db, connect(self._path, LOCK_TIMEOUT)
        except BaseException:
            db.close()
            raise


@contextmanager
def file_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of the file at ``path``, which the processes of a host share; it is released
    when a process ends.  Raises OSError, and TimeoutError after ``timeout`` seconds.

    No lock on Windows, where a spool may have only one worker.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(file, time.monotonic() + timeout)
        yield
    finally:
        os.close(file)


def _acquire(file: int, until: float) -> None:
    while True:
        try:
            return _lock(file)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError("another process has it in use") from None
        time.sleep(RETRY_SECONDS)


def _lock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
