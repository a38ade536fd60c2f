"""The way from a question to what is recalled, between the looks at the store.  Pure.

``select`` reads the index's answer, ``rank`` the rows of what matched, ``resolve`` the messages;
``replay`` is for what was recalled once already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo

import msgspec
import numpy as np

from proxy.memory.archive import Message
from proxy.memory.model import Recalled
from proxy.recall.index import Look, OwnOf, Rows
from proxy.recall.indexing.state import State
from proxy.recall.notes.notes import noted
from proxy.recall.query.dates import ahead
from proxy.recall.query.query import RecallQuery
from proxy.recall.query.question import Question
from proxy.recall.query.words import Corpus
from proxy.recall.ranking.breadth import broadly
from proxy.recall.ranking.changing import Named, best_told, changes, told
from proxy.recall.ranking.following import behind, following
from proxy.recall.ranking.match import NOBODY, Matches, Numbers, candidates, match
from proxy.recall.ranking.packing import Array, read_rows
from proxy.recall.ranking.score import LONG, PARTS, Options, Ranked, ranked
from proxy.recall.ranking.select import (
    BLOCK_TOKENS,
    BRIEF,
    SESSION_TOKENS,
    Passage,
    choose,
    deserved,
    relevant,
)
from proxy.recall.results import Found, Kind, PassageSource, Place, Recollection
from proxy.recall.semantic.vectors import NOTHING_NEAR, Near
from proxy.recall.standing.standing import StandingInstruction, current, notice, pinned

PlaceOf = Callable[[int, int, int], Place | None]
SourceOf = Callable[[int], PassageSource | None]
Messages = Mapping[tuple[str, int], Message]

MOST_READ = 80
"""Passages that are looked up in history for one question."""

SPARE = 1.15
"""So much of the budget is chosen, in case that the estimates of tokens are too high."""

MORE, MOST = 200, 1.55
"""Tokens beside that, up to so much of the budget: what is left of a small one is filled with what
fits."""

NO_SESSION = 2**32 - 1
"""The number of no session."""

ONE_ANSWER = 2
"""Between what the user says in a session and says next, in seqs, where no tool was asked."""

LINE = 2
"""Tokens of a standing instruction's line beside its text."""

STANDING_SHARE = 0.2
"""The largest part of the budget for standing instructions."""

ONE_MORE = BLOCK_TOKENS + SESSION_TOKENS + BRIEF
"""Tokens that leave room for a brief message of another session."""


class Selection(msgspec.Struct, frozen=True):
    """What an index of this ``state`` says to a question at a ``look``.  ``numbers``, ascending,
    are the passages to rank, ``behind`` some that follow the best; ``standing`` those with standing
    instructions, newest first."""

    query: RecallQuery
    matches: Matches
    numbers: Numbers
    behind: Numbers
    near: Near
    standing: tuple[int, ...]
    dismissed: frozenset[str]
    now: float
    state: State
    look: Look

    @property
    def session(self) -> int | None:
        """The number of the session that asks."""
        return self.look.mark.number if self.look.mark else None

    @property
    def all(self) -> Numbers:
        """Every passage whose row is needed."""
        return np.concatenate([self.numbers, self.behind, np.array(self.standing, np.uint32)])


class Noticed(msgspec.Struct, frozen=True):
    """A standing instruction, the message it was said in, and which of those in it this is."""

    instruction: StandingInstruction
    source: PassageSource
    place: int

    def found(self, query: RecallQuery) -> Found:
        kind: Kind = "instruction" if self.instruction.kind == "instruction" else "preference"
        text = self.instruction.text
        found = self.source.found(kind, text, query.count(text) + LINE)
        return msgspec.structs.replace(found, place=self.place)

    def follows(self, other: Noticed) -> bool:
        """Whether the user said it right after the other: only an answer is between them."""
        here, there = self.source.place, other.source.place
        return here.session == there.session and here.seq - there.seq <= ONE_ANSWER


class Shortlist(msgspec.Struct, frozen=True):
    """Passages that are worth looking up, best first, and those with standing instructions, newest
    first; where each of them stands, and whether something is near the question in meaning.
    ``open``: what they were chosen from, where they leave room for what changed them later."""

    query: RecallQuery
    matches: Matches
    ranked: Sequence[Ranked]
    standing: Sequence[int]
    places: Mapping[int, Place]
    dismissed: frozenset[str] = frozenset()
    now: float = 0.0
    near: bool = False
    open: Selection | None = None

    def seqs(self) -> dict[str, set[int]]:
        """Seqs by session."""
        seqs: dict[str, set[int]] = {}
        for place in self.places.values():
            seqs.setdefault(place.session, set()).add(place.seq)
        return seqs


def matched(question: Question, look: Look, state: State) -> Matches:
    """What an index of this state has of the words of a question."""
    return match(question, look, Corpus(state.passages, state.length))


