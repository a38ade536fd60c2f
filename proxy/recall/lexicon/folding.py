"""Text normalisation (case, width, ligatures, optional points), and where words are.  Pure."""

from __future__ import annotations

import re
from typing import Literal
from unicodedata import is_normalized, normalize

# Kana, Han, Hangul; Thai, Lao, Burmese, Khmer; Han beyond the basic plane.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
UNSPACED += "\uf900-\ufaff\U00020000-\U0003ffff"
# The vowel signs of Indian scripts are no letters to `\w`.
INDIAN = "\u0900-\u0dff"

RUN = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])(?:[^\W_]|[{INDIAN}]))+")
"""A word, or a run of a script that puts no spaces between words."""

# Accents that stand alone, of Hebrew and Arabic (pointing is optional there), and the Arabic dash.
_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")

_CROWD = re.compile(r"\W{30}")
# Of kana of half width: letters that become accents.
_VOICED, _SEMI_VOICED = ("\uff9e", "\u3099"), ("\uff9f", "\u309a")

_SHORT = 4096

# Ends before white space, where it can: accents stay with their letters.
_PIECE = re.compile(r".{1,2048}(?!\S)|.{1,2048}", re.DOTALL)

# What becomes other marks when a text is folded; all else that changes may become letters.
_MARKS = re.compile(
    "[\u00a0\u2000-\u200a\u2026\u202f\u3000\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)


def normalized(text: str, form: Literal["NFKC", "NFKD"] = "NFKC") -> str:
    """A text in a Unicode normalisation form, in linear time.

    Sorting the accents of one letter takes quadratic time, so a joiner is put after every thirty of
    them (UAX #15, stream-safe text format).
    """
    text = text.replace(*_VOICED).replace(*_SEMI_VOICED)
    if not is_normalized("NFC", text):
        text = _CROWD.sub("\\g<0>\u034f", text)
    return normalize(form, text)


def fold(text: str) -> str:
    """A text without differences of case, width, ligatures and optional points."""
    if text.isascii():
        return text.lower()
    if not is_normalized("NFKC", text):
        text = normalized(text)
    return _POINTS.sub("", text.casefold())


def max_normalized_length(text: str) -> int:
    """The maximum number of characters of a normalised text that are read: one letter may become
    eighteen, so that a long text could become far longer."""
    return max(_SHORT, 2 * len(text))


def fold_beginning(text: str, max_length: int) -> str:
    """The first ``max_length`` characters of a text, folded.  The result has at most ``max_length``
    characters, and at most ``max_normalized_length`` of them."""
    text = text[:max_length]
    if text.isascii() or is_normalized("NFKC", text):
        return fold(text)
    pieces: list[str] = []
    left = min(max_length, max_normalized_length(text))
    for piece in _PIECE.finditer(text):
        pieces.append(fold(piece[0])[:left])
        left -= len(pieces[-1])
        if not left:
            break
    return "".join(pieces)


def keeps_letters_when_folded(text: str) -> bool:
    """Whether folding a text leaves the letters of its words as they are."""
    return is_normalized("NFKC", text) or is_normalized("NFKC", _MARKS.sub(" ", text))


def with_i_for_dotless_i(folded: str) -> str:
    """Folded text with "i" for "ı", which are the same to ``re.IGNORECASE`` but not to folding."""
    return folded.replace("ı", "i")
