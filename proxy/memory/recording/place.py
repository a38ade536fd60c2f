"""Where the spool's file lies: opening it, and making another where it is damaged."""

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
from proxy.memory.recording.sqlite_file import (
    OpenFile,
    Stamp,
    connect,
    copy_damaged,
    create,
    identity,
    is_busy,
    set_aside,
)
from proxy.memory.recording.store_names import IsSame

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

PATIENCE = 5.0
"""Seconds for which other processes are waited for."""

RETRY_SECONDS = 0.01
"""Seconds between attempts."""


class SpoolPlace:
    """``store`` is whose entries are wanted.  Raises sqlite3.Error, OSError."""

    def __init__(self, path: Path, store: str, is_same: IsSame) -> None:
        self._path, self._store, self._is_same = path, store, is_same

    def open(self) -> OpenFile:
        if not self._path.exists():
            for left in ("wal", "shm"):  # those of a file that is gone, which may be in use still
                self.sibling(left).unlink(missing_ok=True)
        create(self._path)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                stamp, (db, look) = Stamp(self.sibling("stamp")), self._connected()
                file, log = identity(self._path), identity(self.sibling("wal"))
                return OpenFile(db, look, stamp, file, log)
            except sqlite3.OperationalError as error:
                # Processes that open a new file at once lock each other out: SQLite's own patience
                # does not cover the change to write-ahead logging.
                if not is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(RETRY_SECONDS)

    def renew(self) -> OpenFile:
        """Set a damaged file aside, and take what can be read of it along into a new one."""
        aside = set_aside(self._path)
        logger.error(
            "the spool was damaged: what can be read of it is in a new one; exchanges that cannot"
            " may be in the old one, which is %s now",
            aside,
        )
        new = self.open()
        try:
            copy_damaged(aside, new.db)
        except BaseException:
            new.close()
            raise
        return new

    def sibling(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}-{what}")

    def alone(self) -> AbstractContextManager[None]:
        """No other process makes these files meanwhile, or removes what is left of older ones."""
        return alone(self.sibling("lock"), PATIENCE)

    def has(self, file: OpenFile) -> bool:
        """Does the file that is open still lie at the path?"""
        there = identity(self._path)
        return there is not None and there == file.file

    def _connected(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        db = connect(self._path, PATIENCE)
        try:
            db.executescript(_SCHEMA)
            store_names.adopt_entries(db, self._store, self._is_same)
            return db, connect(self._path, PATIENCE)
        except BaseException:
            db.close()
            raise


@contextmanager
def alone(path: Path, patience: float) -> Iterator[None]:
    """Have the lock of the file at ``path``, which the processes of a host share.  Raises OSError,
    TimeoutError after ``patience`` seconds; a process that ends lets go of it.  Windows has none:
    several workers on one spool are for other systems."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _take(file, time.monotonic() + patience)
        yield
    finally:
        os.close(file)


def _take(file: int, until: float) -> None:
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
