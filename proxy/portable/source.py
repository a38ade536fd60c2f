"""What every format that can be imported is read through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from proxy.portable.piece import Piece


class Source(Protocol):
    """A file that comes in pieces of bytes, and falls into pieces of memory.

    Both methods may take long: they belong on a thread.  They raise Broken.
    """

    def feed(self, data: bytes) -> Iterator[Piece]:
        """What these bytes complete."""
        ...

    def finish(self) -> Iterator[Piece]:
        """What the end of the file completes."""
        ...
