"""Words to terms: what an index keeps of a word in a language.  Pure.

Stemmers: Snowball (Porter 2001), one for each language that it knows.
"""

from __future__ import annotations

from functools import lru_cache

import Stemmer

from proxy.recall.language import STOP_WORDS
from proxy.recall.packing import term_of

REMEMBERED = 8192
"""Words whose terms a process remembers: those that people use, a megabyte for each kind."""

_BEGINNING = 5
_STEMMED = frozenset(Stemmer.algorithms())
_NO_WORDS: frozenset[str] = frozenset()

# Characters of Chinese and Japanese that are grammar, or ask, in nearly every sentence.
UNSPACED_STOPS = frozenset(
    "的了吗呢吧啊呀嘛么着过是在和与或及也都就又还很更最我你您他她它们这那哪什怎为之其有没不个些"
    "几给把被让对从到向于以而且但因所如果若会能可要想说去来做得地请谁何时候上下里中"
    "のはがをにへとでもやかなねよわだですますたてれるいこそあうらりしさせんけどまえおくき"
    "이가은는을를에의도와과로고"
)


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language, 0)


def stem(word: str, language: str) -> str:
    """A folded word without its endings; unchanged in languages without a stemmer."""
    return _stemmer(language).stemWord(word) if language in _STEMMED else word


@lru_cache(maxsize=REMEMBERED)
def term(word: str, language: str) -> bytes | None:
    """The term of a folded word with spaces around it, None if it says nothing."""
    if is_stop_word(word, language):
        return None
    return term_of(stem(word, language))


@lru_cache(maxsize=REMEMBERED)
def beginning(word: str) -> bytes | None:
    """The term of how a long word begins: what derived and compound words have in common.

    Painter and painting, Fahrrad and Fahrradtour, and most words stemmed in the wrong language.
    """
    return term_of(f"\0begins {word[:_BEGINNING]}") if len(word) > _BEGINNING else None


def is_stop_word(word: str, language: str) -> bool:
    """Whether a word says nothing in a language: grammar, or what elision left (l', d', 's)."""
    return word in STOP_WORDS.get(language, _NO_WORDS) or (len(word) == 1 and word.isalpha())


@lru_cache(maxsize=REMEMBERED)
def gram_term(gram: str) -> bytes | None:
    """The term of a character or a pair of characters, None if both are only grammar."""
    if all(character in UNSPACED_STOPS for character in gram):
        return None
    return term_of(gram)
