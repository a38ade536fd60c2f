"""Related words that stemming does not find: irregular forms, and words of similar meaning.

Some are listed in the files of languages.  For some languages thousands more are computed, for
questions in other words than their answers: a thesaurus file each in
``proxy/recall/lexicon/thesaurus``, made by ``tests/support/talk/thesaurus.py``.  A line has a stem
and the stems of similar words, folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files

from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import COMMON, LANGUAGES

MAX_WORDS = 24
"""Words near one in meaning that are looked for with it."""

_Known = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By Snowball's name of a language and folded word: other words."""


def irregular_forms(word: str, language: str) -> tuple[str, ...]:
    """Irregular forms of a folded word ("go", "went")."""
    return _FORMS.get(language, {}).get(word, ())


def related_words(word: str, language: str) -> tuple[str, ...]:
    """Words of similar meaning to a folded word, at most ``MAX_WORDS``."""
    return _RELATED.get(language, {}).get(word, ())


def _known(of: Callable[[Language], Iterable[tuple[str, str]]]) -> _Known:
    return {each.language.name: _words_by_word(of(each)) for each in LANGUAGES}


def _words_by_word(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """By each word of the first text of a pair: the words of the second, without itself."""
    found: dict[str, dict[str, None]] = {}
    for words, related in pairs:
        for word in fold(words).split():
            found.setdefault(word, {}).update(dict.fromkeys(fold(related).split()))
    return {
        word: tuple(each for each in of if each != word)[:MAX_WORDS] for word, of in found.items()
    }


def _near(language: Language) -> Iterable[tuple[str, str]]:
    yield from ((each, each) for each in language.words.alike)
    for kind in language.words.kinds:
        word, _, related = kind.partition(":")
        yield word, related


_FORMS = _known(lambda each: ((same, same) for same in each.words.forms))
_RELATED = _known(_near)

_FOLDER = files("proxy.recall.lexicon") / "thesaurus"

CODES: Mapping[str, str] = {
    each.language.name: code
    for code, each in zip(COMMON.order, LANGUAGES, strict=True)
    if (_FOLDER / f"{code}.txt").is_file()
}
"""The codes of the languages that have a thesaurus, by Snowball's names."""


def synonyms(stem: str, language: str) -> tuple[str, ...]:
    """Stems of similar meaning by the language's thesaurus, the nearest first."""
    known = _lines(CODES[language]) if language in CODES else {}
    return tuple(known.get(stem, "").split())


@cache
def _lines(code: str) -> Mapping[str, str]:
    """What is near each stem; read when first needed, and then half a megabyte in memory."""
    text = (_FOLDER / f"{code}.txt").read_text(encoding="utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines())
