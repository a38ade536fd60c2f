"""Finds standing instructions: what a user wants done from now on, or prefers.  By patterns.  Pure.

No search finds them, since questions do not have their words ("always answer in French").  So they
are pinned to prompts, verbatim; ``in_force`` selects them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from proxy.recall.lexicon.cues import Cue, PossibleCues
from proxy.recall.lexicon.loader import any_of, lazy_pattern, phrase_pattern
from proxy.recall.own_words import BLANK, LONG_MESSAGE, OwnText, Sentence, end_with_list, own_texts
from proxy.recall.query.words import tokenize
from proxy.recall.standing.topics import (
    ALLERGY,
    GENERIC,
    SINGLE_VALUED,
    after_but,
    before_but,
    clauses,
    neighbour_stems,
    split_scope,
    stems,
    topic_of,
)
from proxy.recall.standing.wording import REPORTED, WORDINGS, Kind, Wording
from proxy.recall.text_cache import text_cache

SENTENCES_BEFORE = 3
"""Sentences before an instruction in which the task may be ordered that it is meant for."""
CACHED_MESSAGES = 512
"""Messages whose instructions are cached, long ones excepted."""
MAX_SHORT_MESSAGE = 300
"""Characters; a preference in a shorter message has all of its sentences, as context."""


# As REPORTED, but after what was reported.
_SAID_AFTER = lazy_pattern(any_of(lambda each: each.standing.reported_after), re.IGNORECASE)
# The rest of a clause that is a question, or has a question tag ("... , am I?").
_ASKED = re.compile(r"[^,;:،；，：–—]*(?:[,،，][^,،，]{1,16})?[?？؟]")
_COLON = re.compile(rf"(?P<before>.*?)(?::(?!\S)|：)(?:\Z|[\s{BLANK}.]*(?P<goes_on>[^\s{BLANK}.]))")
_PARAGRAPH = re.compile(r"\S[ \t\r]*\n[ \t\r]*\n")
# A withdrawal without a topic that has this withdraws everything ("forget all my instructions").
_EVERYTHING = lazy_pattern(phrase_pattern(lambda each: each.standing.everything), re.IGNORECASE)


@dataclass(frozen=True)
class StandingInstruction:
    """Something that a user said to hold from now on.

    ``kind``: an instruction to the assistant, a preference of the user, a leaning (a weak
    preference), or a withdrawal of one of these.  ``text``: verbatim.  ``topic``: the stems of
    what it is about; ``scope``: those of the condition under which it holds ("when I ask about
    ...").  ``rules``: its sentences without their conditions.
    """

    kind: Kind
    text: str
    topic: frozenset[str]
    scope: frozenset[str] = frozenset()
    rules: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[StandingInstruction, ...]:
        """The parts that may be superseded or withdrawn separately."""
        topics = [topic for rule in self.rules for topic in _topics_of_parts(rule)]
        if len(topics) < 2:
            return (self,)
        return tuple(replace(self, topic=topic, rules=()) for topic in topics)

    @cached_property
    def values(self) -> frozenset[str]:
        """The things that it gives a value of, as the language of answers."""
        return _values(self.topic)

    @cached_property
    def words(self) -> frozenset[str]:
        return self.topic | self.scope

    def touches(self, other: StandingInstruction) -> bool:
        """Whether it may supersede or withdraw an older one, or a part of it."""
        if not self.words and self.kind == "withdrawal":
            return bool(_EVERYTHING.search(self.text))
        return not self.words.isdisjoint(other.words)  # a fast test: nearly all are disjoint

    @cached_property
    def _neighbours(self) -> Mapping[str, frozenset[str]]:
        return neighbour_stems(before_but(self.text))

    def narrows(self, other: StandingInstruction) -> bool:
        """Whether it is about less than an older one's food or allergy: pine nuts, not nuts."""
        if other.values & SINGLE_VALUED or not (
            other.kind == "preference" or other.values & ALLERGY
        ):
            return False
        named, known = self.words & other.words - GENERIC, other.words | GENERIC
        return any(self._neighbours.get(word, known) - known for word in named)

    @property
    def withdraws_previous(self) -> bool:
        """Whether it withdraws the instruction right before it, whatever its topic."""
        said = (wording.taken_back.search(self.text) for wording in WORDINGS)
        return self.kind == "withdrawal" and any(said)


def _values(topic: frozenset[str]) -> frozenset[str]:
    return frozenset(stem for stem in topic if stem.startswith("<"))


def find_instructions(text: str) -> tuple[StandingInstruction, ...]:
    """The standing instructions in a message of role user, in their order; nearly always none.

    Of a long text only the beginning and the end are read.
    """
    # Copies, since callers compare identities, and the same text in two messages is cached once.
    return tuple(map(copy, (_find_cached if len(text) <= LONG_MESSAGE else _find)(text)))


def _find(text: str) -> tuple[StandingInstruction, ...]:
    read = head_and_tail(text)
    cues = tokenize(read).possible_cues
    wordings = _with_cues(read, _possible_wordings(cues))
    if not wordings:
        return ()
    found = (_instructions_in(own_text, wordings, cues) for own_text in own_texts(text))
    return tuple(chain.from_iterable(found))


# Cached, since every question reads the same few messages again.
_find_cached = text_cache(CACHED_MESSAGES)(_find)


def has_instruction(text: str) -> bool:
    """Whether ``find_instructions`` finds any; for the flag of an indexed message."""
    return bool(find_instructions(text))


def head_and_tail(text: str) -> str:
    """The first and the last ``LONG_MESSAGE`` characters of a text."""
    return text[:LONG_MESSAGE] + text[LONG_MESSAGE:][-LONG_MESSAGE:]


def _instructions_in(
    own_text: OwnText, wordings: Sequence[Wording], cues: PossibleCues
) -> list[StandingInstruction]:
    """The standing instructions in a text of the user's own words, in their order, each text once.

    Sentences that begin before ``read_on_from`` are skipped: they are part of the last instruction
    found, or quoted.  So are orders and withdrawals before ``own_orders_from``.  Both are offsets
    in the text.
    """
    by_text: dict[str, StandingInstruction] = {}
    read_on_from = own_orders_from = 0
    for place, sentence in enumerate(own_text.sentences):
        if sentence.start < read_on_from:
            continue
        kind = _classify(sentence, wordings, cues)
        before = own_text.sentences[max(0, place - SENTENCES_BEFORE) : place]
        if kind is None:
            starts = read_on_from, own_orders_from
            read_on_from, own_orders_from = _skip_quoted(own_text.text, sentence, starts)
        elif kind in ("instruction", "withdrawal") and sentence.start < own_orders_from:
            continue
        elif kind != "instruction" or not _is_for_ordered_task(sentence, before, wordings, cues):
            read_on_from = end_with_list(own_text.text, sentence.end)
            new = _make_instruction(kind, own_text, own_text.text[sentence.start : read_on_from])
            same = by_text.get(new.text)
            by_text[new.text] = _merge(same, new) if same else new
    return list(by_text.values())


def _skip_quoted(text: str, sentence: Sentence, starts: tuple[int, int]) -> tuple[int, int]:
    """The new ``read_on_from`` and ``own_orders_from`` after a sentence that may introduce a
    quotation; if it does not, ``starts``, which are the old ones.

    A quotation goes from the colon to the end of the paragraph ("my boss wrote: be on time. Always
    ...").
    """
    colon = _COLON.match(sentence.words)
    if not colon:
        return starts
    behind_colon = colon.end("before") + 1
    paragraph = _PARAGRAPH.search(text, sentence.start + behind_colon)
    end = paragraph.end() if paragraph else len(text)
    if REPORTED.search(sentence.words[:behind_colon]):
        return end, end
    return (starts[0], end) if colon["goes_on"] else starts


def _is_for_ordered_task(
    sentence: Sentence, before: Sequence[Sentence], wordings: Sequence[Wording], cues: PossibleCues
) -> bool:
    """Whether an instruction is only for a task that was ordered before it, in one of the sentences
    ``before`` or in its own."""
    ordered = any(_orders_task(each.words, wordings) for each in before) or _task_is_ordered_first(
        sentence.words, wordings, cues
    )
    return ordered and not any(wording.lasting.search(sentence.words) for wording in wordings)


def _orders_task(words: str, wordings: Sequence[Wording]) -> bool:
    return any(wording.works.search(words) for wording in wordings)


def _task_is_ordered_first(words: str, wordings: Sequence[Wording], cues: PossibleCues) -> bool:
    """Whether a task is ordered before the first clause that is an instruction by itself."""
    found = [clause.text for clause in clauses(words)]
    order = next((i for i, each in enumerate(found) if _orders_task(each, wordings)), len(found))
    if order == len(found) or any(
        _classify_clause(each, wordings, cues) for each in found[: order + 1]
    ):
        return False
    return any(_classify_clause(each, wordings, cues) for each in found[order + 1 :])


def _possible_wordings(cues: PossibleCues) -> list[Wording]:
    """The wordings that may match a text with these possible cues."""
    return [wording for wording in WORDINGS if wording.any in cues]


def _with_cues(words: str, wordings: Sequence[Wording]) -> list[Wording]:
    """Those of the wordings with a cue in the text; for nearly all texts none."""
    small = words.lower().replace("’", "'") if wordings else ""
    return [each for each in wordings if any(map(small.__contains__, each.cues))]


def _classify(sentence: Sentence, wordings: Sequence[Wording], cues: PossibleCues) -> Kind | None:
    """The kind of the first pattern that a sentence matches.

    None if there is none, and, except for withdrawals, if it reports another's words or is about
    the current task.
    """
    words, wordings = sentence.words, _with_cues(sentence.words, wordings)
    for wording in wordings:
        for kind, patterns in wording.patterns:
            found = _first_match(words, patterns, cues)
            if found and (patterns is not wording.ended or _is_asserted(words, found, wording)):
                passing = _is_reported(words, found, wording) or _is_about_now(sentence, wordings)
                return None if passing and kind != "withdrawal" else kind
    return None


def _is_asserted(words: str, found: re.Match[str], wording: Wording) -> bool:
    """Whether the user asserts what was ``found``, that something has ended.

    An allergy that is withdrawn by mistake may cost a life: so not if it is asked, doubted,
    another's opinion, or corrected.
    """
    before, after = after_but(words[: found.start()]), words[found.end() :]
    if _ASKED.match(words, found.start()) or wording.corrected.search(after):
        return False
    if wording.mistaken.search(before):
        return False
    before = wording.sure.sub("", before)
    others = REPORTED.search(before) or _SAID_AFTER.search(wording.sure.sub("", after))
    return not (others or wording.unsure.search(before))


def _is_about_now(sentence: Sentence, wordings: Sequence[Wording]) -> bool:
    """Whether it is only about the current task or moment."""
    return any(wording.here.search(sentence.words) for wording in wordings)


def _first_match(words: str, patterns: Sequence[Cue], cues: PossibleCues) -> re.Match[str] | None:
    """The match that begins first; if several do, that of the first pattern."""
    found = [match for each in patterns if (match := each.search(words, cues))]
    return min(found, key=lambda match: match.start(), default=None)


def _is_reported(words: str, found: re.Match[str], wording: Wording) -> bool:
    """Whether what was found is reported as another's words, except as certain (a doctor's
    finding)."""
    before, said = words[: found.start()], found[0]
    if not before.rstrip().endswith((":", "：")):
        before = wording.sure.sub("", before)
    return bool(REPORTED.search(before + said) or _SAID_AFTER.search(words[found.end() :]))


def _make_instruction(kind: Kind, own_text: OwnText, said: str) -> StandingInstruction:
    """The instruction in ``said``; a preference in a short message has the whole message as its
    text."""
    rule, condition = split_scope(said)
    whole = own_text.text[own_text.sentences[0].start : own_text.sentences[-1].end]
    alone = kind in ("instruction", "withdrawal") or len(whole) > MAX_SHORT_MESSAGE
    text, scope = said if alone else whole, stems(condition)
    if kind == "withdrawal":
        return StandingInstruction(kind, text, topic_of(before_but(rule)), scope)
    return StandingInstruction(kind, text, topic_of(rule), scope, (rule,))


def _merge(one: StandingInstruction, other: StandingInstruction) -> StandingInstruction:
    """One instruction of two with the same text, the whole message."""
    return StandingInstruction(
        "preference" if "preference" in (one.kind, other.kind) else one.kind,
        one.text,
        one.topic | other.topic,
        one.scope & other.scope,
        one.rules + other.rules,
    )


@text_cache(CACHED_MESSAGES)
def _topics_of_parts(rule: str) -> tuple[frozenset[str], ...]:
    """The topic of each part of a rule.

    A clause that can be a part begins one, unless an earlier part shares its topic.  Any other
    clause is added to the part that shares its topic, else to the last part; those before the
    first part are added to the first.
    """
    parts: list[frozenset[str]] = []
    leading = frozenset[str]()
    for topic, can_be_part in _topics_of_clauses(rule):
        same = _part_about(parts, topic)
        if can_be_part and same is None:
            parts.append(topic | leading)
            leading = frozenset()
        elif parts:
            parts[-1 if same is None else same] |= topic
        else:
            leading |= topic
    return tuple(parts) or (leading,)


def _part_about(parts: Sequence[frozenset[str]], topic: frozenset[str]) -> int | None:
    """The index of the first part that shares a stem with a topic; None for an allergy, of which
    there may be several."""
    if topic & ALLERGY:
        return None
    return next((n for n, part in enumerate(parts) if part & topic), None)


def _topics_of_clauses(rule: str) -> Iterator[tuple[frozenset[str], bool]]:
    """The topic of each clause, and whether it can be a part: if it gives a value, is an
    instruction by itself, or is an item of a list.  Clauses about an allergy count as such a list.
    """
    allergy, cues = topic_of(rule) & ALLERGY, tokenize(rule).possible_cues
    likely = _possible_wordings(cues)
    kind: Kind | None = None
    for clause in clauses(rule):
        topic, own = topic_of(clause.text), _classify_clause(clause.text, likely, cues)
        kind = own or kind
        if own or _values(topic):
            yield topic, True
        elif topic:
            in_list = kind and (clause.is_item or kind == "preference")
            yield topic | allergy, bool(allergy or in_list)


def _classify_clause(clause: str, wordings: Sequence[Wording], cues: PossibleCues) -> Kind | None:
    """The kind of a part of a sentence if it stood alone; None if it is none."""
    words = clause.replace("’", "'")
    for wording in _with_cues(words, wordings):
        for kind, patterns in wording.patterns:
            if kind != "withdrawal" and _first_match(words, patterns, cues):
                return kind
    return None
