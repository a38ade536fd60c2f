"""What a user says shall be done from now on, or prefers: noticed by pattern.  Pure.

No question points at such words ("always answer in French"), so that no search finds them.  They
are pinned to prompts as they were said; ``in_force`` knows which, and for how long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

from proxy.recall.lexicon.cues import Cue, PossibleCues
from proxy.recall.lexicon.loader import any_of, lazy_pattern, phrase_pattern
from proxy.recall.own_words import BLANK, LONG, OwnText, Sentence, end_with_list, own_texts
from proxy.recall.query.words import tokenize
from proxy.recall.standing.matter import (
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

NEAR = 3
"""Sentences before an instruction that may order the piece of work that it is for."""
REMEMBERED = 512
"""Messages, of those that are not long, whose instructions a process remembers."""
SHORT = 300
"""Characters; of so short a message a preference keeps all sentences, which say what it is for."""


# The same as REPORTED, behind it.
_SAID_AFTER = lazy_pattern(any_of(lambda each: each.standing.reported_after), re.IGNORECASE)
# The rest of a clause that is a question, or is made one ("... , am I?").
_ASKED = re.compile(r"[^,;:،；，：–—]*(?:[,،，][^,،，]{1,16})?[?？؟]")
_COLON = re.compile(rf"(?P<before>.*?)(?::(?!\S)|：)(?:\Z|[\s{BLANK}.]*(?P<goes_on>[^\s{BLANK}.]))")
_PARAGRAPH = re.compile(r"\S[ \t\r]*\n[ \t\r]*\n")
# A withdrawal that names no matter and says this takes back all ("forget all my instructions").
_EVERYTHING = lazy_pattern(phrase_pattern(lambda each: each.standing.everything), re.IGNORECASE)


@dataclass(frozen=True)
class StandingInstruction:
    """Something said to hold from now on.

    ``kind``: an instruction to the assistant, a preference of the user, a leaning (a preference
    said softly), or the withdrawal of one.  ``text``: as it was said.  ``topic``: the stems it is
    about; ``scope``: those of the condition under which it holds ("when I ask about ...").
    ``rules``: the sentences it is made of, without their conditions.
    """

    kind: Kind
    text: str
    topic: frozenset[str]
    scope: frozenset[str] = frozenset()
    rules: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[StandingInstruction, ...]:
        """What of it may be taken back alone: made only where a newer one touches it."""
        matters = [matter for rule in self.rules for matter in _matters_of_parts(rule)]
        if len(matters) < 2:
            return (self,)
        return tuple(replace(self, topic=matter, rules=()) for matter in matters)

    @cached_property
    def values(self) -> frozenset[str]:
        """What it sets one of several values of, as the language of answers."""
        return _values(self.topic)

    @cached_property
    def words(self) -> frozenset[str]:
        return self.topic | self.scope

    def touches(self, other: StandingInstruction) -> bool:
        """Whether it can take the place of an older one, or of a part of it."""
        if not self.words and self.kind == "withdrawal":
            return bool(_EVERYTHING.search(self.text))
        return not self.words.isdisjoint(other.words)  # as nearly all are: the rest takes longer

    @cached_property
    def _beside(self) -> Mapping[str, frozenset[str]]:
        return neighbour_stems(before_but(self.text))

    def narrows(self, other: StandingInstruction) -> bool:
        """Whether it is of less than an older one's food or allergy: of pine nuts, not nuts."""
        if other.values & SINGLE_VALUED or not (
            other.kind == "preference" or other.values & ALLERGY
        ):
            return False
        named, known = self.words & other.words - GENERIC, other.words | GENERIC
        return any(self._beside.get(word, known) - known for word in named)

    @property
    def withdraws_previous(self) -> bool:
        """Whether it withdraws what was said right before it, whatever that was."""
        said = (language.taken_back.search(self.text) for language in WORDINGS)
        return self.kind == "withdrawal" and any(said)


def _values(matter: frozenset[str]) -> frozenset[str]:
    return frozenset(stem for stem in matter if stem.startswith("<"))


def find_instructions(text: str) -> tuple[StandingInstruction, ...]:
    """What a user's message says to hold from now on, in the order said; nearly always nothing.

    The text must be of role user.  Only a bounded part of a long one is read.
    """
    # Copies: two messages that say the same are two instructions, the older of which gives way.
    return tuple(map(copy, (_find_cached if len(text) <= LONG else _find)(text)))


def _find(text: str) -> tuple[StandingInstruction, ...]:
    read = head_and_tail(text)
    seen = tokenize(read).possible_cues
    cued = _with_cues(read, _likely(seen))
    if not cued:
        return ()
    found = (_instructions_in(voice, cued, seen) for voice in own_texts(text))
    return tuple(chain.from_iterable(found))


