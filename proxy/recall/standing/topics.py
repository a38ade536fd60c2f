"""The topic of a standing instruction, as a set of stems, and the condition when it applies.  Pure.

A stem is the first letters of a word, which works as well as stemming in many languages (McNamee
and Mayfield, Character N-Gram Tokenization for European Language Text Retrieval, 2004).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple, TypeAlias

from proxy.recall.lexicon.folding import max_normalized_length, normalized
from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import (
    LANGUAGES,
    any_of,
    lazy_pattern,
    patterns,
    phrase_pattern,
    vocabulary,
)
from proxy.recall.lexicon.spelling import without_required_accents

STEM = 5
"""Letters of a stem."""
MAX_CLAUSES = 12
"""Clauses of a sentence; the last one has all the rest."""

_WORD = re.compile(r"[一-鿿]+|[ァ-ヶー]{2,}|[가-힣]+|[^\W_぀-ヿ一-鿿가-힣]{2,}")
_HAN = re.compile(r"[一-鿿]")
_HANGUL = re.compile(r"[가-힣]")
_ARTICLE = lazy_pattern("^" + any_of(lambda each: each.standing.articles))


def _plain_letters(word: str) -> str:
    """A word in small letters, without accents, and without an article that is joined to it."""
    plain = normalized(word.casefold().replace("œ", "oe"), "NFKD")
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _ARTICLE.sub("", plain)


def _apostrophe_variants(word: str) -> tuple[str, ...]:
    """The forms of a word with an apostrophe: up to the apostrophe, and without it."""
    return word.split("'")[0], word.replace("'", "")


_STOPS = frozenset(
    _plain_letters(variant)
    for word in vocabulary(lambda each: each.standing.general)
    for variant in _apostrophe_variants(word)
)
EATING = frozenset(
    _plain_letters(word)[:STEM] for word in vocabulary(lambda each: each.standing.eating)
)
"""Stems that do not distinguish one food from another."""
SINGLE_VALUED = frozenset({"<name>", "<diet>"})
"""Values of which a user has only one, so that a newer one always replaces it."""
ALLERGY = frozenset({"<allergy>"})
"""A value of which a user may have several: a newer one replaces only those that it names."""
MEAT = frozenset({"<meat>"})
"""What no diet has: who eats it again follows none."""
GENERIC = ALLERGY | SINGLE_VALUED | EATING
"""Stems that do not tell which allergy, diet or food is meant."""
_GENERAL_UNSPACED = lazy_pattern(any_of(lambda each: each.standing.general_unspaced))
_VALUE_OF = {
    _plain_letters(word): f"<{value}>"
    for each in LANGUAGES
    for value, words in each.standing.values.items()
    for word in words.split()
}

Patterns: TypeAlias = "dict[str, tuple[str, ...]]"


def _pattern_of_value(of: Callable[[Language], Patterns], name: str, flags: int) -> re.Pattern[str]:
    return lazy_pattern(
        without_required_accents("|".join(patterns(lambda each: of(each).get(name, ())))), flags
    )


def _patterns_by_value(
    of: Callable[[Language], Patterns], flags: int = 0
) -> dict[str, re.Pattern[str]]:
    """Patterns by the stem, in angle brackets, of the thing that they give a value of."""
    names = sorted({name for each in LANGUAGES for name in of(each)})
    return {f"<{name}>": _pattern_of_value(of, name, flags) for name in names}


_UNSPACED_VALUES = _patterns_by_value(lambda each: each.standing.unspaced_values)
_VALUE_PHRASES = _patterns_by_value(lambda each: each.standing.value_phrases, re.IGNORECASE)
_GENERAL_PHRASES = lazy_pattern(
    without_required_accents(any_of(lambda each: each.standing.general_phrases)), re.IGNORECASE
)
_LINKS = lazy_pattern(phrase_pattern(lambda each: each.standing.links), re.IGNORECASE)
_SCOPE = lazy_pattern(any_of(lambda each: each.standing.conditions), re.IGNORECASE)
_BUTS = phrase_pattern(lambda each: each.standing.but)
_BUT = lazy_pattern(rf"[,，]?\s*{_BUTS}", re.IGNORECASE)
_JOINS = phrase_pattern(lambda each: each.standing.joins)
_JOINT = lazy_pattern(rf"[,;:،；，、：–—\n]|\s-\s|(?P<word>{_JOINS}|{_BUTS})", re.IGNORECASE)


def stems(text: str) -> frozenset[str]:
    """The stems of the words of a text that tell what it is about; of Chinese, pairs of characters.

    A word that is a value of something, as the name of a language is, becomes the name of that
    thing in angle brackets.
    """
    text, found = _without_unspaced(normalized(text)[: max_normalized_length(text)])
    return found.union(*_stems_by_word(text))


def _without_unspaced(text: str) -> tuple[str, frozenset[str]]:
    """In scripts without spaces: a text without general words and values; and those values."""
    text, found = _extract_values(text, _UNSPACED_VALUES)
    return _GENERAL_UNSPACED.sub(" ", text), found


def _without_phrases(text: str) -> tuple[str, frozenset[str]]:
    """A text without general phrases and phrases that give a value; and those values."""
    text, found = _extract_values(text, _VALUE_PHRASES)
    return _GENERAL_PHRASES.sub(" ", text), found


def _extract_values(text: str, values: Mapping[str, re.Pattern[str]]) -> tuple[str, frozenset[str]]:
    """A text without what matches a pattern, and the values of the patterns that matched."""
    found: set[str] = set()
    for value, pattern in values.items():
        text, hits = pattern.subn(" ", text)
        found.update([value] if hits else [])
    return text, frozenset(found)


def _stems_by_word(text: str) -> Iterator[Iterable[str]]:
    """The stems of each word of a text, none for a general word; of Chinese each pair of
    characters, and nothing after a run of them."""
    for match in _WORD.finditer(text):
        if _HAN.match(match[0]):
            yield from ([pair] for pair in _stems_of(match[0]))
            yield ()
        else:
            yield _stems_of(match[0])


def _stems_of(word: str) -> Iterable[str]:
    if _HAN.match(word):
        return [word[i : i + 2] for i in range(len(word) - 1)] or [word]
    plain = _plain_letters(word)
    if plain in _VALUE_OF:
        return [_VALUE_OF[plain]]
    if plain in _STOPS or (plain.isdigit() and len(plain) < 3) or word.casefold() in _STOPS:
        return []
    return [unicodedata.normalize("NFC", plain)[:2] if _HANGUL.match(word) else plain[:STEM]]


def topic_of(rule: str) -> frozenset[str]:
    """The topic of an instruction: its stems, and the values that its phrases give."""
    text, found = _without_phrases(_plain(rule))
    return stems(text).union(found, MEAT if "<diet>" in found else ())


def _plain(text: str) -> str:
    return normalized(text).replace("’", "'")


def neighbour_stems(text: str) -> Mapping[str, frozenset[str]]:
    """By each stem of a text the stems right before and after its first occurrence, which may make
    it more specific ("pine nuts", "noix de coco")."""
    found: dict[str, frozenset[str]] = {}
    for clause in clauses(text):
        words_only, _ = _without_phrases(_LINKS.sub(" ", _plain(clause.text)))
        row = [(), *_stems_by_word(_without_unspaced(words_only)[0]), ()]
        for before, words, after in zip(row, row[1:], row[2:], strict=False):
            for word in words:
                found.setdefault(word, frozenset(before).union(after))
    return found


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets of words; 1 if both are empty."""
    return len(a & b) / len(a | b) if a | b else 1.0


