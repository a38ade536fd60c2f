"""A lock that the processes of a host share: whoever has it is alone in what it covers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

AGAIN = 0.01
"""Seconds between attempts."""


@contextmanager
def alone(path: Path, patience: float) -> Iterator[None]:
    """Have the lock of the file at ``path``.  Raises OSError, TimeoutError after ``patience``
    seconds; a process that ends lets go of it.  Windows has none: several workers on one spool are
    for other systems."""
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
        time.sleep(AGAIN)


def _lock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
