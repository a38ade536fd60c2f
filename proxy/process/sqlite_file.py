"""What a file of SQLite is to the system: private, and told from a later one at its path; and what
SQLite's errors say of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

FileIdentity: TypeAlias = tuple[int, int] | None
"""Device and inode, which distinguish a file from a later one at its path; None: there is none."""


def create_private(path: Path) -> None:
    """Create an empty file with mode 0600, where SQLite would use the umask: conversations are
    private.  Its -wal and -shm get the same mode.

    An existing file is not opened: closing any descriptor releases all locks of this process on it
    (POSIX), those of SQLite included; another process that closes it then would think that it is
    the last one and remove the log, which is in use.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def identity(path: Path | str) -> FileIdentity:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sqlite_name(error: Exception) -> str:
    """SQLite's name of an error; "" for other errors."""
    return getattr(error, "sqlite_errorname", "")


def is_damage(error: Exception) -> bool:
    """Whether the file can never be read."""
    return sqlite_name(error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_busy(error: Exception) -> bool:
    return sqlite_name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
