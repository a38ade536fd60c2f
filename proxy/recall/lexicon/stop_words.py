"""Function words of each language, folded.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.language import LanguageInfo
from proxy.recall.lexicon.loader import LANGUAGES


def _stop_words(language: LanguageInfo) -> frozenset[str]:
    words = fold(language.stop_words).split()
    return frozenset([*words, *(language.conjunction + word for word in words)])


STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        each.language.name: _stop_words(each.language)
        for each in LANGUAGES
        if each.language.stop_words
    }
)
"""By Snowball's name of the language."""

ALL_STOP_WORDS = frozenset[str]().union(*STOP_WORDS.values())
"""Those of all languages."""
