"""Recognises small talk: messages and sentences without content, as thanks and greetings.  Pure.

A message with words beside those of small talk and function words has content; the name of who is
addressed ("Thanks, Anna!") does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, islice

from proxy.recall.lexicon.cues import ALL_CUES
from proxy.recall.lexicon.folding import fold
from proxy.recall.lexicon.language import Language
from proxy.recall.lexicon.loader import (
    COMMON,
    alternation,
    any_of,
    lazy_pattern,
    longest_first,
    patterns,
    vocabulary,
)
from proxy.recall.query import wording
from proxy.recall.query.speakers import without_speaker
from proxy.recall.query.words import (
    ENGLISH,
    TokenizedText,
    Word,
    is_stop_word,
    is_stop_word_somewhere,
    tokenize,
    words,
)
from proxy.recall.text_cache import text_cache


def _folded(of: Callable[[Language], str]) -> frozenset[str]:
    return frozenset(map(fold, vocabulary(of)))


POLITE = _folded(lambda each: each.small_talk.polite)
"""Thanks and greetings, which the name of who is addressed may follow."""
SMALL_TALK = POLITE | _folded(lambda each: each.small_talk.others)
"""Words that ask for nothing, alone or with function words, except in questions: "thanks for the
work today" asks for nothing, unlike "When do I start work?"."""
_IN_QUESTIONS = _folded(lambda each: each.small_talk.in_questions)
_VOCATIVES = _folded(lambda each: each.small_talk.vocative)

_SOUND = lazy_pattern(alternation((*COMMON.sounds, *patterns(lambda each: each.small_talk.sounds))))
_UNSPACED = lazy_pattern(any_of(lambda each: each.small_talk.unspaced))
_POLITE_UNSPACED = lazy_pattern(any_of(lambda each: each.small_talk.polite_unspaced))
_TITLE = lazy_pattern(f"{alternation(vocabulary(lambda each: each.small_talk.titles))}$")
_NEAR = 2
"""Words before a name of which one must be of small talk."""
_MAX_NAME = 3
"""Characters of a name without a title, in scripts without spaces."""

_MARKS = "".join(vocabulary(lambda each: each.small_talk.question_marks))
_MARK = re.compile(f"[?？؟¿{_MARKS}]")
_REPEATED = re.compile(r"(.)\1{2,}")
_NAME = re.compile(r"[^\W\d_][^\W\d_'’-]*")


def is_small_talk(message: TokenizedText, says_nothing: Callable[[str], bool]) -> bool:
    """Whether a message has no words to search for.

    ``says_nothing`` tells function words of its language.
    """
    found = message.words
    if _has_two(found, _is_never_small_talk):
        return False
    asking = _is_question(message)
    others = (
        place
        for place, word in enumerate(found)
        if not _is_small_talk_word(word, asking) and (word.unspaced or not says_nothing(word.text))
    )
    left = list(islice(others, 2))
    return not left or (
        len(left) == 1 and not asking and _is_addressee(message.text, found, left[0])
    )


def _has_two(found: Sequence[Word], says_something: Callable[[Word], bool]) -> bool:
    """A fast test with cached results: nearly all texts have two such words."""
    return len(list(islice(filter(says_something, found), 2))) > 1


def is_closing(message: TokenizedText) -> bool:
    """Whether a message of small talk closes a conversation ("That's all for today!"), so that it
    does not ask about a day that it names."""
    return not _is_question(message) and any(map(_is_small_talk_word, message.words))


def _is_question(message: TokenizedText) -> bool:
    """Whether a message is a question; "how nice!" is not, nor is "how are you?"."""
    text, cues = message.text.lower(), message.possible_cues
    if wording.HOW_ARE_YOU in cues:
        # The cues may be wrong now, since the words around it have become neighbours.
        text, cues = wording.HOW_ARE_YOU.pattern.sub("", text), ALL_CUES
    exclaims = text.rstrip().endswith(("!", "！"))
    return bool(_MARK.search(text)) or (not exclaims and bool(wording.ASKING.search(text, cues)))


@text_cache(4096)
def _is_small_talk_word(word: Word, asking: bool = False) -> bool:
    """Whether a word is one of small talk."""
    if word.unspaced:
        return not _UNSPACED.sub("", word.text)
    if asking:
        return word.text in _IN_QUESTIONS
    shorter = (_REPEATED.sub(r"\1", word.text), _REPEATED.sub(r"\1\1", word.text))
    return not SMALL_TALK.isdisjoint((word.text, *shorter)) or bool(_SOUND.fullmatch(word.text))


