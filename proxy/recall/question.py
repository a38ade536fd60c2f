"""A question read: what to look for, with which weight, and what its wording tells.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from proxy.recall import cues, when
from proxy.recall.language import ENGLISH, UNKNOWN, of_script, plausible
from proxy.recall.packing import term_of
from proxy.recall.small_talk import closes, is_small_talk
from proxy.recall.speakers import asked_about, unlabelled
from proxy.recall.stems import beginning, gram_term, is_stop_word, stem
from proxy.recall.terms import TELLS_TIME
from proxy.recall.words import Word, fold, grams, words

MOST_WORDS = 48
"""Words that are looked for; of a longer message the first ones that say something."""

FEW_WORDS = 3
"""A message with at most so many words that say something may go on about what was said before."""

CONTEXT_SHARE = 0.6
"""What all words of the messages before count, in words of the message itself."""

BEGINNING_WEIGHT = 0.25
"""What the beginning of a word counts beside the word."""

TIME_WEIGHT = 1.0
"""What telling a time counts as an answer to "when", in words."""

_MESSAGES_BEFORE = 4
_CONTEXT_WORDS = 8
_STUMP = 4


class Sought(NamedTuple):
    """A word that is looked for: its terms, one for each language that it may be in.

    ``text`` is how the word begins in a text, "" if it stands for no word.
    """

    terms: tuple[bytes, ...]
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for.  ``terms`` is what to ask an index for, in this order.

    ``words`` are those of the message and of what it goes on about.  ``days`` are terms of the days
    that its wording points at, ``names`` those of the speakers it may name.  ``user``,
    ``assistant``: it asks for what this one said.
    """

    text: str = ""
    words: tuple[Sought, ...] = ()
    days: tuple[bytes, ...] = ()
    names: tuple[bytes, ...] = ()
    user: bool = False
    assistant: bool = False

    @property
    def empty(self) -> bool:
        return not (self.words or self.days)

    @property
    def terms(self) -> tuple[bytes, ...]:
        return (*chain.from_iterable(word.terms for word in self.words), *self.days, *self.names)


NOTHING = Question()


def read(text: str, before: Sequence[str], now: float) -> Question:
    """Read a user message.

    ``before`` are the texts of the last few messages of its session, oldest first: they tell what a
    short message goes on about.  ``now`` is in Unix seconds.
    """
    text = text[: cues.READ]
    folded = fold(text)
    own = _asked(text)
    if not own and closes(text):
        return NOTHING
    sought = [*own, *_context(folded, sum(bool(word.text) for word in own), before)]
    days = when.terms(when.spans(folded, now))
    if not sought and not days:
        return NOTHING
    if cues.asks_when(folded):
        sought.append(Sought((TELLS_TIME,), TIME_WEIGHT))
    return Question(
        text=text,
        words=tuple(_distinct(sought)),
        days=days,
        names=asked_about(text),
        user=cues.about_user(folded),
        assistant=cues.about_assistant(folded),
    )


@lru_cache(maxsize=16)
def _asked(text: str) -> tuple[Sought, ...]:
    """The words of a message.  Recall and what is known read the same one, one after the other."""
    return tuple(islice(_sought(text), MOST_WORDS))


def _distinct(sought: Sequence[Sought]) -> Iterator[Sought]:
    """Each word once; the first counts."""
    seen: set[bytes] = set()
    for word in sought:
        if word.terms[0] not in seen:
            seen.add(word.terms[0])
            yield word


def _context(folded: str, own: int, before: Sequence[str]) -> list[Sought]:
    """The words of the messages before, if a message of few words points back to them.

    A message of no words at all must ask for something: "Great, that's it." does not.  The further
    back, the less a word counts: half as much by message.
    """
    if own > FEW_WORDS or not cues.points_back(folded) or not (own or cues.asks(folded)):
        return []
    found = [
        word._replace(weight=word.weight / 2**distance)
        for distance, text in enumerate(reversed(before[-_MESSAGES_BEFORE:]))
        for word in islice(_sought(text[: cues.READ]), _CONTEXT_WORDS)
    ]
    scale = CONTEXT_SHARE * max(1, own) / max(1.0, sum(word.weight for word in found))
    return [word._replace(weight=scale * word.weight) for word in found]


def _is_small_talk(text: str) -> bool:
    text = unlabelled(text)
    found = words(text)
    likely = plausible([word.text for word in found])
    return is_small_talk(text, found, lambda word: _says_nothing(word, likely))


def _sought(said: str) -> Iterator[Sought]:
    """The words of a text that say something; none of small talk."""
    if _is_small_talk(said):
        return
    found = words(said)
    likely = plausible([word.text for word in found])
    for word in found:
        for terms, text in _grams(word) if word.unspaced else _terms(word.text, likely):
            yield Sought(terms, 1.0, text)
    for word in found:
        known = None if word.unspaced or _says_nothing(word.text, likely) else beginning(word.text)
        if known is not None:
            yield Sought((known,), BEGINNING_WEIGHT)


def _grams(word: Word) -> Iterator[tuple[tuple[bytes], str]]:
    known = ((gram_term(gram), gram) for gram in grams(word.text))
    return (((term,), gram) for term, gram in known if term is not None)


@lru_cache(maxsize=4096)
def _terms(word: str, likely: tuple[str, ...]) -> tuple[tuple[tuple[bytes, ...], str], ...]:
    """One group of terms: a word's stems in every language that it may be in, and itself.

    With it how the word begins, whatever its ending.
    """
    if _says_nothing(word, likely):
        return ()
    languages = [*(likely or of_script(word)), ENGLISH, UNKNOWN]
    stems = [stem(word, language) for language in languages]
    return ((tuple(dict.fromkeys(map(term_of, stems))), _stump(stems[0])),)


def _stump(stem: str) -> str:
    """A stem less what stemmers change: happi for happy."""
    return stem[:-1] if len(stem) > _STUMP else stem


def _says_nothing(word: str, likely: Sequence[str]) -> bool:
    return is_stop_word(word, likely[0] if likely else ENGLISH)
