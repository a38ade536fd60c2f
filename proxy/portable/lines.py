"""Bytes that come in pieces, cut into lines."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.broken import Broken


class Splitter:
    """``limit`` bounds a line, in bytes.  ``number`` is that of the line given last, from 1."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self.number = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this completes, without their ends; empty ones are left out.

        Raises Broken for one that is too long.
        """
        first, *others = data.split(b"\n")
        self._rest += first
        self._bound(len(self._rest))
        for piece in others:
            yield from self._complete()
            self._bound(len(piece))
            self._rest += piece

    def finish(self) -> Iterator[bytes]:
        """A last line without an end."""
        if self._rest:
            yield from self._complete()

    def _complete(self) -> Iterator[bytes]:
        line = bytes(self._rest).strip()
        self._rest.clear()
        self.number += 1
        if line:
            yield line

    def _bound(self, size: int) -> None:
        if size > self._limit:
            raise Broken(f"is longer than {self._limit} bytes", self.number + 1)
