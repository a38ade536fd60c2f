"""A JSON list that comes in pieces, cut into its items; or one object, which is an item itself.

Nothing is made of what is read: an item is its bytes, and nobody has looked into it.  What stands
in strings is passed over at once, so that time grows with the brackets outside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.portable.bounds import MOST_VALUES

DEEPEST = 500
"""Levels.  What people have is nested a tenth of that."""

_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_TO_STRING = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+("?)', re.DOTALL)
_STRING_ENDS = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_OPENING = b"[{"
_SPACE = b" \t\n\r"
_UNLIKE = "no list of objects, or more than that"


class Listed:
    """``most`` bounds an item, in bytes.

    ``listed``: the text is a list; None before it begins.  ``number`` is how many items there were.
    Raises ValueError for what is no list of objects or lists.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.listed: bool | None = None
        self.number = 0
        self._levels = self._brackets = 0
        self._within = self._escaped = self._ended = False
        """Within a string, whose next byte is escaped; nothing may come any more."""
        self._item = bytearray()
        self._gap = b""
        """What stands before the next item, but for white space."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The items that this completes."""
        if self.listed is None:
            data = data.lstrip(_SPACE)
            self.listed = data[:1] == b"[" if data else None
        start, at = 0, self._behind_string(data)
        while bracket := _TO_BRACKET.match(data, at):
            before, at = bracket.span(1)
            inside = self._levels > self._base
            self._levels += 1 if data[before] in _OPENING else -1
            self._brackets += 1
            self._check()
            if not inside:
                self._between(data[start:before], data[before])
                start = before if self._levels > self._base else at
            elif self._levels == self._base:
                yield self._completed(data[start:at])
                start = at
        if self._levels > self._base:
            self._hold(data[start:])
        else:
            self._wait(data[start:])
        self._look(data, at)

    def finish(self) -> None:
        """Raises ValueError for one that has not ended."""
        if not self._ended:
            raise ValueError("no end: it is cut off")

    def _check(self) -> None:
        if self._levels > DEEPEST:
            raise ValueError("too deep a nesting")
        if self._brackets > 2 * MOST_VALUES:
            raise ValueError(f"over {MOST_VALUES} lists and objects in item {self.number + 1}")

    @property
    def _base(self) -> int:
        """The level on which items stand."""
        return 1 if self.listed else 0

    def _between(self, gap: bytes, bracket: int) -> None:
        """What stands before a bracket that is of no item, or begins one."""
        self._wait(gap)
        opens = bracket in _OPENING
        if self._ended or self._gap != (b"," if opens and self.number else b""):
            raise ValueError(_UNLIKE)
        self._gap, self._ended = b"", not opens

    def _wait(self, gap: bytes) -> None:
        self._gap += gap.strip(_SPACE)
        if self._gap not in (b"", b",") or (self._gap and self._ended):
            raise ValueError(_UNLIKE)

    def _completed(self, rest: bytes) -> bytes:
        self._hold(rest)
        item = bytes(self._item)
        self._item.clear()
        self._brackets = 0
        self.number += 1
        self._ended = not self.listed
        return item

    def _hold(self, data: bytes) -> None:
        self._item += data
        if len(self._item) > self._most:
            raise ValueError(f"more than {self._most} bytes of item {self.number + 1}")

    def _behind_string(self, data: bytes) -> int:
        """Where the string ends that began before this piece."""
        if not self._within:
            return 0
        begin = 1 if self._escaped and data else 0
        end = _STRING_ENDS.match(data, begin)
        if end:
            self._within = self._escaped = False
            return end.end()
        if data:
            self._escaped = _escapes(data[begin:])
        return len(data)

    def _look(self, data: bytes, at: int) -> None:
        """Does a string begin behind the last bracket that goes on?"""
        begun = _TO_STRING.match(data, at)
        if begun and begun[1]:
            self._within, self._escaped = True, _escapes(data[begun.end() :])


def _escapes(data: bytes) -> bool:
    """Does the next byte belong to a backslash?"""
    return (len(data) - len(data.rstrip(b"\\"))) % 2 == 1
