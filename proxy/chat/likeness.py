"""Fuzzy equality of answers: what a client makes of a text when it renders it anew.

Linear measures with a length cap: an edit distance would let a hostile pair of texts stop the
proxy for seconds.
"""

from __future__ import annotations

import re
from collections import Counter

SHARE = 0.8
"""Answers are similar if they share at least this part of the larger one's words."""

MAX_CHARACTERS = 100_000
"""Words are compared within so many characters; longer texts must also be of similar length."""

# Scripts without spaces: kana, ideographs, Hangul and the supplementary ideographic planes.
_SPACELESS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")


def similar(a: str, b: str) -> bool:
    """Do two answers agree in letters and digits, or share at least 0.8 of their words?

    Case and order do not matter for words; a character of a script without spaces is a word.
    Texts without any letter or digit are similar only if they are equal but for white space.
    """
    if a == b:
        return True
    shorter, longer = sorted((len(a), len(b)))
    if longer > MAX_CHARACTERS and shorter < SHARE * longer:
        return False
    mine, theirs = _words(a), _words(b)
    if not mine or not theirs:
        return not mine and not theirs and a.split() == b.split()
    return "".join(mine) == "".join(theirs) or _shared(mine, theirs) >= SHARE


def is_prefix(a: str, b: str) -> bool:
    """Is one of two texts the beginning of the other, white space around them aside?

    The empty text is the beginning of nothing.
    """
    a, b = a.strip(), b.strip()
    return bool(a and b) and (a.startswith(b) or b.startswith(a))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_CHARACTERS].casefold())


def _shared(a: list[str], b: list[str]) -> float:
    common = (Counter(a) & Counter(b)).total()
    return common / max(len(a), len(b))
