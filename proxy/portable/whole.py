"""A file that can only be read as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.broken import Broken
from proxy.portable.piece import Piece


class Whole:
    """Gathers at most ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Nothing before the end.  Raises Broken for too large a file."""
        if len(self._data) + len(data) > self._most:
            raise Broken(f"is larger than {self._most} bytes")
        self._data += data
        return iter(())
