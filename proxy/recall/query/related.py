"""Words that belong together though their letters do not tell: forms of one word, and what is near
it in meaning.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import LANGUAGES

MOST = 24
"""Words near one in meaning that are looked for with it."""

_Known = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By Snowball's name of a language and folded word: other words."""


def forms(word: str, language: str) -> tuple[str, ...]:
    """Other forms of a folded word, of those that endings do not tell."""
    return _FORMS.get(language, {}).get(word, ())


def related(word: str, language: str) -> tuple[str, ...]:
    """Words near a folded one in meaning, at most ``MOST``."""
    return _RELATED.get(language, {}).get(word, ())


def _known(of: Callable[[Language], Iterable[tuple[str, str]]]) -> _Known:
    return {each.language.name: _inverted(of(each)) for each in LANGUAGES}


def _inverted(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """By each word of the first text of a pair: the words of the second, without itself."""
    found: dict[str, dict[str, None]] = {}
    for asked, meant in pairs:
        for word in fold(asked).split():
            found.setdefault(word, {}).update(dict.fromkeys(fold(meant).split()))
    return {word: tuple(each for each in of if each != word)[:MOST] for word, of in found.items()}


def _near(language: Language) -> Iterable[tuple[str, str]]:
    yield from ((each, each) for each in language.words.alike)
    for kind in language.words.kinds:
        asked, _, meant = kind.partition(":")
        yield asked, meant


_FORMS = _known(lambda each: ((same, same) for same in each.words.forms))
_RELATED = _known(_near)
