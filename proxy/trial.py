"""Trying places as ``serve`` will use them, and leaving them as they were."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

PATIENCE = 5.0
"""Seconds for which other processes are waited for that use a file."""

BYTES = 64 * 1024
"""Written to try a disk: about what a new database needs."""


def trouble(path: Path) -> str | None:
    """Why a database file cannot be read and written, None if it can.

    Nothing that was not there stays: neither folders nor files.
    """
    try:
        if path.exists():
            _try_existing(path)
        else:
            _try_beside(path)
    except sqlite3.Error as error:
        return f"{path} cannot be used: {_said(error)}"
    except OSError as error:
        return f"cannot write in the folder {path.parent}: {error.strerror or error}"
    return None


def _said(error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
        return f"{error}; move it away, or name another"
    return str(error)


def _try_existing(path: Path) -> None:
    address = f"{path.absolute().as_uri()}?mode=rw"
    with closing(_opened(address, uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection.execute("BEGIN IMMEDIATE")
        # Touches a page and thereby the disk, and changes nothing.
        number = connection.execute("PRAGMA application_id").fetchone()[0]
        connection.execute(f"PRAGMA application_id = {number}")
        connection.execute("COMMIT")
    _try_beside(path)


def _try_beside(path: Path) -> None:
    """A database of another name in the same folder: SQLite needs the folder for its logs too."""
    with (
        _folder(path.parent) as folder,
        _scratch(folder, path.name) as file,
        closing(_opened(str(file))) as connection,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE trial (data BLOB)")
        connection.execute("INSERT INTO trial VALUES (zeroblob(?))", (BYTES,))


def _opened(address: str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, uri=uri)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """The folder; what had to be made for it is gone afterwards."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        for each in missing:
            with suppress(OSError):  # somebody else has put something into it meanwhile
                each.rmdir()


@contextmanager
def _scratch(folder: Path, name: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
        path = Path(file.name)
    try:
        yield path
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + end).unlink(missing_ok=True)
