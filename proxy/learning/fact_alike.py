"""When two statements say the same, and what a statement says at all.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from proxy.recall.language import STOP_WORDS, guess, plausible
from proxy.recall.stems import is_stop_word
from proxy.recall.terms import terms_of
from proxy.recall.words import fold, words

SAME = 0.8
"""Two say the same if they share this part of all their words."""

SURE = 2
"""Function words of a language by which a short text is told to be in it."""

STUMP = 4
"""Letters of a word that stay the same in most of its forms."""

# How the one who speaks is called when others tell it.
_USER = re.compile(
    r"\b(?:(?:the|der|die|el|la|lo|o) )?(?:l')?"
    r"(?:user(?:'s)?|(?:be)?nutzer(?:in|s)?|usuari[oa]|utilisat\w+|utente|usuário)\b"
    r"|用户|用戶|ユーザー|사용자|пользовател\w+"
)
_NOT = re.compile(
    r"\b(?:not|no|never|nor|without|cannot|nicht|kein\w*|nie|niemals|ohne|nunca|sin|non|senza|pas"
    r"|jamais|não|sem|не|нет|никогда|без|inte|niet|nie)\b|n't\b|لا|ليس|بدون"
    r"|[不没沒無无未]|ない|ません|안 |없|못"
)
_NUMBER = re.compile(r"\d+")
_SCRIPTS = (
    ("latin", re.compile(r"[a-z\u00df-\u024f]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("hebrew", re.compile("[\u0590-\u05ff]")),
    ("indic", re.compile("[\u0900-\u0dff]")),
    ("thai", re.compile("[\u0e00-\u0eff]")),
    ("hangul", re.compile("[\uac00-\ud7af]")),
    ("han", re.compile("[\u3041-\u30ff\u3400-\u9fff]")),
)


class Gist(NamedTuple):
    """What a statement says: its terms, and what must be the same to the letter."""

    terms: frozenset[bytes]
    exact: tuple[object, ...]


@lru_cache(maxsize=8192)
def gist(text: str) -> Gist:
    folded = _USER.sub(" ", fold(text.replace("’", "'")))
    found = words(folded)
    terms = frozenset(terms_of(found, guess([word.text for word in found])))
    exact = (len(_NOT.findall(folded)), *sorted(_NUMBER.findall(folded)))
    return Gist(terms, exact)


def alike(one: Gist, other: Gist) -> bool:
    """Do they say the same?  A number or a "not" more makes another statement."""
    both = one.terms | other.terms
    return (
        bool(both) and one.exact == other.exact and len(one.terms & other.terms) >= SAME * len(both)
    )


def in_other_words(text: str, quote: str, message: str) -> bool:
    """Is a text in another script than its quote, or in another language than the message?"""
    ours, theirs = _script(text), _script(quote)
    if ours and theirs and ours != theirs:
        return True
    found = [word.text for word in words(_USER.sub(" ", fold(text)))]
    language = guess(found)
    sure = sum(word in STOP_WORDS.get(language, ()) for word in found) >= SURE
    likely = plausible([word.text for word in words(message)])
    return sure and bool(likely) and language not in likely


def speaks_of(text: str, message: str) -> bool:
    """Do they share a word that says something, or how one begins?  Without any such word: yes."""
    ours = set(_stumps(text))
    return not ours or not ours.isdisjoint(_stumps(message))


def _stumps(text: str) -> Iterator[str]:
    """How the words begin that say something; pairs of characters where words have no spaces."""
    found = words(_USER.sub(" ", fold(text)))
    language = guess([word.text for word in found])
    for word in found:
        if word.unspaced:
            yield from map("".join, zip(word.text, word.text[1:], strict=False))
        elif not is_stop_word(word.text, language):
            yield word.text[:STUMP]


def _script(text: str) -> str:
    """The script of most letters, "" if there are none."""
    folded = fold(text)
    counts = [(len(pattern.findall(folded)), name) for name, pattern in _SCRIPTS]
    most, name = max(counts, key=lambda counted: counted[0])
    return name if most else ""
