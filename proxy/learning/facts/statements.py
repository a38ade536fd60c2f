"""Compares statements, and finds their subject: the user or somebody else.  Pure.

Small models note what a friend likes as the user's own.  A sentence that begins with somebody else
("my friend Jack ...") is found by pattern.  In a language without patterns facts are learned too;
only the model is not asked again where it has found nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import ceil
from typing import NamedTuple

from proxy.learning.evidence import UserMessage
from proxy.learning.facts.fact import MAX_ABOUT, USER, one_line
from proxy.recall.lexicon.folding import UNSPACED, fold
from proxy.recall.lexicon.loader import (
    alternation,
    any_of,
    lazy_pattern,
    patterns,
    phrase_pattern,
    with_parts,
)
from proxy.recall.lexicon.stop_words import STOP_WORDS
from proxy.recall.own_words import BLANK
from proxy.recall.query.dates import COUNT
from proxy.recall.query.small_talk import is_filler
from proxy.recall.query.words import (
    guess_language,
    is_stop_word,
    plausible_languages,
    terms_of,
    words,
)
from proxy.recall.standing.wording import REPORTED
from proxy.recall.text_cache import text_cache

SAME_SHARE = 0.8
"""The share of all their terms that two statements that say the same have in common."""

MIN_FUNCTION_WORDS = 2
"""Function words that a short text must have of a language to be taken for it."""

STEM_LETTERS = 4
"""Letters at the beginning of a word that are taken for its stem."""

# The words for the user in statements of the third person.
_USER = lazy_pattern(phrase_pattern(lambda each: each.facts.user))
_NOT = lazy_pattern(phrase_pattern(lambda each: each.facts.denies))
_NUMBER = re.compile(r"\d+")
_COUNTS = lazy_pattern(rf"{COUNT}|\d+")
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
    """A statement for comparison: its terms, and its negations and numbers, which must be equal."""

    terms: frozenset[bytes]
    exact: tuple[object, ...]


def gist(text: str) -> Gist:
    """Not cached: a thread that read it before an erasure would put it there again behind that."""
    folded = _USER.sub(" ", fold(text.replace("’", "'")))
    found = words(folded)
    terms = frozenset(terms_of(found, guess_language([word.text for word in found])))
    exact = (len(_NOT.findall(folded)), *sorted(_NUMBER.findall(folded)))
    return Gist(terms, exact)


def says_the_same(one: Gist, other: Gist) -> bool:
    """Whether two statements say the same: with most terms in common, and equal numbers and
    negations."""
    if one.exact != other.exact:
        return False
    both, common = one.terms | other.terms, one.terms & other.terms
    return bool(both) and len(common) >= SAME_SHARE * len(both)


class SimilarStatements:
    """Finds which of many statements say the same as one, without a look at each."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._gists = list(map(gist, texts))
        self._places: dict[bytes, list[int]] = {}
        for place, known in enumerate(self._gists):
            for term in known.terms:
                self._places.setdefault(term, []).append(place)

    def same_as(self, text: str) -> list[int]:
        """The places, in order, of those that say the same."""
        wanted = gist(text)
        return [place for place in self.near(wanted) if says_the_same(self._gists[place], wanted)]

    def near(self, wanted: Gist) -> list[int]:
        """The places, in order, of all that share one of its rarest terms: any that shares none of
        these lacks too many."""
        missing = len(wanted.terms) - ceil(SAME_SHARE * len(wanted.terms))
        lists = sorted((self._places.get(term, []) for term in wanted.terms), key=len)
        return sorted({place for found in lists[: missing + 1] for place in found})


def is_translated(text: str, quote: str, message: str) -> bool:
    """Whether a text is in another script than its quote, or another language than the message."""
    ours, theirs = _script(text), _script(quote)
    if ours and theirs and ours != theirs:
        return True
    found = [word.text for word in words(_USER.sub(" ", fold(text)))]
    language = guess_language(found)
    sure = sum(word in STOP_WORDS.get(language, ()) for word in found) >= MIN_FUNCTION_WORDS
    likely = plausible_languages([word.text for word in words(message)])
    return sure and bool(likely) and language not in likely


def shares_word(text: str, message: str) -> bool:
    """Whether they share the stem of a content word; also true for a text without any."""
    ours = set(_stems(text))
    return not ours or not ours.isdisjoint(_stems_of(message))


