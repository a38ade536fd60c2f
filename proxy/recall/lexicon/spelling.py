"""Makes patterns match text without its apostrophes and accents too, as people type.  Pure.

The patterns are widened once, so that texts need no preparation.
"""

from __future__ import annotations

import re
from unicodedata import normalize

# Sets stay as they are: a mark in brackets must be written ("d[á]").
_MARK = re.compile(r"\[[^\]]*\]|'|[À-ÖØ-öø-ɏآ-ئё]", re.IGNORECASE)
_UMLAUTS = frozenset("äöü")


def without_required_accents(pattern: str) -> str:
    """A pattern whose apostrophes and accents are optional; umlauts also match as "ae"."""
    return _MARK.sub(lambda match: _loose(match[0]), pattern)


def _loose(mark: str) -> str:
    if mark == "'":
        return "'?"
    plain = normalize("NFKD", mark)[0]
    if plain in (mark, "["):
        return mark
    return f"(?:{mark}|{plain}e?)" if mark in _UMLAUTS else f"[{mark}{plain}]"


def spellings(text: str) -> frozenset[str]:
    """Plain text as it is, and without all of its apostrophes and accents."""
    found = {text, _MARK.sub(lambda match: _bare(match[0]), text)}
    return frozenset({*found, _MARK.sub(lambda match: _bare(match[0], "e"), text)})


def _bare(mark: str, umlaut: str = "") -> str:
    plain = normalize("NFKD", mark)[0]
    return "" if mark == "'" else plain + umlaut * (mark in _UMLAUTS)
