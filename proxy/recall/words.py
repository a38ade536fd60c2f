"""Texts to words: split by script, lower case, bounded.  Pure.

Scripts that put spaces between words give words.  Those that do not (Chinese, Japanese, Korean,
Thai ...) give each character and each pair of neighbours, the usual way to find words in them
without a dictionary; Korean does have spaces, but its words carry particles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import is_normalized, normalize

MOST_CHARACTERS = 65_536
"""What is read of a text: nobody looks for word 15,000 of a message, and time must be bounded."""

LONGEST_WORD = 40
"""Longer ones (keys, URLs, texts without spaces) are known by their beginning."""

# Kana, Han, Hangul; Thai, Lao, Burmese, Khmer; Han beyond the basic plane.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
UNSPACED += "\uf900-\ufaff\U00020000-\U0003ffff"
# The vowel signs of Indian scripts are no letters to `\w`.
INDIAN = "\u0900-\u0dff"

_ASCII = re.compile(r"\d+(?:,\d\d\d)+(?!\d)|[a-z0-9]+")
_ANY = re.compile(
    rf"[{UNSPACED}]+|\d+(?:,\d\d\d)+(?!\d)|(?:(?![{UNSPACED}])(?:[^\W_]|[{INDIAN}]))+"
)
_UNSPACED = re.compile(rf"[{UNSPACED}]")
# Accents that stand alone, of Hebrew and Arabic (pointing is optional there), and the Arabic dash.
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")


class Word(NamedTuple):
    """A word; ``unspaced``: a run of a script without spaces, any length."""

    text: str
    unspaced: bool = False


def fold(text: str) -> str:
    """What is the same to a reader made the same: width, ligatures, case, optional points."""
    if text.isascii():
        return text.lower()
    if not is_normalized("NFKC", text):
        text = normalize("NFKC", text)
    return _POINTS.sub("", text.casefold())


def words(text: str) -> list[Word]:
    """The words of a text in their order, folded, at most ``MOST_CHARACTERS`` of it."""
    folded = fold(text[:MOST_CHARACTERS])
    if folded.isascii():
        return [Word(_plain(word)) for word in _ASCII.findall(folded)]
    return [_word(run) for run in _ANY.findall(folded)]


def is_unspaced(run: str) -> bool:
    """Whether a run is of a script without spaces."""
    return _UNSPACED.match(run) is not None


def _word(run: str) -> Word:
    if is_unspaced(run):
        return Word(run, True)
    return Word(_plain(run))


def _plain(word: str) -> str:
    return word.replace(",", "")[:LONGEST_WORD]


def grams(run: str) -> Iterator[str]:
    """The characters and the pairs of neighbours of a run without spaces."""
    yield from run
    for first, second in zip(run, run[1:], strict=False):
        yield first + second
