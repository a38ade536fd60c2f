"""Selects what to recall from a shortlist and its messages in history.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import cache

import msgspec

from proxy.memory.archive import Message
from proxy.recall.index import OwnTextOf
from proxy.recall.notes.notes import with_notes
from proxy.recall.pipeline import Shortlist
from proxy.recall.query.dates import utc_offset
from proxy.recall.query.query import RecallQuery
from proxy.recall.ranking.select import Passage, allotted_tokens, choose_passages
from proxy.recall.ranking.updates import NewWords, best_statement, new_words_of
from proxy.recall.results import Kind, PassageSource, RecallHit, Recollection
from proxy.recall.standing.in_force import instructions_in_force, pinned
from proxy.recall.standing.standing import StandingInstruction, find_instructions

SourceOf = Callable[[int], PassageSource | None]
Messages = Mapping[tuple[str, int], Message]

OVERCOMMIT = 1.15
"""Passages are chosen for so many times the budget, since the estimates of tokens may be too
high."""

EXTRA_TOKENS, MAX_OVERCOMMIT = 200, 1.55
"""Tokens added to that, up to so many times the budget: so a small budget is filled with whatever
passages fit."""

MAX_SEQ_DISTANCE = 2
"""Seqs between two messages of the user in consecutive turns without tool calls."""

LINE_TOKENS = 2
"""Tokens of a standing instruction's line without its text."""

STANDING_SHARE = 0.2
"""The largest part of the budget for standing instructions."""


class PlacedInstruction(msgspec.Struct, frozen=True):
    """A standing instruction, its message, and its number among those of the message."""

    instruction: StandingInstruction
    source: PassageSource
    place: int

    def hit(self, query: RecallQuery) -> RecallHit:
        kind: Kind = "instruction" if self.instruction.kind == "instruction" else "preference"
        text = self.instruction.text
        hit = self.source.hit(kind, text, query.count(text) + LINE_TOKENS)
        return msgspec.structs.replace(hit, place=self.place)

    def follows(self, other: PlacedInstruction) -> bool:
        """Whether it was said in the turn after the other: only an answer is between them."""
        here, there = self.source.place, other.source.place
        return here.session == there.session and here.seq - there.seq <= MAX_SEQ_DISTANCE


def resolve(shortlist: Shortlist, messages: Messages, own_text_of: OwnTextOf) -> Recollection:
    """What to recall, with the current texts of ``messages``: pinned standing instructions, and
    passages in the rest of the budget."""
    source_of = _source_of(shortlist, messages, own_text_of)
    standing = _pinned(shortlist, source_of)
    passages = _chosen(shortlist, source_of, standing)
    # A search gets no notes.
    if not shortlist.query.is_search:
        zone = shortlist.query.options.zone
        passages = with_notes(passages, shortlist.now + utc_offset(shortlist.now, zone))
    return Recollection(tuple(passages), standing)


def _chosen(
    shortlist: Shortlist, source_of: SourceOf, standing: Sequence[RecallHit]
) -> list[RecallHit]:
    """The passages of a shortlist to recall beside these standing instructions, best first."""
    query = shortlist.query
    budget, reserve = _budgets(shortlist, query.budget - sum([each.tokens for each in standing]))
    pinned_texts = {(each.message, each.text) for each in standing}
    sources: dict[int, PassageSource] = {}

    @cache  # an answer's question is read for it, and as a passage of its own
    def passage_of(number: int) -> Passage | None:
        source = source_of(number)
        if source is None:
            return None
        if pinned_texts and (source.message.card.id, source.text.strip()) in pinned_texts:
            return None
        sources[number] = source
        return source.passage(number)

    shown = () if query.is_search else (query.text,)
    chosen = choose_passages(
        shortlist.matches, shortlist.ranked, passage_of, budget, shown, reserve
    )
    why = {each.number: each for each in shortlist.ranked}
    found = [
        sources[each.number].hit("passage", each.text, each.tokens, why[each.number])
        for each in chosen
    ]
    zone = query.options.zone
    return found if zone is None else [_with_utc_offset(zone, each) for each in found]


