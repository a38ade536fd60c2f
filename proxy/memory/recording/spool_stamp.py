"""Whether a spool was written since: asked by every request, without asking SQLite.

Eight bytes beside the spool's file that all processes of a host see, as memory.  Who has written
puts others there, once it is durable: so who sees the same bytes has seen all that was written,
but for what a process had no time to tell of because it was killed.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

SIZE = 8


class Stamp:
    """The bytes at ``path``.  Raises OSError."""

    def __init__(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < SIZE:
                os.ftruncate(file, SIZE)
            self._memory = mmap.mmap(file, SIZE)
        finally:
            os.close(file)

    def __bytes__(self) -> bytes:
        return self._memory[:SIZE]

    def renew(self) -> None:
        self._memory[:SIZE] = os.urandom(SIZE)