@text_cache(32)
def _stems_of(message: str) -> frozenset[str]:
    """Cached, since many texts may be checked against one message."""
    return frozenset(_stems(message))


def may_be_from(value: str, message: str, schema: str = "") -> bool:
    """Whether a value can follow from a message, or have its words from the schema.

    Not checked for numbers, which may be computed, or for another language than the message's,
    which may be translated.
    """
    plain, beginning = _NUMBER.sub(" ", value), message[:MAX_READ]
    if not any(_stems(plain)):
        letters = set(_LETTERS.findall(fold(plain)))
        known = _LETTERS.findall(fold(f"{beginning}\n{schema}"))
        return not letters or not letters.isdisjoint(known)
    told = f"{message}\n{schema}"
    return shares_word(plain, told) or is_translated(plain, beginning, beginning)


MIN_NOTES = 4
"""The fewest notes by whose number a word counts as common to most of them."""


class Topic:
    """The content words of messages, without those that most of the ``notes`` have, such as the
    user's name."""

    def __init__(self, messages: str, notes: Sequence[str]) -> None:
        self._messages = messages
        self._notes = notes

    @cached_property
    def _message_stems(self) -> frozenset[str]:
        return frozenset(_stems(self._messages))

    @cached_property
    def _common_stems(self) -> frozenset[str]:
        counts = Counter(stem for note in self._notes for stem in set(_stems(note)))
        many = max(MIN_NOTES, len(self._notes)) / 2
        return frozenset(stem for stem, count in counts.items() if count > many)

    def shares_word(self, note: str, news: str) -> bool:
        """Whether a note shares a content word with the messages, or with ``news``, a text made
        from them; also true for a note without any, or in another language."""
        ours = frozenset(_stems(note)) - self._common_stems
        shared = not ours.isdisjoint(self._message_stems) or not ours.isdisjoint(_stems(news))
        return not ours or shared or is_translated(note, self._messages, self._messages)


def _stems(text: str) -> Iterator[str]:
    """The stems of content words; pairs of characters for scripts without spaces."""
    found = words(_USER.sub(" ", fold(text)))
    language = guess_language([word.text for word in found])
    for word in found:
        if word.unspaced:
            yield from map("".join, zip(word.text, word.text[1:], strict=False))
        elif not is_stop_word(word.text, language):
            yield word.text[:STEM_LETTERS]


def _script(text: str) -> str:
    """The script of most letters, "" if there are none."""
    folded = fold(text)
    counts = [(len(pattern.findall(folded)), name) for name, pattern in _SCRIPTS]
    most, name = max(counts, key=lambda counted: counted[0])
    return name if most else ""


_USER_NAMES = frozenset(("", *patterns(lambda each: each.facts.user_names)))
_NAME = r"(?:,? (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]+)?)?"
_BEFORE = any_of(lambda each: each.facts.before)
_WHOM = alternation(
    with_parts(each, {"NAME": _NAME}) for each in patterns(lambda each: each.facts.others)
)
# Where a word ends: in scripts without spaces anywhere.
_BORDER = rf"(?:(?<=[{UNSPACED}])|(?!\w))"
_OTHERS = lazy_pattern(rf"^\W*(?:{_BEFORE}\W+)?(?P<whom>{_WHOM}){_BORDER}", re.IGNORECASE)
_FIRST_PERSON = lazy_pattern(phrase_pattern(lambda each: each.facts.first_person), re.IGNORECASE)


def parse_subject(claimed: str) -> str:
    """The subject that a model wrote, on one line; ``USER`` for all names of the user."""
    plain = one_line(claimed).strip("\"'.")[:MAX_ABOUT]
    return USER if plain.lower() in _USER_NAMES else plain


def other_subject(quote: str) -> str | None:
    """The person that a quote begins with, if it has no first person after that; one in reported
    speech ("my friend wrote: I ...") is not the user.  None otherwise."""
    found = _OTHERS.match(quote)
    own = quote[: _attribution_start(quote)]
    if found is None or _FIRST_PERSON.search(own, found.end()):
        return None
    return found["whom"].strip()


