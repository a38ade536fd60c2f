"""What users say that has one value at a time: names, where they live and work, numbers.  Pure.

Read from whole sentences alone: what is said with more words around it is left out, so that what is
taken is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from proxy.recall.lexicon.folding import UNSPACED, fold
from proxy.recall.lexicon.language import Slot
from proxy.recall.lexicon.loader import named_groups, vocabulary
from proxy.recall.notes.wording import WORDINGS, Change, Wording
from proxy.recall.own_words import BLANK, Sentence, own_texts, speaker_of
from proxy.recall.query.words import TokenizedText, is_unspaced

LONGEST = 600
"""Characters of a message that is read."""

LONGEST_SENTENCE = 160

MOST_WORDS = 4
"""Of a name."""

_STEM = 4
"""Letters in common that make two words one: endings differ."""

_END = " \t\r\n.!?。！？~～…)\"'"
_DOUBT = "?？"


class SlotValue(NamedTuple):
    """A slot of somebody (``person``, a name or "") and of something (``subject``): its value, and
    how it has that; ``old_value``: the value that it had, "" if that is not said."""

    slot: Slot
    person: str
    subject: str
    value: str
    change: Change = "holds"
    old_value: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for what is of one slot; who has a role has it by a name."""
        return "name" if self.slot == "role" else self.slot, self.person, self.subject


def slot_values(read: TokenizedText) -> tuple[SlotValue, ...]:
    """The slots that a user's message fills, in its order.  Time is bounded for any text."""
    text = read.text
    if len(text) > LONGEST:
        return ()
    wordings = [each for each in WORDINGS if each.any in read.possible_cues]
    wordings = [each for each in wordings if not each.others.search(text)]
    if not wordings:
        return ()
    said = [each for voice in own_texts(text) for each in voice.sentences]
    whose = fold(speaker_of(text))
    return tuple(_values_in(said, wordings, whose))


def _values_in(
    said: Iterable[Sentence], wordings: Sequence[Wording], whose: str
) -> Iterator[SlotValue]:
    for sentence in said:
        words = sentence.words
        asked = any(mark in words for mark in _DOUBT)
        if asked or BLANK in words or len(words) > LONGEST_SENTENCE:
            continue
        for wording in wordings:
            found = _match(words.strip(_END), wording, whose)
            if found is not None:
                yield found
                break


def _match(words: str, wording: Wording, whose: str) -> SlotValue | None:
    for how, slot, pattern in wording.patterns:
        match = pattern.fullmatch(words)
        if match is None:
            continue
        if wording.doubts.search(words):
            return None
        parts = named_groups(match)
        value, old = parts["value"].strip(), parts.get("old", "").strip()
        if _is_value(slot, value):
            return SlotValue(slot, whose, fold(parts.get("of", "")), value, how, old)
    return None


def _is_value(slot: Slot, value: str) -> bool:
    if slot == "number":
        return any(map(str.isdigit, value)) or "@" in value
    named = not value[:1].islower() and len(value.split()) <= MOST_WORDS
    return slot == "favourite" or named


_WORD = re.compile(rf"[{UNSPACED}]+|[^\W_]+")
_TITLES = frozenset(map(fold, vocabulary(lambda each: each.slots.titles)))


def may_be_same(one: str, other: str) -> bool:
    """Whether two values may be the same: a word of one and a word of the other begin alike."""
    if "@" in one + other or (_digits(one) and _digits(other)):
        return fold(one) == fold(other) or _digits(one) == _digits(other) != ""
    ours, theirs = _words(one), _words(other)
    return any(_alike(a, b) for a in ours for b in theirs)


def _digits(value: str) -> str:
    return "".join(filter(str.isdigit, value))


def _words(value: str) -> list[str]:
    return [word for word in _WORD.findall(fold(value)) if word not in _TITLES]


def _alike(one: str, other: str) -> bool:
    if is_unspaced(one) and is_unspaced(other):
        return one in other or other in one
    return one[:_STEM] == other[:_STEM]


def replacing_values(filled: Sequence[SlotValue]) -> list[str]:
    """By what is filled, oldest first: the value that was said later where it is another, "" where
    it is none, and "no more" where it was said to hold no more."""
    newest: dict[tuple[str, str, str], list[SlotValue]] = {}
    found: list[str] = []
    for one in reversed(filled):
        behind = newest.setdefault(one.key, [])
        found.append(_replacing_value(one, behind))
        behind.append(one)
    return found[::-1]


NO_MORE = "no more"
_EXCLUSIVE = frozenset({"name", "number", "favourite"})
"""Where a value is said, another is no more.  Not of one's own name: it seldom changes, has shorter
forms, and is another's in a game or a story, so that a change of it must be said."""


def _replacing_value(one: SlotValue, newer: Sequence[SlotValue]) -> str:
    """What the newest of those that were said after ``one`` says against it."""
    if one.change == "ends" or one.old_value or not newer:
        return ""  # much else than a home is moved from one to another
    last = newer[0]
    if last.change == "ends":
        return NO_MORE if may_be_same(one.value, last.value) else ""
    if may_be_same(one.value, last.value):
        return ""
    instead = last.change == "becomes" or last.slot in _EXCLUSIVE
    if last.old_value and not may_be_same(last.old_value, one.value):
        return ""
    return last.value if instead else ""