def select(
    query: RecallQuery,
    matches: Matches,
    look: Look,
    state: State,
    now: float,
    near: Near = NOTHING_NEAR,
) -> Selection:
    """Which passages to look at; ``near`` is what is near the question in meaning."""
    there_is = near.related or relevant(matches, query.options.min_score)
    worth_it = there_is and not matches.question.empty
    return Selection(
        query=query,
        matches=matches,
        numbers=_numbers(matches, near) if worth_it else NOBODY,
        behind=behind(matches) if worth_it else NOBODY,
        near=near,
        standing=tuple(reversed(state.standing)),
        dismissed=frozenset(state.dismissed),
        now=now,
        state=state,
        look=look,
    )


def _numbers(matches: Matches, near: Near) -> Numbers:
    """The passages to look at for their words, their days and their meaning."""
    found = candidates(matches)
    return np.union1d(found, near.nearest()) if near.numbers.size else found


def rank(selection: Selection, found: Rows) -> Shortlist:
    """Which of them to look up in history; ``found`` are the rows of ``selection.all``."""
    rows = read_rows(found.data)
    size = selection.numbers.size
    end = size + selection.behind.size
    place_of = _place_of(selection, found.sessions)
    best = _ranked(selection, rows[:size])
    left = _left(selection, best)
    behind_it = _following(selection, best, rows[size:end]) if left > 0 else ()
    worth, places = _placed((*best, *behind_it), place_of)
    for number, row in zip(selection.standing, rows[end:], strict=True):
        session, seq, check, *_ = row.item()
        place = place_of(session, seq, check)
        if place is not None:
            places[number] = place
    return Shortlist(
        selection.query,
        selection.matches,
        worth,
        [number for number in selection.standing if number in places],
        places,
        selection.dismissed,
        selection.now,
        selection.near.related,
        selection if left >= ONE_MORE and not selection.matches.question.general else None,
    )


def told_best(shortlist: Shortlist, messages: Messages, own_of: OwnOf) -> Named | None:
    """What the best passage of the user tells beside what is asked; None where that is nothing, or
    there is no room for what changed it."""
    best = best_told(shortlist.ranked) if shortlist.open else None
    source = best and _source_of(shortlist, messages, own_of)(best.number)
    if not (best and source and source.is_meant):
        return None
    found = told(best.number, source.text, shortlist.matches.question)
    return found if found.words else None


def changed(shortlist: Shortlist, selection: Selection, numbers: Numbers, found: Rows) -> Shortlist:
    """What of ``numbers`` was said by the user, and is not on the shortlist; ``found`` are their
    rows."""
    said = changes(numbers, read_rows(found.data), shortlist.places)
    worth, places = _placed(said, _place_of(selection, found.sessions))
    return msgspec.structs.replace(shortlist, ranked=worth, standing=(), places=places)


def together(shortlist: Shortlist, more: Shortlist) -> Shortlist:
    """The one behind the other."""
    ranked, places = [*shortlist.ranked, *more.ranked], {**shortlist.places, **more.places}
    return msgspec.structs.replace(shortlist, ranked=ranked, places=places)


def replay(selection: Selection, refs: Sequence[Recalled]) -> Shortlist:
    """What was recalled once already."""
    sessions = list(dict.fromkeys(ref.session for ref in refs))
    places = {
        i: Place(ref.session, sessions.index(ref.session), ref.seq, message=ref.message)
        for i, ref in enumerate(refs)
    }
    ranked = [
        _ranked_before(i, places[i], ref) for i, ref in enumerate(refs) if ref.kind == "passage"
    ]
    standing = [i for i, ref in enumerate(refs) if ref.kind != "passage"]
    query, dismissed, now = selection.query, selection.dismissed, selection.now
    return Shortlist(query, selection.matches, ranked, standing, places, dismissed, now)


def _ranked_before(number: int, place: Place, ref: Recalled) -> Ranked:
    values = tuple(ref.parts.get(name, 0.0) for name in PARTS)
    of_row = (number, place.number, place.seq, place.check, ref.tokens)
    return Ranked(*of_row, ref.score, values, ref.flags)


def _ranked(selection: Selection, rows: Array) -> Sequence[Ranked]:
    query = selection.query
    own = selection.session if selection.session is not None else NO_SESSION
    options = Options(
        now=selection.now,
        half_life_days=query.options.half_life_days,
        session=own if query.own_session_only else None,
        roles=frozenset(query.options.roles),
        dense=selection.near.of(selection.numbers) if selection.near.numbers.size else {},
    )
    found = ranked(selection.matches, selection.numbers, rows, options, query.budget)
    return broadly(found) if selection.matches.question.lists else found


def _left(selection: Selection, found: Sequence[Ranked]) -> int:
    """Tokens that all that was found leaves for what the user said of it later."""
    query = selection.query
    if not found or query.searches or "user" not in query.options.roles:
        return 0
    return query.budget - sum([min(each.tokens, LONG) for each in found])


def _following(selection: Selection, found: Sequence[Ranked], rows: Array) -> Sequence[Ranked]:
    """What follows the best passage."""
    return following(found[0], selection.behind, rows, {each.number for each in found})


