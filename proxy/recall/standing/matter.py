"""What a standing instruction is about: words cut to stems, and when it applies.  Pure.

Cutting words to their first letters does for stemming in many languages at once (McNamee and
Mayfield, Character N-Gram Tokenization for European Language Text Retrieval, 2004).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from proxy.recall.lexicon.loader import LANGUAGES, any_of, compiled, patterns, vocabulary

STEM = 5
"""Letters kept of a word."""

_WORD = re.compile(r"[一-鿿]+|[ァ-ヶー]{2,}|[가-힣]+|[^\W_぀-ヿ一-鿿가-힣]{2,}")
_HAN = re.compile(r"[一-鿿]")
_HANGUL = re.compile(r"[가-힣]")
_ARTICLE = compiled("^" + any_of(lambda each: each.standing.articles))


def fold(word: str) -> str:
    """Small letters without accents; without an article that is written together with it."""
    plain = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _ARTICLE.sub("", plain)


_STOPS = frozenset(map(fold, vocabulary(lambda each: each.standing.general)))
_GENERAL_UNSPACED = compiled(any_of(lambda each: each.standing.general_unspaced))
_VALUE_OF = {
    fold(word): f"<{value}>"
    for each in LANGUAGES
    for value, words in each.standing.values.items()
    for word in words.split()
}


def _unspaced(value: str) -> re.Pattern[str]:
    of = patterns(lambda each: each.standing.unspaced_values.get(value, ()))
    return compiled("|".join(of))


_UNSPACED_VALUES = {
    f"<{value}>": _unspaced(value)
    for value in sorted({name for each in LANGUAGES for name in each.standing.unspaced_values})
}
_SCOPE = compiled(any_of(lambda each: each.standing.conditions), re.IGNORECASE)


def stems(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, cut to stems; Chinese in pairs.

    A word that is one of several values of the same thing, as the name of a language, stands for
    that thing, in angle brackets, and for itself.
    """
    found: set[str] = set()
    text = unicodedata.normalize("NFKC", text)
    for value, pattern in _UNSPACED_VALUES.items():
        text, hits = pattern.subn(" ", text)
        found.update([value] if hits else [])
    text = _GENERAL_UNSPACED.sub(" ", text)
    for match in _WORD.finditer(text):
        found.update(_stems_of(match[0]))
    return frozenset(found)


def _stems_of(word: str) -> Iterable[str]:
    if _HAN.match(word):
        return [word[i : i + 2] for i in range(len(word) - 1)] or [word]
    plain = fold(word)
    if plain in _VALUE_OF:
        return [_VALUE_OF[plain]]
    if plain in _STOPS or (plain.isdigit() and len(plain) < 3) or word.casefold() in _STOPS:
        return []
    return [unicodedata.normalize("NFC", plain)[:2] if _HANGUL.match(word) else plain[:STEM]]


def split_scope(text: str) -> tuple[str, str]:
    """A sentence's rule, and the condition under which it holds ("when I ask about ...")."""
    conditions = " ".join(m[0] for m in _SCOPE.finditer(text))
    return _SCOPE.sub(" ", text), conditions
