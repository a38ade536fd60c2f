"""A question read: what to look for, with which weight, what its wording tells, or that it asks
nothing.  Pure.

The wording tells whom it is about, and "when"; in a language without cues for that recall still
finds, only with less finesse.  Cues are looked for in folded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from proxy.recall.lexicon.cues import PossibleCues
from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.loader import LANGUAGES
from proxy.recall.query import of_oneself, small_talk, wording
from proxy.recall.query.counting import counted
from proxy.recall.query.dates import DAY, ahead, spans, terms_of_spans
from proxy.recall.query.going_on import looks_back, names_one, points_back
from proxy.recall.query.related import forms, related, synonyms
from proxy.recall.query.small_talk import closes, is_small_talk
from proxy.recall.query.speakers import asked_about, unlabelled
from proxy.recall.query.stemming import stem, stems
from proxy.recall.query.words import (
    ENGLISH,
    TELLS_TIME,
    UNKNOWN,
    Reading,
    Word,
    beginning,
    gram_term,
    grams,
    is_stop_word,
    is_unspaced,
    of_script,
    reading,
)
from proxy.recall.ranking.packing import term_of

READ = 2048
"""Characters of a message that are read as a question; what follows is material."""

_FRAMES = {each.language.name: frozenset(fold(each.question.frame).split()) for each in LANGUAGES}
"""Words of how one asks by Snowball's name of the language, folded."""


_MATERIAL = re.compile(r"[:\n]")
_QUOTED = re.compile(r"(?<!\w)'[^']+'(?!\w)|[\"“„«][^\"”“»]+[\"”“»]")


def _is_general(text: str, seen: PossibleCues) -> bool:
    """Whether a message asks what anybody might ask, and does not come to the one who asks: in what
    it asks, not in text that it gives to be worked on, behind a colon, on further lines, quoted.

    ``seen``: the cues it may have.
    """
    begins = wording.GENERAL.search(text, seen)
    if begins is None:
        return False
    rest = text[begins.end() :]
    if wording.WORKS_ON.search(begins[0], seen):
        rest = _QUOTED.sub(" ", _MATERIAL.split(rest, maxsplit=1)[0])
    return not (wording.USER.search(rest, seen) or wording.OWN.search(rest, seen))


def asks(text: str) -> bool:
    """Whether a message has a question mark."""
    return any(mark in text for mark in "?؟")


MOST_WORDS = 48
"""Words that are looked for; of a longer message the first ones that say something."""

FEW_WORDS = 3
"""A message with at most so many words that say something may go on about what was said before."""

CONTEXT_SHARE = 0.6
"""What all words of the messages before count, in words of the message itself."""

FRAME_WEIGHT = 0.5
"""What a word counts that is of how one asks: "kinds" in "what kinds of tea do I like"."""

BEGINNING_WEIGHT = 0.25
"""What the beginning of a word counts beside the word."""

RELATED_WEIGHT = 0.4
"""What a word near in meaning counts beside the word."""

OTHERS_WEIGHT = 0.5
"""The same for a word of the thesaurus, which is looked for where little else was found."""

MOST_OTHERS = 96
"""So many of these are looked for."""

SAYS_MUCH = 4.0
"""Words of a message, by what they count, from which on words near them in meaning count less."""

TIME_WEIGHT = 1.0
"""What telling a time counts as an answer to "when", in words."""

TRAIT_WEIGHT = 1.0
TRAIT_SHARE = 0.4
"""What telling of oneself counts as an answer to who asks for it: in words, and of all words of the
question, if that is more, as it is in scripts without spaces."""

_MESSAGES_BEFORE = 4
_CONTEXT_WORDS = 8
_STUMP = 4


class QueryWord(NamedTuple):
    """A word that is looked for: its terms, one for each stem that it may have in one language or
    another, and what it counts: 1.0 for a word that the message says.

    ``text`` is how the word begins in a text, "" if it stands for no word.  ``near``: it is only
    near in meaning to a word of the message.
    """

    terms: tuple[bytes, ...]
    weight: float
    text: str = ""
    near: bool = False


class Question(msgspec.Struct, frozen=True):
    """What to look for.  ``terms`` is what to ask an index for, in this order.

    ``words`` are those of the message and of what it goes on about, ``context`` the first terms of
    the latter.  ``days`` are terms of the days that its wording points at, ``names`` those of the
    speakers it may name.  ``user``, ``assistant``: it asks for what this one said.  ``ordered``: it
    asks in which order things were.  ``lists``: it asks for all there are of something.
    ``general``: it asks what anybody might ask.  ``reaches``: one that goes on about something
    before asks for what was, or for what is the user's own.
    """

    text: str = ""
    words: tuple[QueryWord, ...] = ()
    context: frozenset[bytes] = frozenset()
    days: tuple[bytes, ...] = ()
    names: tuple[bytes, ...] = ()
    user: bool = False
    assistant: bool = False
    ordered: bool = False
    lists: bool = False
    general: bool = False
    reaches: bool = False

    @property
    def empty(self) -> bool:
        return not (self.words or self.days)

    @property
    def own(self) -> list[QueryWord]:
        """The words of the message itself, of one that goes on about something before."""
        return [w for w in self.words if w.text and w.terms[0] not in self.context]

    @property
    def goes_on_in_pairs(self) -> bool:
        """Whether what it goes on about is in a script without spaces."""
        return any(is_unspaced(w.text) for w in self.words if w.terms[0] in self.context)

    @property
    def terms(self) -> tuple[bytes, ...]:
        return (*chain.from_iterable(word.terms for word in self.words), *self.days, *self.names)


