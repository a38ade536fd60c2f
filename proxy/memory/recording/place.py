"""Where the spool's file lies: opening it, and making another where it is damaged."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path

from proxy.memory.recording import store_names
from proxy.memory.recording.host_lock import alone
from proxy.memory.recording.spool_stamp import Stamp
from proxy.memory.recording.sqlite_file import (
    OpenFile,
    connect,
    copy_damaged,
    create,
    identity,
    is_busy,
    set_aside,
)
from proxy.memory.recording.store_names import IsSame

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


class SpoolPlace:
    """``store`` is whose entries are wanted.  Raises sqlite3.Error, OSError."""

    def __init__(self, path: Path, store: str, is_same: IsSame) -> None:
        self._path, self._store, self._is_same = path, store, is_same

    def open(self) -> OpenFile:
        if not self._path.exists():
            for left in ("wal", "shm"):  # those of a file that is gone, which may be in use still
                self.beside(left).unlink(missing_ok=True)
        create(self._path)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                stamp, (db, look) = Stamp(self.beside("stamp")), self._connected()
                file, log = identity(self._path), identity(self.beside("wal"))
                return OpenFile(db, look, stamp, file, log)
            except sqlite3.OperationalError as error:
                # Processes that open a new file at once lock each other out: SQLite's own patience
                # does not cover the change to write-ahead logging.
                if not is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

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

    def beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}-{what}")

    def alone(self) -> AbstractContextManager[None]:
        """No other process makes these files meanwhile, or removes what is left of older ones."""
        return alone(self.beside("lock"), PATIENCE)

    def has(self, file: OpenFile) -> bool:
        """Does the file that is open still lie at the path?"""
        there = identity(self._path)
        return there is not None and there == file.file

    def _connected(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        db = connect(self._path, PATIENCE)
        try:
            db.executescript(_SCHEMA)
            store_names.adopt(db, self._store, self._is_same)
            return db, connect(self._path, PATIENCE)
        except BaseException:
            db.close()
            raise
