"""The way from a question to what is recalled, between the looks at the store.  Pure.

``begin`` reads the index's answer, ``follow`` the rows of what matched, ``arrive`` the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proxy.memory.archive import Message
from proxy.memory.model import Recalled
from proxy.recall.choose import Passage, choose, relevant
from proxy.recall.choose import shortlist as readable
from proxy.recall.found import Found, Kind, Recollection
from proxy.recall.index import Look, Rows
from proxy.recall.match import Matches, Numbers, candidates, match
from proxy.recall.packing import Array, read_rows
from proxy.recall.question import Question
from proxy.recall.score import PARTS, Options, Ranked, rank
from proxy.recall.source import Place, Source
from proxy.recall.standing import Standing, current, notice, pinned
from proxy.recall.state import State
from proxy.recall.terms import Corpus
from proxy.recall.vectors import NOTHING_NEAR, Near
from proxy.recall.wanted import Wanted

TextOf = Callable[[bytes], str]
Messages = Mapping[tuple[str, int], Message]

MOST_READ = 80
"""Passages that are looked up in history for one question."""

SPARE = 1.15
"""So much of the budget is chosen, in case that the estimates of tokens are too high."""

NOBODY = np.zeros(0, np.uint32)
"""The numbers of no passages."""

NO_SESSION = 2**32 - 1
"""The number of no session."""

LINE = 2
"""Tokens of a wish's line beside its text."""

WISHES_SHARE = 0.2
"""The largest part of the budget for standing wishes."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the index says to a question.  ``numbers``, ascending, are the passages to look at;
    ``standing`` those with standing wishes, newest first."""

    wanted: Wanted
    matches: Matches
    numbers: Numbers
    near: Near
    standing: tuple[int, ...]
    dismissed: frozenset[str]
    session: int | None
    now: float

    @property
    def all(self) -> list[int]:
        """Every passage whose row is needed."""
        return [*self.numbers.tolist(), *self.standing]