@text_cache(4096)
def _is_never_small_talk(word: Word) -> bool:
    """Whether a word is neither one of small talk nor a function word, in any language."""
    if _is_small_talk_word(word) or _is_small_talk_word(word, asking=True):
        return False
    return word.unspaced or not is_stop_word_somewhere(word.text)


def _is_addressee(text: str, found: Sequence[Word], place: int) -> bool:
    """Whether the only other word, at ``place``, is the name of who is thanked or greeted."""
    word = found[place]
    if word.unspaced:
        polite = any(_POLITE_UNSPACED.search(each.text) for each in found)
        name = _TITLE.sub("", _POLITE_UNSPACED.split(_UNSPACED.sub("", word.text))[0])
        return polite and len(name) <= _MAX_NAME
    if not any(each.text in POLITE or _POLITE_UNSPACED.search(each.text) for each in found):
        return False
    beside = [*found[max(0, place - _NEAR) : place], *found[place + 1 : place + 2]]
    if found[place - 1].text in _VOCATIVES:
        return True
    capital = (name for name in _NAME.findall(text) if name[0].isupper() and name[1:].islower())
    return any(map(_is_small_talk_word, beside)) and word.text in map(fold, capital)


_FILLER_WORDS = SMALL_TALK | _folded(lambda each: each.small_talk.filler)
_FILLER_UNSPACED = lazy_pattern(
    longest_first(
        patterns(lambda each: (*each.small_talk.unspaced, *each.small_talk.filler_unspaced))
    )
)
_SENTENCE = re.compile(r"[^.!?…。！？؟]+[.!?…。！？؟\s\"”’»)]*|[.!?…。！？؟\s\"”’»)]+")
_ASKING = re.compile("[?？؟]")


MAX_FILLER = 240
"""Characters; a longer message counts as having content."""


def is_filler(text: str) -> bool:
    """Whether a message has nothing worth recalling later."""
    said = without_speaker(text)
    if len(said) > MAX_FILLER:
        return False
    sentences = _SENTENCE.findall(said)
    # A fast test with cached results: a filler sentence has at most one other word, a name, and the
    # label may have some; most messages have far more.
    most = len(sentences) + len(words(text[: len(text) - len(said)]))
    if sum(map(_is_never_filler, tokenize(text).words)) > most:
        return False
    return all(map(_is_filler_sentence, sentences))


@text_cache(2048)
def _is_filler_sentence(sentence: str) -> bool:
    """Whether a sentence has only words of small talk and praise, function words, and a name."""
    if _ASKING.search(sentence):
        return False
    message = TokenizedText(sentence)
    if _has_two(message.words, _is_never_filler):  # before guessing the language
        return False
    likely = message.likely_languages[0] if message.likely_languages else ENGLISH
    others = [
        place for place, word in enumerate(message.words) if not _is_filler_word(word, likely)
    ]
    if not others:
        return True
    return len(others) == 1 and _is_addressed(sentence, message.words[others[0]])


@text_cache(4096)
def _is_never_filler(word: Word) -> bool:
    """Whether a word is no filler in any language."""
    if _is_always_filler(word):
        return False
    return word.unspaced or not is_stop_word_somewhere(word.text)


@text_cache(4096)
def _is_filler_word(word: Word, language: str) -> bool:
    return _is_always_filler(word) or (not word.unspaced and is_stop_word(word.text, language))


def _is_always_filler(word: Word) -> bool:
    """Whether a word is filler in every language."""
    if word.unspaced:
        return not _FILLER_UNSPACED.sub("", word.text)
    return word.text in _FILLER_WORDS or _is_small_talk_word(word)


def _is_addressed(sentence: str, word: Word) -> bool:
    """Whether a word is the name of who is addressed: set off by a comma, or after a greeting."""
    found = chain.from_iterable(each.groups() for each in _ADDRESSED_NAME.finditer(sentence))
    return word.text in map(fold, filter(None, found))


_ADDRESSED_NAME = re.compile(
    rf"^\s*([^\W\d_]+)(?=,)|,\s*([^\W\d_]+)\s*[,.!…。！]|\b(?i:{'|'.join(sorted(POLITE))})\s+([^\W\d_]+)"
)