def split_scope(text: str) -> tuple[str, str]:
    """A sentence without its conditions, and these ("when I ask about ...")."""
    conditions = " ".join(m[0] for m in _SCOPE.finditer(text))
    return _SCOPE.sub(" ", text), conditions


_MAX_ITEM_WORDS = 2
"""The most words of an item of a list."""


class Clause(NamedTuple):
    """A part of a sentence; ``joined``: a word such as "and" joins it to the part before."""

    text: str
    joined: bool

    @property
    def is_item(self) -> bool:
        """Whether it can only be an item of a list, as in "emojis or tables"."""
        return self.joined and len(self.text.split()) <= _MAX_ITEM_WORDS


def clauses(text: str) -> Iterator[Clause]:
    """The parts of a sentence, split at commas and at words such as "and"."""
    start, joined = 0, False
    for joint in islice(_JOINT.finditer(text), MAX_CLAUSES - 1):
        if part := text[start : joint.start()].strip():
            yield Clause(part, joined)
            joined = False
        start, joined = joint.end(), joined or bool(joint["word"])
    yield Clause(text[start:].strip(), joined)


def before_but(text: str) -> str:
    """A sentence up to a "but": "emojis are fine again, but no tables"."""
    but = _BUT.search(text)
    return text[: but.start()] if but else text


def after_but(text: str) -> str:
    """The part of a sentence after its last "but"."""
    return _BUT.split(text)[-1]
