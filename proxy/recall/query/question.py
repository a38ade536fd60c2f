"""Parses a question: the terms to search for and their weights, and what kind of answer its wording
asks for.  Pure.

The wording shows whom a question is about, and whether it asks for a time; without cues for its
language recall still works, with less precision.  Cues are searched in folded text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from proxy.recall.lexicon.cues import PossibleCues
from proxy.recall.lexicon.folding import RUN, fold
from proxy.recall.lexicon.loader import LANGUAGES
from proxy.recall.query import self_statements, wording
from proxy.recall.query.continuation import (
    asks_about_past,
    asks_for_one_name,
    contains_name,
    refers_back,
)
from proxy.recall.query.counting import count_words
from proxy.recall.query.dates import DAY, utc_offset
from proxy.recall.query.related import irregular_forms, related_words, synonyms
from proxy.recall.query.small_talk import is_closing, is_small_talk
from proxy.recall.query.spans import day_spans, terms_of_spans
from proxy.recall.query.speakers import possible_speaker_terms, without_speaker
from proxy.recall.query.stemming import stem, stems
from proxy.recall.query.words import (
    ENGLISH,
    TELLS_TIME,
    UNKNOWN,
    TokenizedText,
    Word,
    gram_term,
    grams,
    is_stop_word,
    is_unspaced,
    languages_by_script,
    prefix_term,
    tokenize,
)
from proxy.recall.ranking.packing import term_of
from proxy.recall.text_cache import text_cache

MAX_CHARACTERS = 2048
"""Characters of a message that are parsed; what follows is text to be worked on."""

_FRAMES = {each.language.name: frozenset(fold(each.question.frame).split()) for each in LANGUAGES}
"""Words that are typical of questions, folded, by Snowball's name of the language."""


_MATERIAL = re.compile(r"[:\n]")
_QUOTED = re.compile(r"(?<!\w)'[^']+'(?!\w)|[\"“„«][^\"”“»]+[\"”“»]")


def _is_general(text: str, cues: PossibleCues) -> bool:
    """Whether a message asks what anybody might ask, without mention of the user.

    Text to be worked on (after a colon, on further lines, quoted) is not part of what it asks.
    ``cues``: the cues that it may have.
    """
    begins = wording.GENERAL.search(text, cues)
    if begins is None:
        return False
    rest = text[begins.end() :]
    if wording.WORKS_ON.search(begins[0], cues):
        rest = _QUOTED.sub(" ", _MATERIAL.split(rest, maxsplit=1)[0])
    return not (wording.USER.search(rest, cues) or wording.OWN.search(rest, cues))


def has_question_mark(text: str) -> bool:
    """Whether a message has a question mark."""
    return "?" in text or "؟" in text


MAX_WORDS = 48
"""Words that are searched; of a longer message the first content words."""

FEW_WORDS = 3
"""A message of at most so many content words may refer to what was said before."""

CONTEXT_SHARE = 0.6
"""The weight of all words of the previous messages together, in words of the message itself."""

FRAME_WEIGHT = 0.5
"""Weight of a word that is typical of questions: "kinds" in "what kinds of tea do I like"."""

PREFIX_WEIGHT = 0.25
"""Weight of a word's prefix."""

RELATED_WEIGHT = 0.4
"""Weight of a word related in meaning."""

SYNONYM_WEIGHT = 0.5
"""Weight of a word of the thesaurus, which is searched where little else was found."""

MAX_SYNONYMS = 96
"""Words of the thesaurus that are searched."""

LONG_QUESTION_WEIGHT = 4.0
"""From this total weight of a message's words on, related words count less."""

TIME_WEIGHT = 1.0
"""Weight of mentioning a time, in a question for a time."""

TRAIT_WEIGHT = 1.0
TRAIT_SHARE = 0.4
"""The weight of a trait that a question asks for: in words, or as a share of the weight of all its
words, whichever is more (the latter in scripts without spaces)."""

_CONTEXT_MESSAGES = 4
_CONTEXT_WORDS = 8
_SHORT_STEM = 4


