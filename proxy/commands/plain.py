"""Stored text on its way to a terminal.  Pure.

It is whatever somebody once said: escape sequences, controls and marks that turn the direction of
writing around are shown, not obeyed (Unicode TR36, section 3.6).
"""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""Needed to write some languages, and families of emoji."""


def plain(text: str) -> str:
    """The text with every character that a terminal would act on replaced by its name."""
    return "".join(_shown(character) for character in text)


def line(text: str) -> str:
    """The same in one line."""
    return plain(" ".join(text.split()))


def _shown(character: str) -> str:
    if character in _KEPT or character in _JOINERS:
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"\\u{{{code:x}}}"
