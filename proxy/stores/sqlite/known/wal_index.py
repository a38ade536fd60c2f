"""The header of a SQLite file's WAL index, as memory: every commit of any process changes it.

It stands twice at the beginning of the file that is called like the database and ``-shm``, in the
byte order of the machine ("WAL-mode File Format", sqlite.org/walformat.html, section 2.1).
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock

HEADER = 48
"""Bytes of one of the two copies."""

_CHANGE = slice(8, 12)
"""The counter that each transaction that has written something moves by one."""


class WalIndex:
    """The header, mapped for as long as it is held: see ``acquire``."""

    def __init__(self, file: int) -> None:
        self._file, self._holders = file, 0
        self._memory: mmap.mmap | bytes = b""
        with suppress(OSError, ValueError):  # then nothing is ever known, and all is read
            self._memory = mmap.mmap(file, 2 * HEADER, access=mmap.ACCESS_READ)

    def header(self) -> bytes:
        """What the file says of itself; empty where that is not to be had, or is being written."""
        both = self._memory[: 2 * HEADER]
        return both[:HEADER] if both[:HEADER] == both[HEADER:] else b""


def writes_between(before: bytes, after: bytes) -> int:
    """How many transactions have written between two headers."""
    first = int.from_bytes(before[_CHANGE], sys.byteorder)
    return (int.from_bytes(after[_CHANGE], sys.byteorder) - first) % 2**32


# Closing any descriptor of a file drops all locks that the process has on it (POSIX), those of
# SQLite's connections included.  So each is open once, and as long as one of them may be.
_held: dict[tuple[int, int], WalIndex] = {}
_lock = Lock()


def acquire(database: Path) -> WalIndex | None:
    """The header of a database to which there is a connection; None where it has none.

    Every connection of the process holds it, and lets it go when it is closed.
    """
    with _lock:
        try:
            path = f"{database}-shm"
            found = os.stat(path)
            index = _held.get((found.st_dev, found.st_ino))
            if index is None:
                index = WalIndex(os.open(path, os.O_RDONLY))
                _held[found.st_dev, found.st_ino] = index
        except OSError:
            return None
        index._holders += 1
        return index


def release(index: WalIndex) -> None:
    """A connection is closed.  With the last one it is unmapped."""
    with _lock:
        index._holders -= 1
        if index._holders:
            return
        for file, held in list(_held.items()):
            if held is index:
                del _held[file]
        if isinstance(index._memory, mmap.mmap):
            memory, index._memory = index._memory, b""
            memory.close()
        os.close(index._file)
