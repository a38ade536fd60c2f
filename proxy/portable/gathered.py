"""The messages of a conversation that is a whole file, until they are all there."""

from __future__ import annotations

from proxy.portable.bounds import check_count


class Gathered:
    """``most`` bounds them all, in bytes.  Raises ValueError."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self.messages: list[bytes] = []

    def add(self, message: bytes) -> None:
        self.messages.append(message)
        self._size += len(message)
        check_count(len(self.messages))
        if self._size > self._most:
            raise ValueError(f"a conversation of over {self._most} bytes")
