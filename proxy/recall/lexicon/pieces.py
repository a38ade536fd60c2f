"""Pieces of words that tell of a pattern without looking for it.  Pure.

From what a pattern may stand for it follows what each text has that the pattern is found in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from proxy.recall.lexicon.folding import INDIAN, RUN, UNSPACED, fold, letters
from proxy.recall.lexicon.regex import (
    FEW,
    Either,
    Many,
    NotUnderstoodError,
    OneOf,
    Part,
    Parts,
    Text,
    parse,
)

_LONGEST = 8
"""Characters of a piece: of a longer one this much of its beginning tells enough."""

EDGE = "\0"
"""Stands in a piece, and around a word, for where a word begins or ends."""

_MOST_STRINGS = 64
"""Strings that parts may make together; more are not written out."""

# To `re` a word ends at a vowel sign of these scripts, so that its edges are no edges here.
_EDGELESS = re.compile(rf"[{UNSPACED}{INDIAN}]")

Strings = frozenset[str]
"""Strings one of which a text has; ``EDGE`` in them is where a word begins or ends."""


class _Told(NamedTuple):
    """A part of a pattern: all that it may stand for, None if that is not to be written out, and
    what one of is in whatever it stands for, None if nothing is known of that."""

    exact: Strings | None = None
    needed: Strings | None = None


_ANYTHING = _Told()
_BETWEEN_WORDS = _Told(frozenset([EDGE]))


def pieces(pattern: str) -> Strings:
    """Pieces of words, one of which is in every text that a pattern is found in; none: unknown."""
    try:
        told = _sequence(parse(pattern))
    except NotUnderstoodError:
        return frozenset()
    found = told.exact or told.needed
    if not found or not _worth(found):
        return frozenset()
    return frozenset(_piece(each)[:_LONGEST] for each in found)


@lru_cache(maxsize=4096)
def _piece(string: str) -> str:
    """The longest piece of a string that is in a word of each text that has the string."""
    plain = letters(fold(string))
    return max((_cut(plain, run.span()) for run in RUN.finditer(plain)), key=_tells, default="")


def _tells(piece: str) -> int:
    """How much a piece tells: numbers are in many texts."""
    return min(len(piece), 1) if piece.strip(EDGE).isdigit() else 2 * len(piece)


def _cut(string: str, span: tuple[int, int]) -> str:
    start, end = span
    piece = string[start:end]
    if _EDGELESS.search(piece):
        return piece
    return f"{EDGE if start else ''}{piece}{EDGE if end < len(string) else ''}"


@lru_cache(maxsize=1024)
def _worth(strings: Strings) -> int:
    """How much it tells that one of these is in a text; 0: it cannot be told by words."""
    return min((_tells(_piece(each)) for each in strings), default=0)


def _better(one: Strings | None, other: Strings | None) -> Strings | None:
    """Which of two tells more."""
    return max((each for each in (one, other) if each and _worth(each)), key=_worth, default=None)


def _sequence(parts: Parts, before: bool = False, after: bool = False) -> _Told:
    """Parts that follow each other; ``before``, ``after``: there a word begins, or ends."""
    exact, needed, lead = frozenset([""]), None, EDGE if before else ""
    whole = True
    for place, part in enumerate(parts):
        last = place + 1 == len(parts)
        starts = before if not place else all(each.endswith(EDGE) for each in exact)
        told = _part(part, starts, after if last else _is_edge(parts[place + 1]))
        if told.exact is not None and _few(exact, told.exact):
            exact = frozenset(map("".join, product(exact, told.exact)))
            continue
        needed = _better(_better(needed, _around(exact, lead)), told.needed)
        whole, lead = False, EDGE if starts and told.exact else ""
        exact = told.exact or frozenset([EDGE if _is_edge(part) else ""])
    if whole:
        return _Told(exact)
    return _Told(None, _better(needed, _around(exact, lead, EDGE if after else "")))


def _around(strings: Strings, before: str, after: str = "") -> Strings:
    if not (before or after):
        return strings
    return frozenset(f"{before}{each}{after}" for each in strings)


def _few(one: Strings, other: Strings) -> bool:
    return min(len(one), len(other)) == 1 or len(one) * len(other) <= _MOST_STRINGS


def _is_edge(part: Part) -> bool:
    """Whether a word ends where this part begins."""
    if isinstance(part, Many):
        return bool(part.least) and len(part.parts) == 1 and _is_edge(part.parts[0])
    return isinstance(part, OneOf) and _set(part) == _BETWEEN_WORDS


def _part(part: Part, before: bool, after: bool) -> _Told:
    match part:
        case Text(text):
            return _Told(frozenset([text]))
        case OneOf():
            return _set(part)
        case Either(ways):
            return _branch(ways, before, after)
        case Many(least, most, parts):
            return _repeated(least, most, parts)


def _branch(ways: Iterable[Parts], before: bool, after: bool) -> _Told:
    edges = (EDGE if before else "", EDGE if after else "")
    found = [_sequence(way, before, after) for way in ways]
    if all(each.exact is not None for each in found):
        return _Told(frozenset().union(*(each.exact or () for each in found)))
    needed = [_around(each.exact, *edges) if each.exact else each.needed for each in found]
    if not all(each and _worth(each) for each in needed):
        return _ANYTHING
    return _Told(None, frozenset().union(*(each or () for each in needed)))


def _repeated(least: int, most: int | None, parts: Parts) -> _Told:
    told = _sequence(parts)
    if told.exact == _BETWEEN_WORDS.exact:
        return _BETWEEN_WORDS if least else _Told(frozenset(["", EDGE]))
    if told.exact is not None and (least, most) == (0, 1):
        return _Told(told.exact | {""})
    if told.exact is not None and least == most == 1:
        return told
    return _Told(None, told.needed) if least else _ANYTHING


def _set(one: OneOf) -> _Told:
    """One character of several."""
    if one.characters is None:
        return _ANYTHING
    if not RUN.search(letters(fold(one.characters))):
        return _BETWEEN_WORDS
    return _Told(frozenset(one.characters)) if len(one.characters) <= FEW else _ANYTHING
