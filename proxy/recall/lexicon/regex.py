"""The parts of a regular expression, as much of it as the files of languages use.  Pure.

Parsed to find out what a pattern requires, never to match with it.  Unsupported syntax raises
``NotUnderstoodError``; then nothing is concluded from the pattern.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

FEW = 16
"""Characters of a set that are written out."""


class LiteralText(NamedTuple):
    """Literal characters; none for what matches without consuming any."""

    text: str


class CharacterSet(NamedTuple):
    """One of these characters; "": a position between characters; None: too many to list."""

    characters: str | None


class Alternatives(NamedTuple):
    """One of several sequences of parts."""

    ways: tuple[Parts, ...]


class Repetition(NamedTuple):
    """Parts repeated from ``least`` to ``most`` times; None: without limit."""

    least: int
    most: int | None
    parts: Parts


Part: TypeAlias = "LiteralText | CharacterSet | Alternatives | Repetition"
Parts: TypeAlias = "tuple[Part, ...]"

EMPTY_TEXT = LiteralText("")
WORD_BOUNDARY = CharacterSet("")
"""Where a word begins or ends, or the text does."""
ANY_CHARACTER = CharacterSet(None)


class NotUnderstoodError(ValueError):
    """A pattern with syntax that is not supported here."""


def parse(pattern: str) -> Parts:
    """The parts of a pattern that ``re`` can compile, in their order.  Raises
    NotUnderstoodError."""
    reader = _Reader(pattern)
    found = reader.ways()
    if reader.at < len(pattern):
        raise NotUnderstoodError(pattern)
    return found


_PLAIN = re.compile(r"[^\\\[(){|*+?.^$]+")
_TIMES = re.compile(r"(?:(?P<sign>[*+?])|\{(?!\})(?P<least>\d*)(?P<to>,?)(?P<most>\d*)\})[?+]?")
_BOUNDS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUP = re.compile(r"\((?:\?(?:P<\w+>|[aims-]*:|>|(?P<look><?[=!])))?(?!\?)")
_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_PLACES: dict[str, Part] = {
    "b": WORD_BOUNDARY,
    "A": WORD_BOUNDARY,
    "Z": WORD_BOUNDARY,
    "B": EMPTY_TEXT,
}


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self.at = pattern, 0

    def ways(self) -> Parts:
        """Up to the end of the group, or of the pattern."""
        found = [self._parts()]
        while self._next() == "|":
            self.at += 1
            found.append(self._parts())
        return found[0] if len(found) == 1 else (Alternatives(tuple(found)),)

    def _next(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _parts(self) -> Parts:
        found: list[Part] = []
        while self._next() not in ("", "|", ")"):
            found += self._repeated(self._part())
        return tuple(found)

    def _repeated(self, parts: Parts) -> Parts:
        times = _TIMES.match(self._pattern, self.at)
        if times is None:
            return parts
        self.at = times.end()
        if times["sign"]:
            return (Repetition(*_BOUNDS[times["sign"]], parts),)
        least = int(times["least"] or 0)
        if not times["to"]:
            return (Repetition(least, least, parts),)
        return (Repetition(least, int(times["most"]) if times["most"] else None, parts),)

    def _part(self) -> Parts:
        plain = _PLAIN.match(self._pattern, self.at)
        if plain is not None:
            return (LiteralText(self._plain(plain.end())),)
        if self._next() == "(":
            return self._group()
        if self._next() == "[":
            return (self._set(),)
        if self._next() == "\\":
            return (self._escaped(),)
        self.at += 1
        return (_SIGNS[self._pattern[self.at - 1]],)

    def _plain(self, end: int) -> str:
        """What is repeated is the last character alone."""
        if end - self.at > 1 and _TIMES.match(self._pattern, end):
            end -= 1
        start, self.at = self.at, end
        return self._pattern[start:end]

    def _group(self) -> Parts:
        opening = _GROUP.match(self._pattern, self.at)
        if opening is None:
            raise NotUnderstoodError(self._pattern)
        self.at = opening.end()
        found = self.ways()
        self.at += 1
        return (EMPTY_TEXT,) if opening["look"] else found

    def _escaped(self) -> Part:
        """Outside of a set."""
        place = _PLACES.get(self._pattern[self.at + 1])
        if place is not None:
            self.at += 2
            return place
        found = self._character()
        if found is None:
            return ANY_CHARACTER
        return CharacterSet(" ") if found == _SPACE else LiteralText(found)

    def _character(self) -> str | None:
        """What an escape stands for; None: any of too many characters."""
        code = _CODE.match(self._pattern, self.at)
        if code is not None:
            self.at = code.end()
            return chr(int(code[1] or code[2] or code[3], 16))
        letter = self._pattern[self.at + 1]
        self.at += 2
        if letter in "dDwWS":
            return None
        if letter == "s":
            return _SPACE
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter.isalnum():
            raise NotUnderstoodError(self._pattern)
        return letter

    def _set(self) -> Part:
        self.at += 1
        others = self._next() == "^"
        self.at += others
        first, found = self.at, list[str | None]()
        while self._next() != "]" or self.at == first:
            found.append(self._members())
        self.at += 1
        if others or None in found:
            return ANY_CHARACTER
        return CharacterSet("".join(filter(None, found)))

    def _members(self) -> str | None:
        """A character of a set, or those from one to another."""
        start = self._member()
        if self._next() != "-" or self._pattern[self.at + 1] == "]":
            return " " if start == _SPACE else start
        self.at += 1
        end = self._member()
        if start is None or end is None or ord(end) - ord(start) >= FEW:
            return None
        return "".join(map(chr, range(ord(start), ord(end) + 1)))

    def _member(self) -> str | None:
        if self._pattern.startswith("\\b", self.at):  # a backspace, here
            self.at += 2
            return "\b"
        if self._next() == "\\":
            return self._character()
        self.at += 1
        return self._pattern[self.at - 1]


_SPACE = "\\s"
"""Stands for any white space."""
_SIGNS: dict[str, Part] = {
    ".": ANY_CHARACTER,
    "^": WORD_BOUNDARY,
    "$": WORD_BOUNDARY,
    "{": LiteralText("{"),
}