_ADDRESSED = lazy_pattern(phrase_pattern(lambda each: each.facts.addressed), re.IGNORECASE)
_MY = phrase_pattern(lambda each: each.facts.own)
_OWN = lazy_pattern(_MY, re.IGNORECASE)
_SPOUSE = phrase_pattern(lambda each: each.facts.married)
_CHILD = phrase_pattern(lambda each: each.facts.children)
_MARRIED = lazy_pattern(_SPOUSE, re.IGNORECASE)
_KIN = lazy_pattern(
    alternation((phrase_pattern(lambda each: each.facts.kin), _SPOUSE, _CHILD)), re.IGNORECASE
)
# "my boss's wife", "my ex-wife" and "my late wife" are nobody's wife here.
_MY_SPOUSE = lazy_pattern(rf"{_MY}\s*{_SPOUSE}", re.IGNORECASE)
_MY_CHILD = lazy_pattern(rf"{_MY}\s*(?:(?:{COUNT}|\d+)\s*)?{_CHILD}", re.IGNORECASE)


def is_addressed(quote: str) -> bool:
    """Whether it is about the person addressed ("you"), without any first person."""
    told_of_user = _OWN.search(quote) or _FIRST_PERSON.search(quote)
    return told_of_user is None and _ADDRESSED.search(quote) is not None


MAX_READ = 4_000
"""Characters of a message that are read."""

MAX_ATTRIBUTION_CHARACTERS = 200
"""Characters of an attribution."""

_SENTENCES = re.compile(r"[.!?。！？\n]")
_COLON = re.compile("[:：]")


def is_reported(quote: str, message: str) -> bool:
    """Whether a quote is reported speech: with an attribution before it in its paragraph, or at
    its own beginning ("my friend wrote: I live in York")."""
    at = message.casefold().find(quote.casefold().strip())
    before = message[: max(0, at)].rpartition("\n\n")[2][-MAX_READ:]
    start = _attribution_start(f"{before}{quote}")
    return start is not None and not _FIRST_PERSON.search(quote[: max(0, start - len(before))])


def _attribution_start(text: str) -> int | None:
    """Where the first attribution ("my friend wrote:") in a text begins; it ends with a colon."""
    for colon in _COLON.finditer(text):
        before = text[max(0, colon.start() - MAX_ATTRIBUTION_CHARACTERS) : colon.start()]
        lead = _SENTENCES.split(before)[-1]
        found = REPORTED.search(f"{lead}:")
        if found is not None:
            return colon.start() - len(lead) + found.start()
    return None


def is_statement(text: str) -> bool:
    """Whether it is neither a question nor thanks and the like, which small models note too."""
    return not (text.rstrip().endswith(("?", "？", "؟")) or is_filler(text))


def names_family(text: str) -> bool:
    """Whether it has a word for a name or a relative."""
    return _KIN.search(text) is not None


def may_name_family(value: str, message: str) -> bool:
    """Whether a value has only words of the family ("married", "two children"), and the message
    speaks of them as the user's own ("my wife")."""
    further = _COUNTS.sub(" ", _KIN.sub(" ", value))
    needed = (_MY_SPOUSE,) if _MARRIED.search(value) else ()
    if names_family(_MARRIED.sub(" ", value)):
        needed = (*needed, _MY_CHILD)
    told_all = all(each.search(message[:MAX_READ]) for each in needed)
    return bool(needed) and told_all and not any(_stems(further))


def mentions(text: str, whom: str) -> bool:
    """Whether a text has one of the last words of a subject's name."""
    folded = text.lower()
    return any(word in folded for word in re.findall(r"\w{3,}|[一-鿿]{2,}", whom.lower())[-2:])


_SENTENCE = re.compile(r"[^.!?。！？؟\n\x00]+[.!?。！？؟]?")
_TELLS = lazy_pattern(phrase_pattern(lambda each: each.person.tells), re.IGNORECASE)


def describes_user(messages: Iterable[UserMessage]) -> bool:
    """Whether any message has a sentence, not a question, that says what the user is."""
    return any(_has_description(each.own_text[:MAX_READ].replace("’", "'")) for each in messages)


def _has_description(text: str) -> bool:
    sentences = _SENTENCE.findall(text.replace(BLANK, "\n"))
    return any(_TELLS.search(each) and each[-1] not in "?？؟" for each in sentences)
