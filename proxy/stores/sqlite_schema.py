"""The SQLite file: how it is opened, and how it grows from version to version.

Knows SQL and the file system, no chats.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from proxy.memory.store import StoreError
from proxy.stores.sqlite_migrations import MIGRATIONS

FILE_MODE = 0o600
"""Conversations are private: nobody but the owner of the process reads them."""


def connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open the file, create what is missing, bring it to the newest version.

    ``busy_timeout`` in seconds.  Raises OSError, sqlite3.Error, or StoreError for a file that a
    newer version of this program has written.
    """
    _create(path)
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        _log_ahead(connection, busy_timeout)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Change to write-ahead logging.

    Processes that do so on a new file at once lock each other out, and SQLite's own patience does
    not cover it.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _create(path: Path) -> None:
    """Make the file, private from its first moment: SQLite would follow the umask.

    Its -wal and -shm take over the mode.  A file that is there is not opened: closing any of its
    descriptors drops all locks that this process has on it (POSIX), those of SQLite included, and
    another process that closes then takes itself for the last one and removes the log in use.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE))


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Run the migrations that the file lacks, all or none of them."""
    if _version(connection, len(migrations)) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again under the lock: another process may have been faster.
        for script in migrations[_version(connection, len(migrations)) :]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, known: int) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > known:
        raise StoreError(
            f"the database has version {version}, this program knows up to {known}: "
            "use the newer release that wrote it, or another file"
        )
    return version