@dataclass(frozen=True, slots=True)
class Wish:
    """A standing wish, the message it was said in, and which of its wishes it is."""

    standing: Standing
    source: Source
    place: int

    def found(self, wanted: Wanted) -> Found:
        kind: Kind = "instruction" if self.standing.kind == "instruction" else "preference"
        text = self.standing.text
        found = self.source.found(kind, text, wanted.count(text) + LINE)
        return replace(found, place=self.place)


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Passages that are worth looking up, best first, and those with standing wishes, newest
    first; and where each of them stands."""

    wanted: Wanted
    matches: Matches
    ranked: Sequence[Ranked]
    standing: Sequence[int]
    places: Mapping[int, Place]
    dismissed: frozenset[str] = frozenset()

    def seqs(self) -> dict[str, set[int]]:
        """Seqs by session."""
        seqs: dict[str, set[int]] = {}
        for place in self.places.values():
            seqs.setdefault(place.session, set()).add(place.seq)
        return seqs


def begin(
    wanted: Wanted,
    question: Question,
    look: Look,
    state: State,
    now: float,
    near: Near = NOTHING_NEAR,
) -> Beginning:
    """``near`` is what is near the question in meaning."""
    matches = match(question, look, Corpus(state.passages, state.length))
    there_is = near.related or relevant(matches, wanted.terms.min_score)
    worth_it = there_is and not question.empty
    return Beginning(
        wanted=wanted,
        matches=matches,
        numbers=np.union1d(candidates(matches), near.nearest()) if worth_it else NOBODY,
        near=near,
        standing=tuple(reversed(state.standing)),
        dismissed=frozenset(state.dismissed),
        session=look.mark.number if look.mark else None,
        now=now,
    )


def follow(beginning: Beginning, found: Rows) -> Shortlist:
    rows = read_rows(found.data)
    size = beginning.numbers.size
    places: dict[int, Place] = {}
    worth: list[Ranked] = []
    for each in readable(_ranked(beginning, rows[:size]), beginning.wanted.budget):
        if len(worth) == MOST_READ:
            break
        place = _place(beginning, found, each.session, each.seq, each.check)
        if place is not None:
            places[each.number] = place
            worth.append(each)
    for number, row in zip(beginning.standing, rows[size:], strict=True):
        session, seq, check, *_ = row.item()
        place = _place(beginning, found, session, seq, check)
        if place is not None:
            places[number] = place
    return Shortlist(
        beginning.wanted,
        beginning.matches,
        worth,
        [number for number in beginning.standing if number in places],
        places,
        beginning.dismissed,
    )


def again(beginning: Beginning, refs: Sequence[Recalled]) -> Shortlist:
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
    return Shortlist(
        beginning.wanted, beginning.matches, ranked, standing, places, beginning.dismissed
    )


def _ranked_before(number: int, place: Place, ref: Recalled) -> Ranked:
    values = tuple(ref.parts.get(name, 0.0) for name in PARTS)
    return Ranked(number, place.number, place.seq, place.check, ref.tokens, ref.score, values)


def _ranked(beginning: Beginning, rows: Array) -> Sequence[Ranked]:
    wanted = beginning.wanted
    own = beginning.session if beginning.session is not None else NO_SESSION
    options = Options(
        now=beginning.now,
        half_life_days=wanted.terms.half_life_days,
        session=own if wanted.own_session_only else None,
        roles=frozenset(wanted.terms.roles),
        dense=beginning.near.of(beginning.numbers),
    )
    return rank(beginning.matches, beginning.numbers, rows, options)


def _place(beginning: Beginning, found: Rows, number: int, seq: int, check: int) -> Place | None:
    """None for what leads nowhere or is in the prompt already."""
    session, own = found.sessions.get(number), number == beginning.session
    if session is None or not seq or (own and seq in beginning.wanted.shown):
        return None
    if beginning.wanted.own_session_only and not own:
        return None
    return Place(session, number, seq, check)


def arrive(shortlist: Shortlist, messages: Messages, text_of: TextOf) -> Recollection:
    """What is recalled, as history has it now."""
    sources = dict(_sources(shortlist, messages, text_of))
    wishes = _pinned(shortlist, sources)
    left = shortlist.wanted.budget - sum(wish.tokens for wish in wishes)
    said = {(wish.message, wish.text) for wish in wishes}
    passages = {
        number: source.passage(number)
        for number, source in sources.items()
        if (source.message.card.id, source.text.strip()) not in said
    }
    why = {each.number: each for each in shortlist.ranked}
    chosen = choose(shortlist.matches, shortlist.ranked, passages, int(SPARE * left))

    def found(passage: Passage) -> Found:
        number, text, tokens = passage.number, passage.text, passage.tokens
        return sources[number].found("passage", text, tokens, why[number])

    return Recollection(tuple(map(found, chosen)), wishes)


def _sources(
    shortlist: Shortlist, messages: Messages, text_of: TextOf
) -> Iterator[tuple[int, Source]]:
    """What the places lead to, unless that is another message or says something else by now, or was
    said by the client."""
    wanted = shortlist.wanted
    for number, place in shortlist.places.items():
        message = messages.get((place.session, place.seq))
        if message is None or not place.leads_to(message.card):
            continue
        if message.card.digest not in wanted.said and message.card.id not in wanted.gone:
            yield number, Source(place, message, text_of(message.wire))


def wishes(shortlist: Shortlist, messages: Messages, text_of: TextOf) -> tuple[Found, ...]:
    """The standing wishes in force, newest first."""
    sources = dict(_sources(shortlist, messages, text_of))
    return tuple(wish.found(shortlist.wanted) for wish in _in_force(shortlist, sources))


def _in_force(shortlist: Shortlist, sources: Mapping[int, Source]) -> list[Wish]:
    noticed = [
        Wish(standing, source, place)
        for source in (sources[n] for n in shortlist.standing if n in sources)
        for place, standing in reversed(list(enumerate(notice(source.text))))
        if f"{source.message.card.id}:{place}" not in shortlist.dismissed
    ]
    kept = set(map(id, current([wish.standing for wish in noticed])))
    return [wish for wish in noticed if id(wish.standing) in kept]


def _pinned(shortlist: Shortlist, sources: Mapping[int, Source]) -> tuple[Found, ...]:
    wanted = shortlist.wanted
    wishes = _in_force(shortlist, sources)
    budget = min(wanted.terms.wishes_max_tokens, int(WISHES_SHARE * wanted.budget))
    chosen = pinned(
        wanted.text,
        [wish.standing for wish in wishes],
        budget,
        lambda text: wanted.count(text) + LINE,
    )
    kept = set(map(id, chosen))
    return tuple(wish.found(wanted) for wish in wishes if id(wish.standing) in kept)
