"""The header of a SQLite file's WAL index, mapped into memory: every commit changes it.

It is stored twice at the beginning of the file DATABASE-shm, in the byte order of the machine
("WAL-mode File Format", sqlite.org/walformat.html, section 2.1).
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
"""The counter that each transaction that has written increments."""


class WalIndex:
    """The mapped header, with a count of its holders: see ``acquire``."""

    def __init__(self, file: int) -> None:
        self._file, self._holders = file, 0
        self._memory: mmap.mmap | bytes = b""
        with suppress(OSError, ValueError):  # without it nothing is served from caches
            self._memory = mmap.mmap(file, 2 * HEADER, access=mmap.ACCESS_READ)

    def header(self) -> bytes:
        """One copy of the header; empty if it cannot be read, or is being written."""
        both = self._memory[: 2 * HEADER]
        return both[:HEADER] if both[:HEADER] == both[HEADER:] else b""


def writes_between(before: bytes, after: bytes) -> int:
    """The number of writing transactions between two headers."""
    first = int.from_bytes(before[_CHANGE], sys.byteorder)
    return (int.from_bytes(after[_CHANGE], sys.byteorder) - first) % 2**32


# Closing any descriptor of a file releases all locks of the process on it (POSIX), those of
# SQLite's connections too.  So each file is opened once, and stays open as long as a connection to
# it.
_open_headers: dict[tuple[int, int], WalIndex] = {}
_lock = Lock()


def acquire(database: Path) -> WalIndex | None:
    """The header of a database to which there is a connection; None if there is no such file.

    Each connection of the process acquires it once, and releases it when it is closed.
    """
    with _lock:
        try:
            path = f"{database}-shm"
            found = os.stat(path)
            index = _open_headers.get((found.st_dev, found.st_ino))
            if index is None:
                index = WalIndex(os.open(path, os.O_RDONLY))
                _open_headers[found.st_dev, found.st_ino] = index
        except OSError:
            return None
        index._holders += 1
        return index


def release(index: WalIndex) -> None:
    """Release the header for a closed connection; the last one unmaps it."""
    with _lock:
        index._holders -= 1
        if index._holders:
            return
        for file, other in list(_open_headers.items()):
            if other is index:
                del _open_headers[file]
        if isinstance(index._memory, mmap.mmap):
            memory, index._memory = index._memory, b""
            memory.close()
        os.close(index._file)
