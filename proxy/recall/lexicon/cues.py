"""Patterns that are only tried on texts that have a word without which they are not found.  Pure.

The lists of all languages make patterns of hundreds of ways to say something, and to look for each
of them at each place of a text takes longer than all else that is done with it.  Nearly all texts
have nothing of them.  So it is found out once, from the pattern itself, what pieces of words one of
which every text has that the pattern is found in, and a text is asked by its words: each is looked
at once, for all patterns together, and what was seen in it is remembered.

``Cue.within`` may be true where the pattern is not found, never the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple
from unicodedata import is_normalized, normalize

# The standard library's own reading of patterns: whatever `re` understands, this does.
_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")

LONGEST_WORD = 40
"""Longer ones (keys, URLs, texts without spaces) are known by their beginning."""

REMEMBERED = 8192
"""Words whose terms a process remembers: those that people use, a megabyte for each kind."""

# Kana, Han, Hangul; Thai, Lao, Burmese, Khmer; Han beyond the basic plane.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
UNSPACED += "\uf900-\ufaff\U00020000-\U0003ffff"
# The vowel signs of Indian scripts are no letters to `\w`.
INDIAN = "\u0900-\u0dff"

# Accents that stand alone, of Hebrew and Arabic (pointing is optional there), and the Arabic dash.
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")


EVERYTHING = -1
"""What a text is said to have that cannot be told by its words."""

_MOST_STRINGS = 64
"""Strings that parts may make together; more are not written out."""

_MOST_LETTERS = 256
"""A longer word is not looked at: to try the patterns takes no longer."""

_LONGEST = 8
"""Characters of a piece: of a longer one this much of its beginning tells enough."""

_EDGE = "\0"
"""Stands in a piece, and around a word, for where a word begins or ends."""

_RUN = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])(?:[^\W_]|[{INDIAN}]))+")
_ASCII_RUN = re.compile(r"[a-z0-9]+")
# To `re` a word ends at a vowel sign of these scripts, so that its edges are no edges here.
_EDGELESS = re.compile(rf"[{UNSPACED}{INDIAN}]")
_INDIAN = re.compile(rf"[{INDIAN}]")
# What stands alone and is no letter to `re`, and what becomes a letter and such a point.
_POINTED = re.compile("[\u0130\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")


# What becomes other marks when a text is folded; all else that changes may become letters.
_MARKS = re.compile(
    "[\u00a0\u2000-\u200a\u2026\u202f\u3000\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)


def fold(text: str) -> str:
    """What is the same to a reader made the same: width, ligatures, case, optional points."""
    if text.isascii():
        return text.lower()
    if not is_normalized("NFKC", text):
        text = normalize("NFKC", text)
    return _POINTS.sub("", text.casefold())


def _is_plain(text: str) -> bool:
    """Whether words have the same letters before a text is folded and afterwards."""
    return is_normalized("NFKC", text) or is_normalized("NFKC", _MARKS.sub(" ", text))


def _plain(text: str) -> str:
    """Folded, and the letters made the same that are the same to ``re.IGNORECASE`` alone."""
    return fold(text).replace("ı", "i")


class Cue:
    """A pattern and the bit that says whether a text may have it."""

    def __init__(self, pattern: re.Pattern[str], bit: int) -> None:
        self.pattern, self._bit = pattern, bit

    def __repr__(self) -> str:
        return f"<Cue [bit: {self._bit.bit_length() - 1}]>"

    def within(self, seen: int) -> bool:
        """Whether it may be found in a text of which so much was ``seen``."""
        return bool(seen & self._bit)

    def search(self, text: str, seen: int) -> re.Match[str] | None:
        return self.pattern.search(text) if seen & self._bit else None


class Cues:
    """All patterns that are asked for together."""

    def __init__(self) -> None:
        self._bits = 0
        self._always = 0
        self._pieces: dict[str, int] = {}
        self._in_word = lru_cache(maxsize=REMEMBERED)(self._find)

    def cue(self, pattern: re.Pattern[str]) -> Cue:
        """A pattern from now on looked for with the others."""
        bit = 1 << self._bits
        self._bits += 1
        found = pieces(pattern)
        for piece in found:
            self._pieces[piece] = self._pieces.get(piece, 0) | bit
        self._always |= 0 if found else bit
        self._in_word.cache_clear()
        return Cue(pattern, bit)

    def seen(self, text: str, folded: str) -> int:
        """Which of them a text may have; ``folded`` is the text, folded."""
        if text.isascii():
            return self._seen(set(_ASCII_RUN.findall(folded)))
        if _POINTED.search(text) or not _is_plain(text):
            return EVERYTHING
        return self._seen(set(_RUN.findall(folded.replace("ı", "i"))))

    def _seen(self, found: Iterable[str]) -> int:
        seen = self._always
        for word in found:
            seen |= self._in_word(word) if len(word) <= LONGEST_WORD else self._find(word)
        return seen

    def _find(self, word: str) -> int:
        if len(word) > _MOST_LETTERS or (_INDIAN.search(word) and _INDIAN.sub("", word)):
            return EVERYTHING
        seen, padded, known = 0, f"{_EDGE}{word}{_EDGE}", self._pieces
        for at in range(len(padded)):
            for end in range(at + 1, min(at + _LONGEST, len(padded)) + 1):
                seen |= known.get(padded[at:end], 0)
        return seen


Strings = frozenset[str]
"""Strings one of which a text has; ``_EDGE`` in them is where a word begins or ends."""


class _Part(NamedTuple):
    """A part of a pattern: all that it may stand for, None if that is not to be written out, and
    what one of is in whatever it stands for, None if nothing is known of that."""

    exact: Strings | None = None
    needed: Strings | None = None


_EMPTY = _Part(frozenset([""]))
_ANYTHING = _Part()
_BETWEEN_WORDS = _Part(frozenset([_EDGE]))


def pieces(pattern: re.Pattern[str]) -> Strings:
    """Pieces of words, one of which is in every text that a pattern is found in; none: unknown."""
    part = _sequence(_parser.parse(pattern.pattern, pattern.flags))
    found = part.exact or part.needed
    return (
        frozenset(_piece(each)[:_LONGEST] for each in found)
        if found and _worth(found)
        else frozenset()
    )


@lru_cache(maxsize=4096)
def _piece(string: str) -> str:
    """The longest piece of a string that is in a word of each text that has the string."""
    plain = _plain(string)
    return max((_cut(plain, run.span()) for run in _RUN.finditer(plain)), key=_tells, default="")


def _tells(piece: str) -> int:
    """How much a piece tells: numbers are in many texts."""
    return min(len(piece), 1) if piece.strip(_EDGE).isdigit() else 2 * len(piece)


def _cut(string: str, span: tuple[int, int]) -> str:
    start, end = span
    piece = string[start:end]
    if _EDGELESS.search(piece):
        return piece
    return f"{_EDGE if start else ''}{piece}{_EDGE if end < len(string) else ''}"


@lru_cache(maxsize=1024)
def _worth(strings: Strings) -> int:
    """How much it tells that one of these is in a text; 0: it cannot be told by words."""
    return min((_tells(_piece(each)) for each in strings), default=0)


def _better(one: Strings | None, other: Strings | None) -> Strings | None:
    """Which of two tells more."""
    return max((each for each in (one, other) if each and _worth(each)), key=_worth, default=None)


def _sequence(items: Sequence[Any], before: bool = False, after: bool = False) -> _Part:
    """Parts that follow each other; ``before``, ``after``: there a word begins, or ends."""
    exact, needed, lead = frozenset([""]), None, _EDGE if before else ""
    whole = True
    for place, item in enumerate(items):
        last = place + 1 == len(items)
        starts = before if not place else all(each.endswith(_EDGE) for each in exact)
        part = _part(item, starts, after if last else _is_edge(items[place + 1]))
        if part.exact is not None and _few(exact, part.exact):
            exact = frozenset(map("".join, product(exact, part.exact)))
            continue
        needed = _better(_better(needed, _around(exact, lead)), part.needed)
        whole, lead = False, _EDGE if starts and part.exact else ""
        exact = part.exact or frozenset([_EDGE if _is_edge(item) else ""])
    if whole:
        return _Part(exact)
    return _Part(None, _better(needed, _around(exact, lead, _EDGE if after else "")))


def _around(strings: Strings, before: str, after: str = "") -> Strings:
    if not (before or after):
        return strings
    return frozenset(f"{before}{each}{after}" for each in strings)


def _few(one: Strings, other: Strings) -> bool:
    return min(len(one), len(other)) == 1 or len(one) * len(other) <= _MOST_STRINGS


def _is_edge(item: Any) -> bool:
    """Whether a word ends where this part begins."""
    if item is None:
        return False
    kind, value = item
    if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        least, _, items = value
        return bool(least) and len(items) == 1 and _is_edge(items[0])
    return kind in (_constants.AT, _constants.IN) and _part(item).exact == _BETWEEN_WORDS.exact


def _part(item: Any, before: bool = False, after: bool = False) -> _Part:
    kind, value = item
    if kind is _constants.LITERAL:
        return _Part(frozenset([chr(value)]))
    if kind is _constants.IN:
        return _set(value)
    if kind is _constants.AT:
        return _EMPTY if value is _constants.AT_NON_BOUNDARY else _BETWEEN_WORDS
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return _EMPTY
    if kind is _constants.SUBPATTERN:
        return _sequence(value[-1], before, after)
    if kind is _constants.ATOMIC_GROUP:
        return _sequence(value, before, after)
    if kind is _constants.BRANCH:
        return _branch(value[1], before, after)
    if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        return _repeated(*value)
    return _ANYTHING


def _branch(ways: Iterable[Sequence[Any]], before: bool, after: bool) -> _Part:
    edges = (_EDGE if before else "", _EDGE if after else "")
    found = [_sequence(way, before, after) for way in ways]
    if all(each.exact is not None for each in found):
        return _Part(frozenset().union(*(each.exact or () for each in found)))
    needed = [_around(each.exact, *edges) if each.exact else each.needed for each in found]
    if not all(each and _worth(each) for each in needed):
        return _ANYTHING
    return _Part(None, frozenset().union(*(each or () for each in needed)))


def _repeated(least: int, most: int, items: Sequence[Any]) -> _Part:
    part = _sequence(items)
    if part.exact == _BETWEEN_WORDS.exact:
        return _BETWEEN_WORDS if least else _Part(frozenset(["", _EDGE]))
    if part.exact is not None and (least, most) == (0, 1):
        return _Part(part.exact | {""})
    if part.exact is not None and least == most == 1:
        return part
    return _Part(None, part.needed) if least else _ANYTHING


_FEW = 16
"""Characters of a set that are written out."""


def _set(members: Sequence[Any]) -> _Part:
    """One character of several."""
    if any(kind is _constants.NEGATE for kind, _ in members):
        return _ANYTHING
    found = list(_characters(members))
    if None in found:
        return _ANYTHING
    characters = "".join(each for each in found if each is not None)
    if not _RUN.search(_plain(characters)):
        return _BETWEEN_WORDS
    return _Part(frozenset(characters)) if len(characters) <= _FEW else _ANYTHING


def _characters(members: Sequence[Any]) -> Iterator[str | None]:
    """The characters of a set; None for those that are too many."""
    for kind, value in members:
        if kind is _constants.LITERAL:
            yield chr(value)
        elif kind is _constants.RANGE:
            first, last = value
            yield "".join(map(chr, range(first, last + 1))) if last - first < _FEW else None
        else:
            yield " " if value is _constants.CATEGORY_SPACE else None


CUES = Cues()
"""Those of questions, days, small talk and standing instructions."""


def cue(pattern: str, flags: int = 0) -> Cue:
    """A pattern that is asked for together with all others."""
    return CUES.cue(re.compile(pattern, flags))
