"""Slots: things that have one value at a time, as names, places of living and work, numbers.  Pure.

Values are read only from sentences that say nothing else, so that they are right.
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

MAX_MESSAGE = 600
"""Characters of a message that is read."""

MAX_SENTENCE_CHARACTERS = 160

MAX_NAME_WORDS = 4
"""Of a name."""

_STEM = 4
"""Words with so many first letters in common count as the same, since endings differ."""

_END = " \t\r\n.!?。！？~～…)\"'"
_DOUBT = "?？"


class SlotValue(NamedTuple):
    """A value of a slot, of a person (a name, or "": the user) and of a subject ("": none).

    ``change``: whether it holds, becomes the value, or ends to be it; ``old_value``: the value
    before, "" if not said.
    """

    slot: Slot
    person: str
    subject: str
    value: str
    change: Change = "holds"
    old_value: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies the slot; a role is given by a name, so it counts as one."""
        return "name" if self.slot == "role" else self.slot, self.person, self.subject


def slot_values(read: TokenizedText) -> tuple[SlotValue, ...]:
    """The values in a user's message, in its order.  Time is bounded for any text."""
    text = read.text
    if len(text) > MAX_MESSAGE:
        return ()
    wordings = [each for each in WORDINGS if each.any in read.possible_cues]
    wordings = [each for each in wordings if not each.others.search(text)]
    if not wordings:
        return ()
    sentences = [each for own_text in own_texts(text) for each in own_text.sentences]
    speaker = fold(speaker_of(text))
    return tuple(_values_in(sentences, wordings, speaker))


def _values_in(
    sentences: Iterable[Sentence], wordings: Sequence[Wording], speaker: str
) -> Iterator[SlotValue]:
    for sentence in sentences:
        words = sentence.words
        is_doubted = any(mark in words for mark in _DOUBT)
        if is_doubted or BLANK in words or len(words) > MAX_SENTENCE_CHARACTERS:
            continue
        for wording in wordings:
            found = _match(words.strip(_END), wording, speaker)
            if found is not None:
                yield found
                break


def _match(words: str, wording: Wording, speaker: str) -> SlotValue | None:
    for how, slot, pattern in wording.patterns:
        match = pattern.fullmatch(words)
        if match is None:
            continue
        if wording.doubts.search(words):
            return None
        parts = named_groups(match)
        value, old = parts["value"].strip(), parts.get("old", "").strip()
        if _is_value(slot, value):
            return SlotValue(slot, speaker, fold(parts.get("of", "")), value, how, old)
    return None


def _is_value(slot: Slot, value: str) -> bool:
    if slot == "number":
        return any(map(str.isdigit, value)) or "@" in value
    named = not value[:1].islower() and len(value.split()) <= MAX_NAME_WORDS
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
    """For each value, oldest first: the later value of its slot that replaces it, ``NO_MORE`` if it
    was said to have ended, else ""."""
    newest: dict[tuple[str, str, str], list[SlotValue]] = {}
    found: list[str] = []
    for one in reversed(filled):
        newer = newest.setdefault(one.key, [])
        found.append(_replacing_value(one, newer))
        newer.append(one)
    return found[::-1]


NO_MORE = "no more"
_EXCLUSIVE = frozenset({"name", "number", "favourite"})
"""Slots of which any new value replaces the old one; for others a change must be said explicitly.
The user's own name is one of the others: it seldom changes, has shorter forms, and may be another's
in a game or a story."""


def _replacing_value(one: SlotValue, newer: Sequence[SlotValue]) -> str:
    """What replaces a value, given the later values of its slot, the newest first."""
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
