"""Whether a message refers to what was said just before, or stands on its own.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from proxy.recall.lexicon.cues import Cue
from proxy.recall.lexicon.folding import RUN, fold
from proxy.recall.lexicon.loader import vocabulary
from proxy.recall.query import wording
from proxy.recall.query.dates import is_weekday, tells_time
from proxy.recall.query.words import ENGLISH, TokenizedText, is_stop_word

READ_WORDS = 48
"""Words of a message that are searched for a name."""

_BEFORE = 24
_LAST_WORD = re.compile(r"([\w']{1,20})\W{1,4}\Z")
_CAPITAL = re.compile(r"[^\W\d_][^\W\d_A-Z]")
_DETERMINERS = frozenset(map(fold, vocabulary(lambda each: each.question.determiners)))
_AUXILIARIES = frozenset(map(fold, vocabulary(lambda each: each.question.auxiliaries)))
_BEFORE_NOUNS = frozenset(vocabulary(lambda each: each.question.before_nouns))


def refers_back(message: TokenizedText) -> bool:
    """Whether a message begins as a continuation, or has an anaphor: a word that stands for
    something said before."""
    # The first word of a short message may be of each of several languages, but "I" is no "and".
    english = message.likely_languages[:1] == (ENGLISH,)
    begins = _of(wording.GOES_ON, (ENGLISH,) if english else message.likely_languages)
    if any(cue.search(message.folded, message.possible_cues) for cue in begins):
        return True
    return _has_anaphor(message)


def asks_about_past(message: TokenizedText) -> bool:
    """Whether a message asks about the past, or about something told before: "who was the vet?".

    Not if it has an anaphor ("was it open?"), which refers to recent messages, unless it asks for
    a repetition ("what was her name again?").
    """
    if wording.AGAIN.search(message.folded, message.possible_cues):
        return True
    was = _of(wording.WAS, (message.language,))
    if not any(cue.search(message.folded, message.possible_cues) for cue in was):
        return False
    return not _has_anaphor(message)


def asks_for_one_name(message: TokenizedText) -> bool:
    """Whether a question that refers back is only a word like "and", and one that may be a name
    without its capital ("and anna?"): most things have an article."""
    runs = RUN.findall(message.folded)
    if len(runs) != 2 or is_stop_word(runs[1], message.language):
        return False
    return not (tells_time(message.folded) or _has_anaphor(message))


def _has_anaphor(message: TokenizedText) -> bool:
    points = _of(wording.POINTS_BACK, (message.language,))
    return any(_is_anaphor(cue, message) for cue in points)


def _of(cues: Mapping[str, Cue], languages: Iterable[str]) -> list[Cue]:
    """The cues of these languages; if none of them has one, the cue of all languages together."""
    return [cues[language] for language in languages if language in cues] or [cues[""]]


def _is_anaphor(cue: Cue, message: TokenizedText) -> bool:
    found = cue.search(message.folded, message.possible_cues)
    while found and _is_determiner(found, message):
        found = cue.pattern.search(message.folded, found.end())
    return found is not None


def _is_determiner(found: re.Match[str], message: TokenizedText) -> bool:
    """Whether the word is a determiner ("that bike"), which does not point back as "that" alone
    does."""
    if found[0] not in _DETERMINERS:
        return False
    text = message.folded
    word = RUN.match(text, found.end() + 1)
    if word is None or is_stop_word(word[0], message.language):
        return False
    ends = RUN.search(text, word.end()) is None
    before = _LAST_WORD.search(text, max(0, found.start() - _BEFORE), found.start())
    return not (ends and before and before[1] in _AUXILIARIES)


def contains_name(text: str) -> bool:
    """Whether a message has a name after its first word: then it is about that.

    A name is a capitalised word that is no day of the week, and in German has no article before it.
    """
    pairs = pairwise(text.split()[:READ_WORDS])
    return any(_is_name(before, word) for before, word in pairs if before[-1].isalpha())


def _is_name(before: str, word: str) -> bool:
    if not (word[0].isupper() and _CAPITAL.match(word)):
        return False
    return not (before.lower() in _BEFORE_NOUNS or is_weekday(word))
