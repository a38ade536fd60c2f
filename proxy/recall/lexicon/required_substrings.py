"""The strings that a text must contain one of for a pattern to match: a prefilter.  Pure.

As in RE2 (``re2/prefilter.h``) and in Cox 2012, "Regular Expression Matching with a Trigram Index",
each part of a pattern has the strings that it may match, or else some of which one is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from proxy.recall.lexicon.folding import INDIAN, RUN, UNSPACED, fold, with_i_for_dotless_i
from proxy.recall.lexicon.regex import (
    FEW,
    Alternatives,
    CharacterSet,
    LiteralText,
    NotUnderstoodError,
    Part,
    Parts,
    Repetition,
    parse,
)
from proxy.recall.lexicon.stop_words import ALL_STOP_WORDS

_MAX_PIECE = 8
"""Characters of a piece: of a longer one this much of its beginning is enough."""

EDGE = "\0"
"""Stands in a piece, and around a word, for where a word begins or ends."""

_MAX_STRINGS = 64
"""Strings that parts may make together; more are not written out."""

# To `re` a word ends at a vowel sign of these scripts, so that its edges are no edges here.
_EDGELESS = re.compile(rf"[{UNSPACED}{INDIAN}]")

Strings = frozenset[str]
"""Strings one of which a text has; ``EDGE`` in them is where a word begins or ends."""


class _Literals(NamedTuple):
    """Of a part of a pattern.

    ``exact``: all that it matches, None if that is too much to be written out.  ``required``: one
    of these is in whatever it matches, None if nothing is known of that.
    """

    exact: Strings | None = None
    required: Strings | None = None


_ANYTHING = _Literals()
_BETWEEN_WORDS = _Literals(frozenset([EDGE]))


def pieces(pattern: str) -> Strings:
    """Pieces of words, one of which is in every text that a pattern matches; empty if unknown."""
    try:
        literals = _sequence(parse(pattern))
    except NotUnderstoodError:
        return frozenset()
    found = literals.exact or literals.required
    if not found or not _least_selectivity(found):
        return frozenset()
    return frozenset(_piece(each)[:_MAX_PIECE] for each in found)


@lru_cache(maxsize=4096)
def _piece(string: str) -> str:
    """The longest piece of a string that is in a word of each text that has the string."""
    plain = with_i_for_dotless_i(fold(string))
    return max(
        (_cut(plain, run.span()) for run in RUN.finditer(plain)), key=_selectivity, default=""
    )


def _selectivity(piece: str) -> int:
    """How few texts have a piece, the higher the fewer: numbers and function words are in many."""
    word = piece.strip(EDGE)
    if word.isdigit():
        return 1
    return len(piece) if word in ALL_STOP_WORDS else 2 * len(piece)


def _cut(string: str, span: tuple[int, int]) -> str:
    start, end = span
    piece = string[start:end]
    if _EDGELESS.search(piece):
        return piece
    return f"{EDGE if start else ''}{piece}{EDGE if end < len(string) else ''}"


@lru_cache(maxsize=1024)
def _least_selectivity(strings: Strings) -> int:
    """The least selectivity of these; 0: a text may have one in no word."""
    return min((_selectivity(_piece(each)) for each in strings), default=0)


def _most_selective(*those: Strings | None) -> Strings | None:
    """The first of the most selective ones; None where none is selective at all."""
    some = (each for each in those if each and _least_selectivity(each))
    return max(some, key=_least_selectivity, default=None)


def _sequence(parts: Parts, before: bool = False, after: bool = False) -> _Literals:
    """Parts that follow each other; ``before``, ``after``: there a word begins, or ends."""
    exact, required, lead = frozenset([""]), None, EDGE if before else ""
    whole = True
    for place, part in enumerate(parts):
        last = place + 1 == len(parts)
        starts = before if not place else all(each.endswith(EDGE) for each in exact)
        literals = _part(part, starts, after if last else _is_edge(parts[place + 1]))
        if literals.exact is not None and _few(exact, literals.exact):
            exact = frozenset(map("".join, product(exact, literals.exact)))
            continue
        required = _most_selective(required, _around(exact, lead), literals.required)
        whole, lead = False, EDGE if starts and literals.exact else ""
        exact = literals.exact or frozenset([EDGE if _is_edge(part) else ""])
    if whole:
        return _Literals(exact)
    return _Literals(None, _most_selective(required, _around(exact, lead, EDGE if after else "")))


def _around(strings: Strings, before: str, after: str = "") -> Strings:
    if not (before or after):
        return strings
    return frozenset(f"{before}{each}{after}" for each in strings)


def _few(one: Strings, other: Strings) -> bool:
    return min(len(one), len(other)) == 1 or len(one) * len(other) <= _MAX_STRINGS


def _is_edge(part: Part) -> bool:
    """Whether a word ends where this part begins."""
    if isinstance(part, Repetition):
        return bool(part.least) and len(part.parts) == 1 and _is_edge(part.parts[0])
    return isinstance(part, CharacterSet) and _set(part) == _BETWEEN_WORDS


def _part(part: Part, before: bool, after: bool) -> _Literals:
    match part:
        case LiteralText(text):
            return _Literals(frozenset([text]))
        case CharacterSet():
            return _set(part)
        case Alternatives(ways):
            return _branch(ways, before, after)
        case Repetition(least, most, parts):
            return _repeated(least, most, parts)


def _branch(ways: Iterable[Parts], before: bool, after: bool) -> _Literals:
    edges = (EDGE if before else "", EDGE if after else "")
    found = [_sequence(way, before, after) for way in ways]
    if all(each.exact is not None for each in found):
        return _Literals(frozenset().union(*(each.exact or () for each in found)))
    required = [_around(each.exact, *edges) if each.exact else each.required for each in found]
    if not all(each and _least_selectivity(each) for each in required):
        return _ANYTHING
    return _Literals(None, frozenset().union(*(each or () for each in required)))


def _repeated(least: int, most: int | None, parts: Parts) -> _Literals:
    literals = _sequence(parts)
    if literals.exact == _BETWEEN_WORDS.exact:
        return _BETWEEN_WORDS if least else _Literals(frozenset(["", EDGE]))
    if literals.exact is not None and (least, most) == (0, 1):
        return _Literals(literals.exact | {""})
    if literals.exact is not None and least == most == 1:
        return literals
    return _Literals(None, literals.required) if least else _ANYTHING


def _set(one: CharacterSet) -> _Literals:
    """One character of several."""
    if one.characters is None:
        return _ANYTHING
    if not RUN.search(with_i_for_dotless_i(fold(one.characters))):
        return _BETWEEN_WORDS
    return _Literals(frozenset(one.characters)) if len(one.characters) <= FEW else _ANYTHING
