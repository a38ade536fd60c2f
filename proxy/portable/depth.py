"""How deeply the JSON text of a file is nested, while it comes.

Parsers keep a path for each level: without a bound a few kilobytes of brackets take gigabytes.
"""

from __future__ import annotations

import re

DEEPEST = 500
"""Levels.  What people have is nested a tenth of that."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENING = b"[{"


class Depth:
    """Of the text so far; what stands in strings does not count."""

    def __init__(self) -> None:
        self._levels = 0
        self._within = b""
        """What has to stand before the next bytes: the quote of a string that has not ended, and
        the backslash before a character that has not come."""

    def feed(self, data: bytes) -> bool:
        """Read on.  False: it is nested more than ``DEEPEST`` times."""
        brackets = self._outside(self._within + data).translate(None, _NO_BRACKETS)
        opening = sum(map(brackets.count, (b"[", b"{")))
        if self._levels + opening > DEEPEST and self._highest(brackets) > DEEPEST:
            return False
        self._levels += 2 * opening - len(brackets)
        return True

    def _outside(self, text: bytes) -> bytes:
        """The text without its strings."""
        self._within = b""
        return _STRING.sub(self._cut, text)

    def _cut(self, string: re.Match[bytes]) -> bytes:
        if not string[1]:
            self._within = b'"' + string.string[string.end() :]
        return b""

    def _highest(self, brackets: bytes) -> int:
        levels = highest = self._levels
        for bracket in brackets:
            levels += 1 if bracket in _OPENING else -1
            highest = max(highest, levels)
        return highest
