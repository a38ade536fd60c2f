"""The pure steps from a question to a shortlist, between the reads of the store.

In this order, each with what the store has returned:

1. ``match_terms``: the postings of the question's terms become matches, scored by BM25.
2. ``select``: of the matches, and of what is similar in meaning, the passages whose rows to read.
3. ``rank``: with their rows, the shortlist of passages to read in history, best first.
4. ``later_changes``: later statements of the user about the best one; ``merged`` appends them.

``shortlist_of_recalled`` makes the shortlist of an earlier recall again.  ``recollection`` selects
from a shortlist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from proxy.memory.model import Recalled
from proxy.recall.index import IndexLookup, Rows
from proxy.recall.indexing.state import State
from proxy.recall.query.query import RecallQuery
from proxy.recall.query.question import Question
from proxy.recall.query.words import Corpus
from proxy.recall.ranking.breadth import diversify_sessions
from proxy.recall.ranking.follow_ups import brief_statements_after, numbers_after_best
from proxy.recall.ranking.match import NO_PASSAGES, Matches, Numbers, candidates, match
from proxy.recall.ranking.packing import Array, read_rows
from proxy.recall.ranking.score import LONG_TOKENS, PARTS, Ranked, RankingOptions, rank_passages
from proxy.recall.ranking.select import (
    BLOCK_TOKENS,
    BRIEF_TOKENS,
    SESSION_TOKENS,
    is_relevant,
)
from proxy.recall.ranking.updates import later_statements
from proxy.recall.results import PassagePlace
from proxy.recall.semantic.vectors import NO_SIMILARITIES, Similarities

PlaceOf = Callable[[int, int, int], PassagePlace | None]

MAX_PASSAGES = 80
"""Passages that are looked up in history for one question."""

NO_SESSION = 2**32 - 1
"""A number that no session has."""

MIN_TOKENS_LEFT = BLOCK_TOKENS + SESSION_TOKENS + BRIEF_TOKENS
"""Tokens that suffice for a brief message of another session."""


class Selection(msgspec.Struct, frozen=True):
    """The passages whose rows to read for a question, from a ``lookup`` in an index of this
    ``state``.

    ``numbers``, ascending, are to be ranked, ``following_numbers`` come after the best ones;
    ``standing`` are those with standing instructions, newest first.
    """

    query: RecallQuery
    matches: Matches
    numbers: Numbers
    following_numbers: Numbers
    similarities: Similarities
    standing: tuple[int, ...]
    dismissed: frozenset[str]
    now: float
    state: State
    lookup: IndexLookup

    @property
    def session(self) -> int | None:
        """The number of the session of the query, None if it is not indexed."""
        return self.lookup.mark.number if self.lookup.mark else None

    @property
    def all_numbers(self) -> Numbers:
        """Every passage whose row is needed."""
        return np.concatenate(
            [self.numbers, self.following_numbers, np.array(self.standing, np.uint32)]
        )


class Shortlist(msgspec.Struct, frozen=True):
    """The passages to read from history, best first, and those with standing instructions, newest
    first; the place of each; and whether any is similar to the question in meaning.

    ``selection``: what they were ranked from, if they leave tokens for later changes of them.
    """

    query: RecallQuery
    matches: Matches
    ranked: Sequence[Ranked]
    standing: Sequence[int]
    places: Mapping[int, PassagePlace]
    dismissed: frozenset[str] = frozenset()
    now: float = 0.0
    has_similar: bool = False
    selection: Selection | None = None

    def seqs(self) -> dict[str, set[int]]:
        """Seqs by session."""
        seqs: dict[str, set[int]] = {}
        for place in self.places.values():
            seqs.setdefault(place.session, set()).add(place.seq)
        return seqs


def match_terms(question: Question, lookup: IndexLookup, state: State) -> Matches:
    """Score the passages that hold terms of a question."""
    return match(question, lookup, Corpus(state.passages, state.length))


def select(
    query: RecallQuery,
    matches: Matches,
    lookup: IndexLookup,
    state: State,
    now: float,
    near: Similarities = NO_SIMILARITIES,
) -> Selection:
    """The passages whose rows to read; ``near``: similarities in meaning to the question."""
    has_relevant = near.related or is_relevant(matches, query.options.min_score)
    recalls = has_relevant and not matches.question.is_empty
    return Selection(
        query=query,
        matches=matches,
        numbers=_numbers(matches, near) if recalls else NO_PASSAGES,
        following_numbers=numbers_after_best(matches) if recalls else NO_PASSAGES,
        similarities=near,
        standing=tuple(reversed(state.standing)),
        dismissed=frozenset(state.dismissed),
        now=now,
        state=state,
        lookup=lookup,
    )


def _numbers(matches: Matches, near: Similarities) -> Numbers:
    """The passages to rank for their words, their days and their meaning."""
    found = candidates(matches)
    return np.union1d(found, near.nearest()) if near.numbers.size else found


def rank(selection: Selection, found: Rows) -> Shortlist:
    """The shortlist; ``found`` are the rows of ``selection.all_numbers``."""
    rows = read_rows(found.data)
    ranked_end = selection.numbers.size
    behind_end = ranked_end + selection.following_numbers.size
    place_of = _place_of(selection, found.sessions)
    best = _ranked(selection, rows[:ranked_end])
    left = _tokens_left(selection, best)
    after_best = _following(selection, best, rows[ranked_end:behind_end]) if left > 0 else ()
    may_have_changed = left >= MIN_TOKENS_LEFT and not selection.matches.question.is_general
    listed, places = _placed((*best, *after_best), place_of)
    standing = _standing_places(selection, rows[behind_end:], place_of)
    return Shortlist(
        selection.query,
        selection.matches,
        listed,
        [number for number in selection.standing if number in standing],
        places | standing,
        selection.dismissed,
        selection.now,
        selection.similarities.related,
        selection if may_have_changed else None,
    )


def _standing_places(
    selection: Selection, rows: Array, place_of: PlaceOf
) -> dict[int, PassagePlace]:
    """The places of the passages with standing instructions by number; ``rows`` are theirs."""
    places: dict[int, PassagePlace] = {}
    for number, row in zip(selection.standing, rows, strict=True):
        session, seq, check, *_ = row.item()
        place = place_of(session, seq, check)
        if place is not None:
            places[number] = place
    return places


def later_changes(
    shortlist: Shortlist, selection: Selection, numbers: Numbers, found: Rows
) -> Shortlist:
    """A shortlist of those of ``numbers`` that are the user's and not on the shortlist yet;
    ``found`` are their rows."""
    said = later_statements(numbers, read_rows(found.data), shortlist.places)
    listed, places = _placed(said, _place_of(selection, found.sessions))
    return msgspec.structs.replace(shortlist, ranked=listed, standing=(), places=places)


def merged(shortlist: Shortlist, more: Shortlist) -> Shortlist:
    """Append the passages of ``more``."""
    ranked, places = [*shortlist.ranked, *more.ranked], {**shortlist.places, **more.places}
    return msgspec.structs.replace(shortlist, ranked=ranked, places=places)


def shortlist_of_recalled(selection: Selection, refs: Sequence[Recalled]) -> Shortlist:
    """The shortlist of what an earlier request recalled for the same message."""
    sessions = list(dict.fromkeys(ref.session for ref in refs))
    places = {
        i: PassagePlace(ref.session, sessions.index(ref.session), ref.seq, message=ref.message)
        for i, ref in enumerate(refs)
    }
    ranked = [
        _ranked_before(i, places[i], ref) for i, ref in enumerate(refs) if ref.kind == "passage"
    ]
    standing = [i for i, ref in enumerate(refs) if ref.kind != "passage"]
    query, dismissed, now = selection.query, selection.dismissed, selection.now
    return Shortlist(query, selection.matches, ranked, standing, places, dismissed, now)


def _ranked_before(number: int, place: PassagePlace, ref: Recalled) -> Ranked:
    values = tuple(ref.parts.get(name, 0.0) for name in PARTS)
    of_row = (number, place.number, place.seq, place.check, ref.tokens)
    return Ranked(*of_row, ref.score, values, ref.flags)


def _ranked(selection: Selection, rows: Array) -> Sequence[Ranked]:
    query = selection.query
    own = selection.session if selection.session is not None else NO_SESSION
    options = RankingOptions(
        now=selection.now,
        half_life_days=query.options.half_life_days,
        session=own if query.own_session_only else None,
        roles=frozenset(query.options.roles),
        dense_scores=selection.similarities.of(selection.numbers)
        if selection.similarities.numbers.size
        else {},
    )
    found = rank_passages(selection.matches, selection.numbers, rows, options, query.budget)
    return diversify_sessions(found) if selection.matches.question.asks_list else found


def _tokens_left(selection: Selection, found: Sequence[Ranked]) -> int:
    """Tokens of the budget left for later statements of the user about what was found; 0 if there
    shall be none."""
    query = selection.query
    if not found or query.is_search or "user" not in query.options.roles:
        return 0
    return query.budget - sum([min(each.tokens, LONG_TOKENS) for each in found])


def _following(selection: Selection, found: Sequence[Ranked], rows: Array) -> Sequence[Ranked]:
    """Brief statements of the user after the best passage."""
    return brief_statements_after(
        found[0], selection.following_numbers, rows, {each.number for each in found}
    )


def _placed(
    ranked: Iterable[Ranked], place_of: PlaceOf
) -> tuple[list[Ranked], dict[int, PassagePlace]]:
    """The first ``MAX_PASSAGES`` of those that have a place, and their places by number."""
    listed: list[Ranked] = []
    places: dict[int, PassagePlace] = {}
    for each in ranked:
        if len(listed) == MAX_PASSAGES:
            break
        place = place_of(each.session, each.seq, each.check)
        if place is not None:
            places[each.number] = place
            listed.append(each)
    return listed, places


def _place_of(selection: Selection, names: Mapping[int, str]) -> PlaceOf:
    """Makes a function from a row's session number, seq and check to a place; None if the session
    was dropped, or if the prompt has the message."""
    own, shown = selection.session, selection.query.shown_seqs
    own_only = selection.query.own_session_only

    def place_of(number: int, seq: int, check: int) -> PassagePlace | None:
        session = names.get(number)
        if session is None or not seq:
            return None
        if seq in shown if number == own else own_only:
            return None
        return PassagePlace(session, number, seq, check)

    return place_of
