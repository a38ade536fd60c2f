"""Words without their endings, by Snowball (Porter 2001).  Pure.

Where the article is written together with its word, other little words may stand before it, in one
with both (Larkey, Ballesteros and Connell 2007): Snowball takes them for the beginning of the word.
It has a noun with its article right, but often not under the stem of the noun alone.
"""

from __future__ import annotations

from functools import lru_cache

import Stemmer

from proxy.recall.lexicon.loader import LANGUAGES, lazy_pattern, pattern_of

_STEMMED = frozenset(Stemmer.algorithms())

_ARTICLES = {
    each.language.name: (each.language, lazy_pattern(pattern_of(each.language.articles)))
    for each in LANGUAGES
    if each.language.article
}
"""Languages whose article is written together with its word, and what such words begin with."""


def stem(word: str, language: str) -> str:
    """A folded word without its endings; unchanged in languages without a stemmer."""
    return _without_endings(_variants(word, language)[0], language)


def stems(word: str, language: str) -> tuple[str, ...]:
    """All stems under which passages may have a folded word, that of ``stem`` first.

    A word that may have an article is among them with it too: whole, as in passages of unknown
    language, and stemmed, as in indexes of older releases.
    """
    readings = _variants(word, language)
    if len(readings) == 1:
        return (_without_endings(word, language),)
    found = [_without_endings(each, language) for each in readings]
    return tuple(dict.fromkeys(found + list(readings[1:])))


def _variants(word: str, language: str) -> tuple[str, ...]:
    """The forms of a word with an article: without what comes before the article, then in all ways
    to write it."""
    if language not in _ARTICLES:
        return (word,)
    (about, articles), bare = _ARTICLES[language], word
    if (found := articles.match(word)) is not None:
        bare = word[found.end() :]
    definite = about.article + bare
    return definite if found else word, bare, definite, about.conjunction + definite, word


def _without_endings(word: str, language: str) -> str:
    return _stemmer(language).stemWord(word) if language in _STEMMED else word


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language, 0)