NOTHING = Question()


def read(text: str, before: Sequence[str], now: float, zone: tzinfo | None = None) -> Question:
    """Read a user message.

    ``before`` are the texts of the last few messages of its session, oldest first: they tell what a
    short message goes on about.  ``now`` is in Unix seconds, ``zone`` that of who asks.
    """
    text = text[:READ]
    message, own = reading(text), _asked(text)
    if not own and closes(message):
        return NOTHING
    offset = ahead(now, zone)
    alone = _alone(text, int((now + offset) // DAY), offset)
    context = _context(message, counted(word.text for word in own), before) if before else []
    if not (own or context or alone.days):
        return NOTHING
    if not context:
        return alone
    return replace(
        alone,
        words=tuple(_distinct([*own, *context, *alone.words])),
        context=frozenset() if alone.assistant or names_one(text) else _firsts(context),
        reaches=_is_own(message) or looks_back(message),
    )


def _is_own(message: Reading) -> bool:
    return wording.OWN.search(message.folded, message.seen) is not None


@lru_cache(maxsize=16)
def _alone(text: str, day: int, offset: float) -> Question:
    """A message by itself, on a day since 1970 of who is so many seconds ahead of UTC.  Recall and
    what is known read the same one, one after the other."""
    message = reading(text)
    folded, seen = message.folded, message.seen
    when = [QueryWord((TELLS_TIME,), TIME_WEIGHT)] if wording.WHEN.search(folded, seen) else []
    user = wording.USER.search(folded, seen) is not None
    assistant = wording.ASSISTANT.search(folded, seen) is not None
    ordered = wording.ORDERS.search(folded, seen) is not None
    return Question(
        text=text,
        words=tuple(_distinct([*_asked(text), *when])),
        days=terms_of_spans(spans(folded, DAY * day, seen), offset),
        names=asked_about(text),
        user=user,
        assistant=assistant and not (ordered and user),
        ordered=ordered,
        lists=wording.LISTS.search(folded, seen) is not None,
        general=not assistant and _is_general(folded, seen),
    )


def expanded(question: Question) -> Question:
    """The same with query expansion: words near those of the message in meaning, by the thesaurus;
    itself where none are known."""
    known = {term for word in question.words for term in word.terms}
    near = (term for term in _synonyms(question.text) if term not in known)
    others = dict.fromkeys(islice(near, MOST_OTHERS))
    if not others:
        return question
    weight = OTHERS_WEIGHT * _share_of_near([word for word in question.words if word.text])
    more = (QueryWord((term,), weight, near=True) for term in others)
    return replace(question, words=(*question.words, *more))


def _synonyms(text: str) -> Iterator[bytes]:
    """The terms of what the thesaurus has for the words of a message, in their order."""
    said = reading(text)
    for word in _telling(said)[:MOST_WORDS]:
        if not word.unspaced:
            yield from _synonyms_of(word.text, said.likely or (ENGLISH,))


@lru_cache(maxsize=4096)
def _synonyms_of(word: str, spoken: tuple[str, ...]) -> tuple[bytes, ...]:
    if _says_nothing(word, spoken) or _is_of_frame(word, spoken):
        return ()
    near = (
        term_of(stem(other, language))
        for language in spoken
        for other in synonyms(stem(word, language), language)
    )
    return tuple(dict.fromkeys(near))


@lru_cache(maxsize=16)
def _asked(text: str) -> tuple[QueryWord, ...]:
    """The words of a message, and what it asks for of the one who writes it."""
    own, traits = tuple(islice(_sought(text), MOST_WORDS)), of_oneself.asked(reading(text))
    if not traits:
        return own
    weight = max(TRAIT_WEIGHT, TRAIT_SHARE * sum([word.weight for word in own if word.text]))
    return (*own, *(QueryWord((term,), weight) for term in traits))


def words_of(text: str) -> Iterator[QueryWord]:
    """The words of a message that say something, as they are looked for."""
    said = reading(text[:READ])
    return chain.from_iterable(_parts(word, said.likely)[0] for word in said.words)


def forget() -> None:
    """Clear the caches of texts and words."""
    small_talk.forget()
    for kept in (_asked, _alone, _of_word, _synonyms_of):
        kept.cache_clear()


def _distinct(sought: Sequence[QueryWord]) -> Iterator[QueryWord]:
    """Each word once; the first counts."""
    seen: set[bytes] = set()
    for word in sought:
        if word.terms[0] not in seen:
            seen.add(word.terms[0])
            yield word


def _firsts(words: Iterable[QueryWord]) -> frozenset[bytes]:
    return frozenset(word.terms[0] for word in words)


def _context(message: Reading, own: int, before: Sequence[str]) -> list[QueryWord]:
    """The words of the messages before, if a message of few words points back to them.

    A message of no words at all must ask for something: "Great, that's it." does not.  The further
    back, the less a word counts: half as much by message.
    """
    if own > FEW_WORDS or not points_back(message):
        return []
    if not (own or asks(message.folded)):
        return []
    found = [
        word._replace(weight=word.weight / 2**distance)
        for distance, text in enumerate(reversed(before[-_MESSAGES_BEFORE:]))
        for word in islice(_sought(text[:READ]), _CONTEXT_WORDS)
    ]
    scale = CONTEXT_SHARE * max(1, own) / max(1.0, sum(word.weight for word in found))
    return [word._replace(weight=scale * word.weight) for word in found]


def _is_small_talk(said: Reading) -> bool:
    text = unlabelled(said.text)
    message = said if text == said.text else reading(text)
    return is_small_talk(message, lambda word: _says_nothing(word, message.likely))


def _sought(text: str) -> Iterator[QueryWord]:
    """The words of a text that say something; none of small talk."""
    said = reading(text)
    if _is_small_talk(said):
        return
    known = [_parts(word, said.likely) for word in _telling(said)]
    own, beginnings, near = (list(chain.from_iterable(part)) for part in zip(*known, strict=True))
    yield from own
    yield from _weighted(beginnings, BEGINNING_WEIGHT)
    yield from _weighted(near, RELATED_WEIGHT * _share_of_near(own))


def _telling(said: Reading) -> list[Word]:
    """The words of a text, less those that say nothing where they stand ("what is it like")."""
    if wording.LIKENED not in said.seen:
        return said.words
    return reading(wording.LIKENED.pattern.sub(_without_the_last, said.folded)).words


def _without_the_last(phrase: re.Match[str]) -> str:
    return phrase[0].rpartition(" ")[0]


def _share_of_near(own: Sequence[QueryWord]) -> float:
    """What says much itself does not need what is near it as much."""
    return min(1.0, SAYS_MUCH / max(1.0, sum([word.weight for word in own]))) ** 2


def _weighted(words: Iterable[QueryWord], share: float) -> Iterator[QueryWord]:
    for terms, weight, text, near in words:
        yield QueryWord(terms, share * weight, text, near)


Parts: TypeAlias = "tuple[Iterable[QueryWord], tuple[QueryWord, ...], tuple[QueryWord, ...]]"
"""What is looked for because of a word: itself, how it begins, what is near it in meaning."""


def _parts(word: Word, likely: tuple[str, ...]) -> Parts:
    return _grams(word) if word.unspaced else _of_word(word.text, likely)


def _grams(word: Word) -> Parts:
    known = ((gram_term(gram), gram) for gram in grams(word.text))
    return (QueryWord((term,), 1.0, gram) for term, gram in known if term is not None), (), ()


@lru_cache(maxsize=4096)
def _of_word(word: str, likely: tuple[str, ...]) -> Parts:
    """A word, with its stems and forms in every language that it may be in.

    Its text is how the word begins whatever its ending.
    """
    if _says_nothing(word, likely):
        return (), (), ()
    languages = [*(likely or of_script(word)), ENGLISH, UNKNOWN]
    spoken = likely or (ENGLISH,)
    known = [each for language in languages for each in stems(word, language)]
    known += [stem(form, language) for language in spoken for form in forms(word, language)]
    weight = FRAME_WEIGHT if _is_of_frame(word, likely) else 1.0
    said = QueryWord(tuple(dict.fromkeys(map(term_of, known))), weight, _stump(known[0]))
    begins = beginning(word)
    near = (stem(each, language) for language in spoken for each in related(word, language))
    return (
        (said,),
        () if begins is None else (QueryWord((begins,), weight),),
        tuple(QueryWord((term_of(each),), weight, near=True) for each in near),
    )


def _stump(stem: str) -> str:
    """A stem less what stemmers change: happi for happy."""
    return stem[:-1] if len(stem) > _STUMP else stem


def _says_nothing(word: str, likely: Sequence[str]) -> bool:
    return is_stop_word(word, _spoken(likely))


def _is_of_frame(word: str, likely: Sequence[str]) -> bool:
    """Whether a word is of how one asks in this language."""
    return word in _FRAMES.get(_spoken(likely), ())


def _spoken(likely: Sequence[str]) -> str:
    return likely[0] if likely else ENGLISH
