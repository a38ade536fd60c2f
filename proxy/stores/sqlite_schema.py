"""The SQLite file: how it is opened, and how it grows from version to version.

Knows SQL and the file system, no chats.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from proxy.memory.store import StoreError
from proxy.stores.sqlite_migrations import MIGRATIONS

logger = logging.getLogger(__name__)

FILE_MODE = 0o600
"""Conversations are private: nobody but the owner of the process reads them."""

SCHEMA = len(MIGRATIONS)
"""The version that this release writes."""


class Unusable(StoreError):
    """A file that can never be used as it is, however often it is tried."""


def connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open the file, create what is missing, bring it to the newest version.

    ``busy_timeout`` in seconds.  Raises OSError, sqlite3.Error, or Unusable.
    """
    _create(path)
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        _log_ahead(connection, busy_timeout)
        _set_up(connection)
        was = migrate(connection)
    except BaseException:
        connection.close()
        raise
    if was not in (0, SCHEMA):
        logger.warning("the database %s was brought from schema %d to %d", path, was, SCHEMA)
    return connection


def connect_as_is(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a file that is there and has this release's schema; change nothing of either.

    For who looks at a store or works on it beside a proxy: only the proxy makes files and brings
    them up to date.  Raises as ``connect``, and StoreError for a file of another schema.
    """
    connection = _reopen(path, busy_timeout)
    try:
        _set_up(connection)
        found = version(connection)
        if found != SCHEMA:
            raise StoreError(_older(found))
    except BaseException:
        connection.close()
        raise
    return connection


def schema_of(path: Path, busy_timeout: float) -> int | None:
    """The version of a file, 0 of an empty one, None where there is none.  Raises as ``connect``.

    Nothing is changed, and nobody is waited for longer than ``busy_timeout``.
    """
    if not path.exists():
        return None
    with closing(_reopen(path, busy_timeout)) as connection:
        return version(connection)


def _reopen(path: Path, busy_timeout: float) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, timeout=busy_timeout, isolation_level=None, uri=True)


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")


def _older(found: int) -> str:
    if not found:
        return "the database is empty: the first start of the proxy makes its tables"
    return (
        f"the database has schema {found}, this release writes {SCHEMA}: back it up, then start"
        " the proxy, which brings it up to date; there is no way back"
    )


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


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Run the migrations that the file lacks, all or none of them; the version that it had."""
    known = len(migrations)
    found = version(connection, known)
    if found == known:
        return found
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again under the lock: another process may have been faster.
        found = version(connection, known)
        for script in migrations[found:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {known}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return found


def version(connection: sqlite3.Connection, known: int = SCHEMA) -> int:
    """The version of the file, 0 of an empty one.  Raises Unusable where it can be of no use."""
    try:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            raise Unusable(f"{error}: name another file, or put a backup in its place") from error
        raise
    if found > known:
        raise Unusable(
            f"the database has schema {found}, this release knows up to {known}: "
            "use the newer release that wrote it, or another file"
        )
    if not found and tables:
        raise Unusable("the database is another program's: name another file")
    return found
