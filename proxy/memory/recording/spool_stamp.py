"""Whether a spool was written since: asked by every request, without asking SQLite.

Eight bytes beside the spool's file that all processes of a host see.  Who has written puts others
there, once it is durable: so who sees the same bytes has seen all that was written, but for what a
process had no time to tell of because it was killed.

They are read and written, not mapped as memory: there a disk without room, or a file that somebody
has emptied, ends the process with a signal.
"""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

SIZE = 8


class Stamp:
    """The bytes at ``path``, none before the first time.  Everything raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        weakref.finalize(self, os.close, self._file)

    def __bytes__(self) -> bytes:
        if sys.platform == "win32":
            return self._path.read_bytes()
        return os.pread(self._file, SIZE, 0)

    def renew(self) -> None:
        new = os.urandom(SIZE)
        if sys.platform == "win32":
            self._path.write_bytes(new)
        else:
            os.pwrite(self._file, new, 0)
