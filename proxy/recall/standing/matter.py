"""What a standing instruction is about: words cut to stems, and when it applies.  Pure.

Cutting words to their first letters does for stemming in many languages at once (McNamee and
Mayfield, Character N-Gram Tokenization for European Language Text Retrieval, 2004).
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
"""Letters kept of a word."""
MAX_CLAUSES = 12
"""More of a sentence are one with the last."""

_WORD = re.compile(r"[一-鿿]+|[ァ-ヶー]{2,}|[가-힣]+|[^\W_぀-ヿ一-鿿가-힣]{2,}")
_HAN = re.compile(r"[一-鿿]")
_HANGUL = re.compile(r"[가-힣]")
_ARTICLE = lazy_pattern("^" + any_of(lambda each: each.standing.articles))


def _plain_letters(word: str) -> str:
    """Small letters without accents; without an article that is written together with it."""
    plain = normalized(word.casefold().replace("œ", "oe"), "NFKD")
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return _ARTICLE.sub("", plain)


def _typed(word: str) -> tuple[str, ...]:
    """A word with an apostrophe as it is read: up to there, or as if there was none."""
    return word.split("'")[0], word.replace("'", "")


_STOPS = frozenset(
    _plain_letters(typed)
    for word in vocabulary(lambda each: each.standing.general)
    for typed in _typed(word)
)
EATING = frozenset(
    _plain_letters(word)[:STEM] for word in vocabulary(lambda each: each.standing.eating)
)
"""Stems that distinguish no food from another."""
SINGLE_VALUED = frozenset({"<name>", "<diet>"})
"""Of these a user has one, whatever else a sentence is about."""
ALLERGY = frozenset({"<allergy>"})
"""Of these a user may have several: only who names all of them again means them."""
GENERIC = ALLERGY | SINGLE_VALUED | EATING
"""None of these says which allergy, diet or food is meant."""
_GENERAL_UNSPACED = lazy_pattern(any_of(lambda each: each.standing.general_unspaced))
_VALUE_OF = {
    _plain_letters(word): f"<{value}>"
    for each in LANGUAGES
    for value, words in each.standing.values.items()
    for word in words.split()
}

Patterns: TypeAlias = "dict[str, tuple[str, ...]]"


def _value(of: Callable[[Language], Patterns], name: str, flags: int) -> re.Pattern[str]:
    return lazy_pattern(
        without_required_accents("|".join(patterns(lambda each: of(each).get(name, ())))), flags
    )


def _values(of: Callable[[Language], Patterns], flags: int = 0) -> dict[str, re.Pattern[str]]:
    """The patterns of a list by the stem that stands for what they are values of."""
    names = sorted({name for each in LANGUAGES for name in of(each)})
    return {f"<{name}>": _value(of, name, flags) for name in names}


_UNSPACED_VALUES = _values(lambda each: each.standing.unspaced_values)
_VALUE_PHRASES = _values(lambda each: each.standing.value_phrases, re.IGNORECASE)
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
    """The words of a text that say what it is about, cut to stems; Chinese in pairs.

    A word that is one of several values of the same thing, as the name of a language, stands for
    that thing, in angle brackets, and for itself.
    """
    text, found = _without_unspaced(normalized(text)[: max_normalized_length(text)])
    return found.union(*_stems_by_word(text))


def _without_unspaced(text: str) -> tuple[str, frozenset[str]]:
    """A text without what says nothing, or sets a value, in scripts without spaces; the values."""
    text, found = _taken_out(text, _UNSPACED_VALUES)
    return _GENERAL_UNSPACED.sub(" ", text), found


def _without_phrases(text: str) -> tuple[str, frozenset[str]]:
    """A text without whole phrases that say nothing, or set a value; the values."""
    text, found = _taken_out(text, _VALUE_PHRASES)
    return _GENERAL_PHRASES.sub(" ", text), found


def _taken_out(text: str, values: Mapping[str, re.Pattern[str]]) -> tuple[str, frozenset[str]]:
    """A text without what sets a value, and the values that it sets."""
    found: set[str] = set()
    for value, pattern in values.items():
        text, hits = pattern.subn(" ", text)
        found.update([value] if hits else [])
    return text, frozenset(found)


def _stems_by_word(text: str) -> Iterator[Iterable[str]]:
    """The stems of each word of a text, none for one that says nothing; Chinese in pairs, with
    nothing between two runs of it."""
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
    """The topic of an instruction: its stems, and the values that its phrases stand for."""
    text, found = _without_phrases(_plain(rule))
    return stems(text).union(found)


def _plain(text: str) -> str:
    return normalized(text).replace("’", "'")


def neighbour_stems(text: str) -> Mapping[str, frozenset[str]]:
    """By each word of a text what stands right before and behind it where it is said first, which
    may narrow it ("pine nuts", "noix de coco")."""
    found: dict[str, frozenset[str]] = {}
    for clause in clauses(text):
        telling, _ = _without_phrases(_LINKS.sub(" ", _plain(clause.text)))
        row = [(), *_stems_by_word(_without_unspaced(telling)[0]), ()]
        for before, words, behind in zip(row, row[1:], row[2:], strict=False):
            for word in words:
                found.setdefault(word, frozenset(before).union(behind))
    return found


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets of words; 1 if both are empty."""
    return len(a & b) / len(a | b) if a | b else 1.0


def split_scope(text: str) -> tuple[str, str]:
    """A sentence's rule, and the condition under which it holds ("when I ask about ...")."""
    conditions = " ".join(m[0] for m in _SCOPE.finditer(text))
    return _SCOPE.sub(" ", text), conditions


class Clause(NamedTuple):
    """A part of a sentence; whether it is a word as "and" that joins it to what stands before."""

    text: str
    joined: bool

    @property
    def is_item(self) -> bool:
        """Whether it can only go on with a list: "emojis or tables"."""
        return self.joined and len(self.text.split()) <= _ITEM


_ITEM = 2
"""Words of the last thing in a list."""


def clauses(text: str) -> Iterator[Clause]:
    """The parts of a sentence between commas and words as "and"."""
    start, joined = 0, False
    for joint in islice(_JOINT.finditer(text), MAX_CLAUSES - 1):
        if part := text[start : joint.start()].strip():
            yield Clause(part, joined)
            joined = False
        start, joined = joint.end(), joined or bool(joint["word"])
    yield Clause(text[start:].strip(), joined)


def before_but(text: str) -> str:
    """A sentence up to where it comes to the other side: "emojis are fine again, but no tables"."""
    but = _BUT.search(text)
    return text[: but.start()] if but else text


def after_but(text: str) -> str:
    """What a sentence says last, behind where it came to the other side."""
    return _BUT.split(text)[-1]
