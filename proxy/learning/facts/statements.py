"""Statements compared: when two say the same, whom one is about, whether it is its writer's own.
Pure.

Small models write what a friend likes down as the user's own.  Where a sentence begins with whom
it is about ("my friend Jack ..."), that is told by pattern.  In a language without patterns facts
are learned too; only the model is not asked again where it has found nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from proxy.learning.evidence import Said
from proxy.learning.facts.fact import MOST_ABOUT, USER, one_line
from proxy.recall.lexicon.folding import UNSPACED, fold
from proxy.recall.lexicon.loader import any_of, compiled, either, filled, patterns, told
from proxy.recall.own_words import BLANK
from proxy.recall.query.dates import COUNT
from proxy.recall.query.small_talk import is_filler
from proxy.recall.query.words import (
    STOP_WORDS,
    guess,
    is_stop_word,
    plausible,
    terms_of,
    words,
)
from proxy.recall.standing.wording import REPORTED

SAME = 0.8
"""Two say the same if they share this part of all their words."""

SURE = 2
"""Function words of a language by which a short text is told to be in it."""

STUMP = 4
"""Letters of a word that stay the same in most of its forms."""

# How the one who speaks is called when others tell it.
_USER = compiled(told(lambda each: each.facts.user))
_NOT = compiled(told(lambda each: each.facts.denies))
_NUMBER = re.compile(r"\d+")
_COUNTS = compiled(rf"{COUNT}|\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
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
    return not ours or not ours.isdisjoint(_stumps_of(message))


@lru_cache(maxsize=32)
def _stumps_of(message: str) -> frozenset[str]:
    """Of each message there may be much to check."""
    return frozenset(_stumps(message))


def forget() -> None:
    """Clear the caches of texts."""
    gist.cache_clear()
    _stumps_of.cache_clear()


def may_be_from(value: str, message: str, schema: str = "") -> bool:
    """May a value come of a message, or have its words of the schema?  Numbers are reckoned, and
    what is in another language than the message is translated."""
    plain, told = _NUMBER.sub(" ", value), message[:READ]
    if not any(_stumps(plain)):
        letters = set(_LETTERS.findall(fold(plain)))
        return not letters or not letters.isdisjoint(_LETTERS.findall(fold(f"{told}\n{schema}")))
    return speaks_of(plain, f"{message}\n{schema}") or in_other_words(plain, told, told)


MANY = 4
"""Notes of which it can be told what most of them have in common."""


class Matter:
    """What messages are about, as far as their words tell.

    A word that most of the ``notes`` have, as the user's name, does not.
    """

    def __init__(self, messages: str, notes: Sequence[str]) -> None:
        self._messages = messages
        self._notes = notes

    @cached_property
    def _said(self) -> frozenset[str]:
        return frozenset(_stumps(self._messages))

    @cached_property
    def _usual(self) -> frozenset[str]:
        counts = Counter(stump for note in self._notes for stump in set(_stumps(note)))
        many = max(MANY, len(self._notes)) / 2
        return frozenset(stump for stump, count in counts.items() if count > many)

    def has(self, note: str, news: str) -> bool:
        """Do the messages, or the ``news`` that come of them, share a word with a note that says
        something?  Where it has none, or is in another language: yes."""
        ours = frozenset(_stumps(note)) - self._usual
        alike = not ours.isdisjoint(self._said) or not ours.isdisjoint(_stumps(news))
        return not ours or alike or in_other_words(note, self._messages, self._messages)


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


_USER_NAMES = frozenset(("", *patterns(lambda each: each.facts.user_names)))
_NAME = r"(?:,? (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+)?)?"
_BEFORE = any_of(lambda each: each.facts.before)
_WHOM = either(filled(each, {"NAME": _NAME}) for each in patterns(lambda each: each.facts.others))
# Where a word ends: in scripts without spaces anywhere.
_BORDER = rf"(?:(?<=[{UNSPACED}])|(?!\w))"
_OTHERS = compiled(rf"^\W*(?:{_BEFORE}\W+)?(?P<whom>{_WHOM}){_BORDER}", re.IGNORECASE)
_FIRST_PERSON = compiled(told(lambda each: each.facts.first_person), re.IGNORECASE)


def about(claimed: str) -> str:
    """``USER``, or whom or what else, on one line."""
    plain = one_line(claimed).strip("\"'.")[:MOST_ABOUT]
    return USER if plain.lower() in _USER_NAMES else plain


def others(quote: str) -> str | None:
    """Whom a quote is about, if it begins with somebody else and never comes to the user: who
    speaks behind their "wrote:" is not the user."""
    found = _OTHERS.match(quote)
    told = _reported(quote)
    own = quote[: told.begin] if told else quote
    if found is None or _FIRST_PERSON.search(own, found.end()):
        return None
    return found["whom"].strip()


_ADDRESSED = compiled(told(lambda each: each.facts.addressed), re.IGNORECASE)
_MY = told(lambda each: each.facts.own)
_OWN = compiled(_MY, re.IGNORECASE)
_SPOUSE = told(lambda each: each.facts.married)
_CHILD = told(lambda each: each.facts.children)
_MARRIED = compiled(_SPOUSE, re.IGNORECASE)
_KIN = compiled(either((told(lambda each: each.facts.kin), _SPOUSE, _CHILD)), re.IGNORECASE)
# "my boss's wife", "my ex-wife" and "my late wife" are nobody's wife here.
_MY_SPOUSE = compiled(rf"{_MY}\s*{_SPOUSE}", re.IGNORECASE)
_MY_CHILD = compiled(rf"{_MY}\s*(?:(?:{COUNT}|\d+)\s*)?{_CHILD}", re.IGNORECASE)


def is_addressed(quote: str) -> bool:
    """Is it about whom it is said to, and not about whose they are to the user?"""
    told_of_user = _OWN.search(quote) or _FIRST_PERSON.search(quote)
    return told_of_user is None and _ADDRESSED.search(quote) is not None


READ = 4_000
"""Characters of a message that are looked at."""

LONGEST_LEAD = 200
"""Characters of what may lead in another's words."""