# What holds is asked for with every question, and was found in the same few messages each time.
_find_cached = lru_cache(maxsize=REMEMBERED)(_find)


def clear_caches() -> None:
    """Clear the caches of texts."""
    _find_cached.cache_clear()
    _matters_of_parts.cache_clear()


def has_instruction(text: str) -> bool:
    """Whether ``find_instructions`` finds anything; for the flag of an indexed message."""
    return bool(find_instructions(text))


def head_and_tail(text: str) -> str:
    """The beginning and the end of a long text, all of a short one."""
    return text[:LONG] + text[LONG:][-LONG:]


def _instructions_in(
    voice: OwnText, cued: Sequence[Wording], seen: PossibleCues
) -> list[StandingInstruction]:
    """What a voice says to hold from now on, in the order said, each text once.

    No sentence counts that begins before ``read_on_from``: it is part of what was found, or
    another's words.  Nor does an order or a withdrawal before ``own_orders_from``.  Both are
    places in the text, in characters.
    """
    by_text: dict[str, StandingInstruction] = {}
    read_on_from = own_orders_from = 0
    for place, sentence in enumerate(voice.sentences):
        if sentence.start < read_on_from:
            continue
        kind = _classify(sentence, cued, seen)
        before = voice.sentences[max(0, place - NEAR) : place]
        if kind is None:
            starts = read_on_from, own_orders_from
            read_on_from, own_orders_from = _behind_others(voice.text, sentence, starts)
        elif kind in ("instruction", "withdrawal") and sentence.start < own_orders_from:
            continue
        elif kind != "instruction" or not _of_work(sentence, before, cued, seen):
            read_on_from = end_with_list(voice.text, sentence.end)
            new = _standing(kind, voice, voice.text[sentence.start : read_on_from])
            same = by_text.get(new.text)
            by_text[new.text] = _merge(same, new) if same else new
    return list(by_text.values())


def _behind_others(text: str, sentence: Sentence, starts: tuple[int, int]) -> tuple[int, int]:
    """Where to read on, and from where on orders are the user's own, behind a sentence that may
    introduce another's words; ``starts``, which are the same two so far, where it does not.

    Such words go from its colon to the end of the paragraph ("my boss wrote: be on time. Always
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


def _of_work(
    sentence: Sentence, before: Sequence[Sentence], cued: Sequence[Wording], seen: PossibleCues
) -> bool:
    """Whether an instruction is for the piece of work that was ordered before it, in the sentences
    there or in its own."""
    ordered = any(_orders(each.words, cued) for each in before) or _work_is_ordered_first(
        sentence.words, cued, seen
    )
    return ordered and not any(language.lasting.search(sentence.words) for language in cued)


def _orders(words: str, cued: Sequence[Wording]) -> bool:
    return any(language.works.search(words) for language in cued)


def _work_is_ordered_first(words: str, cued: Sequence[Wording], seen: PossibleCues) -> bool:
    """Whether a piece of work is ordered before the first clause that is a wish by itself."""
    found = [clause.text for clause in clauses(words)]
    order = next((i for i, each in enumerate(found) if _orders(each, cued)), len(found))
    if order == len(found) or any(
        _classify_clause(each, cued, seen) for each in found[: order + 1]
    ):
        return False
    return any(_classify_clause(each, cued, seen) for each in found[order + 1 :])


def _likely(seen: PossibleCues) -> list[Wording]:
    """The languages in which a text may say it, of which these cues were seen."""
    return [language for language in WORDINGS if language.any in seen]


def _with_cues(words: str, languages: Sequence[Wording]) -> list[Wording]:
    """Those of the languages that a text may say it in; of nearly all texts there are none."""
    small = words.lower().replace("’", "'") if languages else ""
    return [each for each in languages if any(map(small.__contains__, each.cues))]


def _classify(sentence: Sentence, cued: Sequence[Wording], seen: PossibleCues) -> Kind | None:
    """What a sentence is by the first pattern that it has; None for one that has none, repeats
    another's words or is about the work at hand."""
    words, languages = sentence.words, _with_cues(sentence.words, cued)
    for language in languages:
        for kind, patterns in language.patterns:
            found = _first_match(words, patterns, seen)
            if found and (patterns is not language.ended or _is_asserted(words, found, language)):
                passing = _is_reported(words, found, language) or _is_about_now(sentence, languages)
                return None if passing and kind != "withdrawal" else kind
    return None