def _budgets(shortlist: Shortlist, left: int) -> tuple[int, int]:
    """The budget to choose passages with, and the part of it by which it exceeds the ``left``
    tokens of the prompt: that part is not used to restore whole texts of excerpts.

    A search gets only excerpts.  A replay, and a question with similar passages, gets all of
    ``left``; any other what ``allotted_tokens`` gives it.
    """
    query = shortlist.query
    budget = int(min(OVERCOMMIT * left + EXTRA_TOKENS, MAX_OVERCOMMIT * left))
    if query.is_search:
        return budget, budget
    if query.replayed is not None or shortlist.has_similar:
        return budget, budget - left
    budget = allotted_tokens(shortlist.matches, budget)
    return budget, budget - allotted_tokens(shortlist.matches, left)


def _with_utc_offset(zone: tzinfo, found: RecallHit) -> RecallHit:
    return msgspec.structs.replace(found, utc_offset=utc_offset(found.created_at, zone))


def new_words_of_best(
    shortlist: Shortlist, messages: Messages, own_text_of: OwnTextOf
) -> NewWords | None:
    """The words of the user's best passage that are not in the question; None if there are none, or
    no tokens are left for later changes of it."""
    best = best_statement(shortlist.ranked) if shortlist.selection else None
    source = best and _source_of(shortlist, messages, own_text_of)(best.number)
    if not (best and source):
        return None
    found = new_words_of(best.number, source.text, shortlist.matches.question)
    return found if found.words else None


def in_force(
    shortlist: Shortlist, messages: Messages, own_text_of: OwnTextOf
) -> tuple[RecallHit, ...]:
    """The standing instructions in force, newest first."""
    instructions = _in_force(shortlist, _source_of(shortlist, messages, own_text_of))
    return tuple(each.hit(shortlist.query) for each in instructions)


def _in_force(shortlist: Shortlist, source_of: SourceOf) -> list[PlacedInstruction]:
    said = list(_instructions_said(shortlist, source_of))

    def right_after(older: int, newer: int) -> bool:
        return said[newer].follows(said[older])

    ids = set(map(id, instructions_in_force([each.instruction for each in said], right_after)))
    return [each for each in said if id(each.instruction) in ids]


def _instructions_said(shortlist: Shortlist, source_of: SourceOf) -> Iterator[PlacedInstruction]:
    """All standing instructions that were not dismissed, newest first."""
    for source in filter(None, map(source_of, shortlist.standing)):
        for place, instruction in reversed(list(enumerate(find_instructions(source.text)))):
            if f"{source.message.card.id}:{place}" not in shortlist.dismissed:
                yield PlacedInstruction(instruction, source, place)


def _pinned(shortlist: Shortlist, source_of: SourceOf) -> tuple[RecallHit, ...]:
    """Those in force that go into the prompt, newest first."""
    query = shortlist.query
    instructions = _in_force(shortlist, source_of)
    if not instructions:
        return ()
    budget = min(query.options.standing_max_tokens, int(STANDING_SHARE * query.budget))
    chosen = pinned(
        query.text,
        [each.instruction for each in instructions],
        budget,
        lambda text: query.count(text) + LINE_TOKENS,
    )
    ids = set(map(id, chosen))
    return tuple(each.hit(query) for each in instructions if id(each.instruction) in ids)


def _source_of(shortlist: Shortlist, messages: Messages, own_text_of: OwnTextOf) -> SourceOf:
    """Makes a function from a passage's number to its source.

    It returns None if the prompt has the message already, if it is no longer the one that was
    indexed, or if it has no text of its author's own.
    """
    places, query = shortlist.places, shortlist.query
    said, gone = query.shown_digests, query.superseded_ids

    def source_of(number: int) -> PassageSource | None:
        place = places[number]
        message = messages.get((place.session, place.seq))
        if message is None or not place.is_of(message.card):
            return None
        if message.card.digest in said or message.card.id in gone:
            return None
        text, share = own_text_of(message.wire)
        return PassageSource(place, message, text, share) if text.strip() else None

    return source_of