class QueryWord(NamedTuple):
    """A word to search for: its terms, one for each stem in its plausible languages, and its
    weight: 1.0 for a word of the message.

    ``text`` is the prefix by which the word is found in a text, "" for terms that are no word;
    ``irregular`` are those of its irregular forms.  ``is_expansion``: it is only related in meaning
    to a word of the message.
    """

    terms: tuple[bytes, ...]
    weight: float
    text: str = ""
    is_expansion: bool = False
    irregular: tuple[str, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """A parsed question.  ``terms`` are to be looked up in an index, in this order.

    ``words``: those of the message and of the previous messages that it refers to; the first terms
    of the latter are ``context_terms``.  ``day_terms``: of the days that it refers to.
    ``speaker_terms``: of the speakers that it may name.  ``about_user``, ``about_assistant``: it
    asks what this one said.  ``asks_order``: it asks for an order of events.  ``asks_list``: it
    asks for all there are of something.  ``is_general``: it asks what anybody might ask.
    ``asks_past_or_own``: one that refers back asks about the past, the user's own, or one name.
    """

    text: str = ""
    words: tuple[QueryWord, ...] = ()
    context_terms: frozenset[bytes] = frozenset()
    day_terms: tuple[bytes, ...] = ()
    speaker_terms: tuple[bytes, ...] = ()
    about_user: bool = False
    about_assistant: bool = False
    asks_order: bool = False
    asks_list: bool = False
    is_general: bool = False
    asks_past_or_own: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.day_terms)

    @property
    def own_words(self) -> list[QueryWord]:
        """The words of the message itself, if it refers to earlier messages."""
        return [w for w in self.words if w.text and w.terms[0] not in self.context_terms]

    @property
    def context_is_unspaced(self) -> bool:
        """Whether the earlier messages that it refers to are in a script without spaces."""
        return any(is_unspaced(w.text) for w in self.words if w.terms[0] in self.context_terms)

    @property
    def terms(self) -> tuple[bytes, ...]:
        return (
            *chain.from_iterable(word.terms for word in self.words),
            *self.day_terms,
            *self.speaker_terms,
        )


EMPTY_QUESTION = Question()