def _is_asserted(words: str, found: re.Match[str], language: Wording) -> bool:
    """Whether the user states what is found, for all it says: an allergy that is gone by mistake
    may cost a life, so that what is asked, doubted, another's opinion or put right ends nothing."""
    before, after = after_but(words[: found.start()]), words[found.end() :]
    if _ASKED.match(words, found.start()) or language.corrected.search(after):
        return False
    if language.mistaken.search(before):
        return False
    before = language.sure.sub("", before)
    others = REPORTED.search(before) or _SAID_AFTER.search(language.sure.sub("", after))
    return not (others or language.unsure.search(before))


def _is_about_now(sentence: Sentence, languages: Sequence[Wording]) -> bool:
    """Whether it is about the work at hand, or this moment."""
    return any(language.here.search(sentence.words) for language in languages)


def _first_match(words: str, patterns: Sequence[Cue], seen: PossibleCues) -> re.Match[str] | None:
    """What is found first; of what begins at the same place the first counts."""
    found = [match for each in patterns if (match := each.search(words, seen))]
    return min(found, key=lambda match: match.start(), default=None)


def _is_reported(words: str, found: re.Match[str], language: Wording) -> bool:
    """Whether what is found is given as another's words, and not as what a doctor found."""
    before, said = words[: found.start()], found[0]
    if not before.rstrip().endswith((":", "：")):
        before = language.sure.sub("", before)
    return bool(REPORTED.search(before + said) or _SAID_AFTER.search(words[found.end() :]))


def _standing(kind: Kind, voice: OwnText, said: str) -> StandingInstruction:
    """The instruction in ``said``; of a short message a preference keeps all sentences."""
    rule, condition = split_scope(said)
    whole = voice.text[voice.sentences[0].start : voice.sentences[-1].end]
    alone = kind in ("instruction", "withdrawal") or len(whole) > SHORT
    text, scope = said if alone else whole, stems(condition)
    if kind == "withdrawal":
        return StandingInstruction(kind, text, topic_of(before_but(rule)), scope)
    return StandingInstruction(kind, text, topic_of(rule), scope, (rule,))


def _merge(one: StandingInstruction, other: StandingInstruction) -> StandingInstruction:
    """Two sentences of a message that is kept as a whole, as one instruction."""
    return StandingInstruction(
        "preference" if "preference" in (one.kind, other.kind) else one.kind,
        one.text,
        one.topic | other.topic,
        one.scope & other.scope,
        one.rules + other.rules,
    )


@lru_cache(maxsize=REMEMBERED)
def _matters_of_parts(rule: str) -> tuple[frozenset[str], ...]:
    """What each part of a rule is about, in stems.

    A clause that can be a part begins one, unless there is one about the same.  Any other goes to
    the part about the same, else to the last one; those before the first part go to that.
    """
    parts: list[frozenset[str]] = []
    leading = frozenset[str]()
    for matter, can_be_part in _matters_of_clauses(rule):
        same = _about_the_same(parts, matter)
        if can_be_part and same is None:
            parts.append(matter | leading)
            leading = frozenset()
        elif parts:
            parts[-1 if same is None else same] |= matter
        else:
            leading |= matter
    return tuple(parts) or (leading,)


def _about_the_same(parts: Sequence[frozenset[str]], matter: frozenset[str]) -> int | None:
    """Which part shares a stem with this matter; none where that is an allergy, as there may be
    several."""
    if matter & ALLERGY:
        return None
    return next((n for n, part in enumerate(parts) if part & matter), None)


def _matters_of_clauses(rule: str) -> Iterator[tuple[frozenset[str], bool]]:
    """What each clause is about, in stems, and whether it can be a part of its own: it sets a
    value, is a wish by itself, or goes on with a list.  All that names an allergy
    is such a list."""
    allergy, seen = topic_of(rule) & ALLERGY, tokenize(rule).possible_cues
    likely = _likely(seen)
    kind: Kind | None = None
    for clause in clauses(rule):
        matter, own = topic_of(clause.text), _classify_clause(clause.text, likely, seen)
        kind = own or kind
        if own or _values(matter):
            yield matter, True
        elif matter:
            in_list = kind and (clause.is_item or kind == "preference")
            yield matter | allergy, bool(allergy or in_list)


def _classify_clause(clause: str, cued: Sequence[Wording], seen: PossibleCues) -> Kind | None:
    """As what a part of a sentence would be noticed if it was said alone."""
    words = clause.replace("’", "'")
    for language in _with_cues(words, cued):
        for kind, patterns in language.patterns:
            if kind != "withdrawal" and _first_match(words, patterns, seen):
                return kind
    return None
