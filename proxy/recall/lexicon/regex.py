"""The parts of a regular expression, as much of it as the files of languages use.  Pure.

Read to find out what a pattern needs, never to match with it.  What is not understood is said to be
so, and nothing is concluded from it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

FEW = 16
"""Characters of a set that are written out."""


class Text(NamedTuple):
    """Characters that stand for themselves; none where only the place counts."""

    text: str


class OneOf(NamedTuple):
    """One character of these; of none, a place between characters; None: of too many to say."""

    characters: str | None


class Either(NamedTuple):
    """One of several ways to go on."""

    ways: tuple[Parts, ...]


class Many(NamedTuple):
    """The same parts so often; ``most`` is None where there is no end."""

    least: int
    most: int | None
    parts: Parts


Part: TypeAlias = "Text | OneOf | Either | Many"
Parts: TypeAlias = "tuple[Part, ...]"

NOTHING = Text("")
BORDER = OneOf("")
"""Where a word begins or ends, or the text does."""
ANY = OneOf(None)


class NotUnderstoodError(ValueError):
    """A pattern that says something which is not read here."""


def parse(pattern: str) -> Parts:
    """The parts of a pattern that ``re`` can compile, in their order.

    Raises NotUnderstoodError.
    """
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
_PLACES: dict[str, Part] = {"b": BORDER, "A": BORDER, "Z": BORDER, "B": NOTHING}


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self.at = pattern, 0

    def ways(self) -> Parts:
        """Up to the end of the group, or of the pattern."""
        found = [self._parts()]
        while self._next() == "|":
            self.at += 1
            found.append(self._parts())
        return found[0] if len(found) == 1 else (Either(tuple(found)),)

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
            return (Many(*_BOUNDS[times["sign"]], parts),)
        least = int(times["least"] or 0)
        if not times["to"]:
            return (Many(least, least, parts),)
        return (Many(least, int(times["most"]) if times["most"] else None, parts),)

    def _part(self) -> Parts:
        plain = _PLAIN.match(self._pattern, self.at)
        if plain is not None:
            return (Text(self._plain(plain.end())),)
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
        return (NOTHING,) if opening["look"] else found

    def _escaped(self) -> Part:
        """Outside of a set."""
        place = _PLACES.get(self._pattern[self.at + 1])
        if place is not None:
            self.at += 2
            return place
        found = self._character()
        if found is None:
            return ANY
        return OneOf(" ") if found == _SPACE else Text(found)

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
            return ANY
        return OneOf("".join(filter(None, found)))

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
_SIGNS: dict[str, Part] = {".": ANY, "^": BORDER, "$": BORDER, "{": Text("{")}