_SENTENCES = re.compile(r"[.!?。！？\n]")
_COLON = re.compile("[:：]")


class Reported(NamedTuple):
    """Where it is said who speaks ("my friend wrote:"), and where what they say begins."""

    begin: int
    end: int


def is_reported(quote: str, message: str) -> bool:
    """Does it stand behind a colon, in a paragraph in which that leads in another's words ("my
    friend wrote: I live in York"), or begin with that?"""
    at = message.casefold().find(quote.casefold().strip())
    before = message[: max(0, at)].rpartition("\n\n")[2][-READ:]
    told = _reported(f"{before}{quote}")
    return told is not None and not _FIRST_PERSON.search(quote[: max(0, told.begin - len(before))])


def _reported(text: str) -> Reported | None:
    """Where another's words are led in, with a colon."""
    for colon in _COLON.finditer(text):
        before = text[max(0, colon.start() - LONGEST_LEAD) : colon.start()]
        lead = _SENTENCES.split(before)[-1]
        found = REPORTED.search(f"{lead}:")
        if found is not None:
            return Reported(colon.start() - len(lead) + found.start(), colon.end())
    return None


def says_something(text: str) -> bool:
    """Is it neither a question nor thanks and the like, which small models note too?"""
    return not (text.rstrip().endswith(("?", "？", "؟")) or is_filler(text))


def is_of_kin(text: str) -> bool:
    """Does it say a name, or who belongs to the family?"""
    return _KIN.search(text) is not None


def may_be_of_kin(value: str, message: str) -> bool:
    """Does a value say who belongs to the family ("married", "two children") and no more, of a
    message that speaks of them as the user's own ("my wife")?"""
    further = _COUNTS.sub(" ", _KIN.sub(" ", value))
    needed = (_MY_SPOUSE,) if _MARRIED.search(value) else ()
    if is_of_kin(_MARRIED.sub(" ", value)):
        needed = (*needed, _MY_CHILD)
    told_all = all(each.search(message[:READ]) for each in needed)
    return bool(needed) and told_all and not any(_stumps(further))


def names(text: str, whom: str) -> bool:
    """Does a text name them, by any word of how they are called?"""
    folded = text.lower()
    return any(word in folded for word in re.findall(r"\w{3,}|[一-鿿]{2,}", whom.lower())[-2:])


_SENTENCE = re.compile(r"[^.!?。！？؟\n\x00]+[.!?。！？؟]?")
_TELLS = compiled(told(lambda each: each.person.tells), re.IGNORECASE)


def tells_of_user(said: Iterable[Said]) -> bool:
    """Whether one of these messages has a sentence, not a question, that says what the user is."""
    return any(_tells(each.own[:READ].replace("’", "'")) for each in said)


def _tells(text: str) -> bool:
    sentences = _SENTENCE.findall(text.replace(BLANK, "\n"))
    return any(_TELLS.search(each) and each[-1] not in "?？؟" for each in sentences)