def _placed(ranked: Iterable[Ranked], place_of: PlaceOf) -> tuple[list[Ranked], dict[int, Place]]:
    """The first ``MOST_READ`` of those that have a place, and their places by number."""
    worth: list[Ranked] = []
    places: dict[int, Place] = {}
    for each in ranked:
        if len(worth) == MOST_READ:
            break
        place = place_of(each.session, each.seq, each.check)
        if place is not None:
            places[each.number] = place
            worth.append(each)
    return worth, places


def _place_of(selection: Selection, names: Mapping[int, str]) -> PlaceOf:
    """Where a row's session, seq and check lead; None: nowhere, or to what the prompt shows."""
    own, shown = selection.session, selection.query.shown
    own_only = selection.query.own_session_only

    def place_of(number: int, seq: int, check: int) -> Place | None:
        session = names.get(number)
        if session is None or not seq:
            return None
        if seq in shown if number == own else own_only:
            return None
        return Place(session, number, seq, check)

    return place_of


def resolve(shortlist: Shortlist, messages: Messages, own_of: OwnOf) -> Recollection:
    """What is recalled, as history has it now."""
    source_of = _source_of(shortlist, messages, own_of)
    instructions = _pinned(shortlist, source_of)
    query = shortlist.query
    left = query.budget - sum([each.tokens for each in instructions])
    said = {(each.message, each.text) for each in instructions}
    sources: dict[int, PassageSource] = {}

    def passage_of(number: int) -> Passage | None:
        source = source_of(number)
        if source is None or (said and (source.message.card.id, source.text.strip()) in said):
            return None
        sources[number] = source
        return source.passage(number)

    def is_meant(number: int) -> bool:
        return sources[number].is_meant

    known = () if query.searches else (query.text,)
    room, spare = _room(shortlist, left)
    chosen = choose(shortlist.matches, shortlist.ranked, passage_of, room, known, is_meant, spare)
    why = {each.number: each for each in shortlist.ranked}
    zone = query.options.zone
    passages = [
        _told_in(
            zone, sources[each.number].found("passage", each.text, each.tokens, why[each.number])
        )
        for each in chosen
    ]
    # Who searches reads what was said, and no more.
    now = shortlist.now + ahead(shortlist.now, zone)
    read = passages if query.searches else noted(passages, now)
    return Recollection(tuple(read), instructions)


def _room(shortlist: Shortlist, left: int) -> tuple[int, int]:
    """How much to choose for so many tokens, and what of that is more than they are.

    Who searches gets excerpts, and what was recalled once already all there is.
    """
    query, room = shortlist.query, int(min(SPARE * left + MORE, MOST * left))
    if query.searches:
        return room, room
    if query.again is not None or shortlist.near:
        return room, room - left
    room = deserved(shortlist.matches, room)
    return room, room - deserved(shortlist.matches, left)


def _told_in(zone: tzinfo | None, found: Found) -> Found:
    offset = ahead(found.created_at, zone)
    return msgspec.structs.replace(found, ahead=offset) if offset else found


def _source_of(shortlist: Shortlist, messages: Messages, own_of: OwnOf) -> SourceOf:
    """What the place of a passage leads to, unless that was said by the client, or nothing in it is
    its writer's own, which older releases have indexed; whether it is still what is meant the
    source can tell."""
    places, said, gone = shortlist.places, shortlist.query.said, shortlist.query.gone

    def source_of(number: int) -> PassageSource | None:
        place = places[number]
        message = messages.get((place.session, place.seq))
        if message is None or message.card.digest in said or message.card.id in gone:
            return None
        text, share = own_of(message.wire)
        return PassageSource(place, message, text, share) if text.strip() else None

    return source_of


def in_force(shortlist: Shortlist, messages: Messages, own_of: OwnOf) -> tuple[Found, ...]:
    """The standing instructions in force, newest first."""
    noticed = _noticed(shortlist, _source_of(shortlist, messages, own_of))
    return tuple(each.found(shortlist.query) for each in noticed)


def _noticed(shortlist: Shortlist, source_of: SourceOf) -> list[Noticed]:
    noticed = [
        Noticed(standing, source, place)
        for source in filter(None, map(source_of, shortlist.standing))
        if source.is_meant
        for place, standing in reversed(list(enumerate(notice(source.text))))
        if f"{source.message.card.id}:{place}" not in shortlist.dismissed
    ]

    def right_after(older: int, newer: int) -> bool:
        return noticed[newer].follows(noticed[older])

    kept = set(map(id, current([each.instruction for each in noticed], right_after)))
    return [each for each in noticed if id(each.instruction) in kept]


def _pinned(shortlist: Shortlist, source_of: SourceOf) -> tuple[Found, ...]:
    query = shortlist.query
    instructions = _noticed(shortlist, source_of)
    if not instructions:
        return ()
    budget = min(query.options.standing_max_tokens, int(STANDING_SHARE * query.budget))
    chosen = pinned(
        query.text,
        [each.instruction for each in instructions],
        budget,
        lambda text: query.count(text) + LINE,
    )
    kept = set(map(id, chosen))
    return tuple(each.found(query) for each in instructions if id(each.instruction) in kept)