def read_question(
    text: str, before: Sequence[str], now: float, zone: tzinfo | None = None
) -> Question:
    """Parse a user message.

    ``before`` are the texts of the last few messages of its session, oldest first, which a short
    message may refer to.  ``now`` is in Unix seconds, ``zone`` is the user's.
    """
    text = text[:MAX_CHARACTERS]
    message, own = tokenize(text), _words_and_traits(text)
    if not own and is_closing(message):
        return EMPTY_QUESTION
    offset = utc_offset(now, zone)
    alone = _self_contained(text, int((now + offset) // DAY), offset)
    context = _context(message, count_words(word.text for word in own), before) if before else []
    if not (own or context or alone.day_terms):
        return EMPTY_QUESTION
    if not context:
        return alone
    return replace(
        alone,
        words=tuple(_distinct([*own, *context, *alone.words])),
        context_terms=frozenset()
        if alone.about_assistant or contains_name(text)
        else _first_terms(context),
        asks_past_or_own=_is_own(message)
        or asks_about_past(message)
        or (has_question_mark(text) and asks_for_one_name(message)),
    )


def _is_own(message: TokenizedText) -> bool:
    return wording.OWN.search(message.folded, message.possible_cues) is not None


@text_cache(16)
def _self_contained(text: str, day: int, offset: float) -> Question:
    """A message without its context.  ``day`` is the user's, in days since 1970, ``offset`` theirs
    from UTC in seconds.  Cached, as recall and long-term memory parse the same message."""
    message = tokenize(text)
    folded, cues = message.folded, message.possible_cues
    when = [QueryWord((TELLS_TIME,), TIME_WEIGHT)] if wording.WHEN.search(folded, cues) else []
    user = wording.USER.search(folded, cues) is not None
    assistant = wording.ASSISTANT.search(folded, cues) is not None
    ordered = wording.ORDERS.search(folded, cues) is not None
    return Question(
        text=text,
        words=tuple(_distinct([*_words_and_traits(text), *when])),
        day_terms=terms_of_spans(day_spans(folded, DAY * day, cues), offset),
        speaker_terms=possible_speaker_terms(text),
        about_user=user,
        about_assistant=assistant and not (ordered and user),
        asks_order=ordered,
        asks_list=wording.LISTS.search(folded, cues) is not None,
        is_general=not assistant and _is_general(folded, cues),
    )


def expand(question: Question) -> Question:
    """The question with query expansion: words of similar meaning from the thesaurus; the same
    object if there are none."""
    known = {term for word in question.words for term in word.terms}
    near = (term for term in _synonyms(question.text) if term not in known)
    others = dict.fromkeys(islice(near, MAX_SYNONYMS))
    if not others:
        return question
    weight = SYNONYM_WEIGHT * _related_share([word for word in question.words if word.text])
    more = (QueryWord((term,), weight, is_expansion=True) for term in others)
    return replace(question, words=(*question.words, *more))


def _synonyms(text: str) -> Iterator[bytes]:
    """The terms that the thesaurus has for the words of a message, in the order of the words."""
    said = tokenize(text)
    for word in _content_words(said)[:MAX_WORDS]:
        if not word.unspaced:
            yield from _synonyms_of(word.text, said.likely_languages or (ENGLISH,))


@text_cache(4096)
def _synonyms_of(word: str, spoken: tuple[str, ...]) -> tuple[bytes, ...]:
    if _is_stop_word(word, spoken) or _is_frame_word(word, spoken):
        return ()
    near = (
        term_of(stem(other, language))
        for language in spoken
        for other in synonyms(stem(word, language), language)
    )
    return tuple(dict.fromkeys(near))


@text_cache(16)
def _words_and_traits(text: str) -> tuple[QueryWord, ...]:
    """The words of a message, and the traits of the user that it asks for."""
    own = tuple(islice(_words_and_related(text), MAX_WORDS))
    traits = self_statements.asked_trait_terms(tokenize(text))
    if not traits:
        return own
    weight = max(TRAIT_WEIGHT, TRAIT_SHARE * sum([word.weight for word in own if word.text]))
    return (*own, *(QueryWord((term,), weight) for term in traits))


def query_words(text: str) -> Iterator[QueryWord]:
    """The content words of a message, as they are searched."""
    said = tokenize(text[:MAX_CHARACTERS])
    return chain.from_iterable(_parts(word, said.likely_languages)[0] for word in said.words)


def terms_of_form(word: str, likely: tuple[str, ...]) -> tuple[bytes, ...]:
    """What a folded word of a text in these languages has in common with others: its stems and its
    prefix; nothing for a stop word."""
    own, beginnings, _ = _spaced_parts(word, likely)
    return tuple([term for each in (*own, *beginnings) for term in each.terms])


def _distinct(words: Sequence[QueryWord]) -> Iterator[QueryWord]:
    """Each word once, with the weight of its first occurrence."""
    first_terms: set[bytes] = set()
    for word in words:
        if word.terms[0] not in first_terms:
            first_terms.add(word.terms[0])
            yield word


def _first_terms(words: Iterable[QueryWord]) -> frozenset[bytes]:
    return frozenset(word.terms[0] for word in words)


def _context(message: TokenizedText, own: int, before: Sequence[str]) -> list[QueryWord]:
    """The words of the previous messages, if a message of few words refers to them.

    A message without content words must be a question: "Great, that's it." is none.  The weight of
    a word is halved with each message further back.
    """
    if own > FEW_WORDS or not refers_back(message):
        return []
    if not (own or has_question_mark(message.folded)):
        return []
    found = [
        word._replace(weight=word.weight / 2**distance)
        for distance, text in enumerate(reversed(before[-_CONTEXT_MESSAGES:]))
        for word in islice(_words_and_related(text[:MAX_CHARACTERS]), _CONTEXT_WORDS)
    ]
    scale = CONTEXT_SHARE * max(1, own) / max(1.0, sum(word.weight for word in found))
    return [word._replace(weight=scale * word.weight) for word in found]


def _is_small_talk(said: TokenizedText) -> bool:
    text = without_speaker(said.text)
    message = said if text == said.text else tokenize(text)
    return is_small_talk(message, lambda word: _is_stop_word(word, message.likely_languages))


def _words_and_related(text: str) -> Iterator[QueryWord]:
    """The content words of a text, with prefixes and related words; none of small talk."""
    said = tokenize(text)
    if _is_small_talk(said):
        return
    known = [_parts(word, said.likely_languages) for word in _content_words(said)]
    own, prefixes, near = (list(chain.from_iterable(part)) for part in zip(*known, strict=True))
    yield from own
    yield from _weighted(prefixes, PREFIX_WEIGHT)
    yield from _weighted(near, RELATED_WEIGHT * _related_share(own))


def _content_words(said: TokenizedText) -> list[Word]:
    """The words of a text without those that are empty in their phrase: "what is it like", and the
    verb of what anybody might ask ("give me a name")."""
    text, seen = said.folded, said.possible_cues
    if wording.LIKENED in seen:
        text = wording.LIKENED.pattern.sub(_without_the_last, text)
    begins = wording.GENERAL.search(text, seen)
    if begins is not None and _is_general(text, seen):
        verb = RUN.search(text, begins.start("asks"), begins.end())
        text = text[verb.end() :] if verb else text
    return said.words if text == said.folded else tokenize(text).words or said.words


def _without_the_last(phrase: re.Match[str]) -> str:
    return phrase[0].rpartition(" ")[0]


def _related_share(own: Sequence[QueryWord]) -> float:
    """The factor of related words: less for a question with many words of its own."""
    return min(1.0, LONG_QUESTION_WEIGHT / max(1.0, sum([word.weight for word in own]))) ** 2


def _weighted(words: Iterable[QueryWord], share: float) -> Iterator[QueryWord]:
    for word in words:
        yield QueryWord(word.terms, share * word.weight, word.text, word.is_expansion)


Parts: TypeAlias = "tuple[Iterable[QueryWord], tuple[QueryWord, ...], tuple[QueryWord, ...]]"
"""What to search for a word: the word itself, its prefix, words related in meaning."""


def _parts(word: Word, likely: tuple[str, ...]) -> Parts:
    return _unspaced_parts(word) if word.unspaced else _spaced_parts(word.text, likely)


def _unspaced_parts(word: Word) -> Parts:
    known = ((gram_term(gram), gram) for gram in grams(word.text))
    return (QueryWord((term,), 1.0, gram) for term, gram in known if term is not None), (), ()


@text_cache(4096)
def _spaced_parts(word: str, likely: tuple[str, ...]) -> Parts:
    """A word with its stems and irregular forms in all plausible languages.

    Its text is the part that no ending changes.
    """
    if _is_stop_word(word, likely):
        return (), (), ()
    languages = dict.fromkeys([*(likely or languages_by_script(word)), ENGLISH, UNKNOWN])
    spoken = likely or (ENGLISH,)
    known = [each for language in languages for each in stems(word, language)]
    irregular = [
        stem(form, language) for language in spoken for form in irregular_forms(word, language)
    ]
    terms = tuple(dict.fromkeys(map(term_of, known + irregular)))
    weight = FRAME_WEIGHT if _is_frame_word(word, likely) else 1.0
    prefixes = tuple(map(_stem_prefix, irregular))
    said = QueryWord(terms, weight, _stem_prefix(known[0]), irregular=prefixes)
    begins = prefix_term(word)
    near = (stem(each, language) for language in spoken for each in related_words(word, language))
    return (
        (said,),
        () if begins is None else (QueryWord((begins,), weight),),
        tuple(QueryWord((term_of(each),), weight, is_expansion=True) for each in near),
    )


def _stem_prefix(stem: str) -> str:
    """A stem without its last letter, which stemmers may change: happi for happy.  A short one is
    left as it is."""
    return stem[:-1] if len(stem) > _SHORT_STEM else stem


def _is_stop_word(word: str, likely: Sequence[str]) -> bool:
    return is_stop_word(word, _likeliest(likely))


def _is_frame_word(word: str, likely: Sequence[str]) -> bool:
    """Whether a word is typical of how questions are phrased in this language."""
    return word in _FRAMES.get(_likeliest(likely), ())


def _likeliest(likely: Sequence[str]) -> str:
    return likely[0] if likely else ENGLISH
