"""What a person has said of themselves: one statement, where it is from, whether it holds, how it
is shown.

Nothing that was said is deleted because something else was said later: it is superseded.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import LearnedMemory, Stored, stored
from proxy.learning.evidence import Source, source_fields
from proxy.memory.items import PEOPLE, Item, Place
from proxy.recall.notes.slots import SlotValue
from proxy.recall.query.dates import DAY, utc_offset
from proxy.settings.written import FactsSettings

State = Literal["current", "superseded", "quarantined"]
Origin = Literal["learned", "saved", "added"]

FACTS = "facts"
KIND = "fact"
"""What one is called among memories."""

USER = "user"
"""``about`` of what is said of the user."""

MOST_CHARACTERS = 500
MOST_ABOUT = 100
"""Characters of a statement, and of whom it is about."""

MOST_SOURCES = 10

MOST_GIVEN = 2_000
"""Facts of a person that were added, saved or imported, whatever has become of them: each change
reads all of them, each chat a card of those that hold, and all others wait meanwhile."""

MOST_IMPORTED = 10_000
"""Facts that an import may leave a person with, those learned too: what was is the file's word."""

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement about the user, or about somebody or something in their life.

    It holds from ``valid_from``, which is only when it was said unless ``known_since``.  It was
    last said or confirmed ``last_confirmed``, and is of no use after ``expires_at``, of which
    ``until`` is what was said, or set by a person.
    ``superseded_by`` is the fact that took its place, ``superseded_in`` the message that said so.
    ``doubted_by`` is a fact that a model gave its place to, though nobody has said anything of it.
    ``slot`` is what it tells of what has one value at a time; ``later`` the value that was said
    after that, "" if there is none.
    ``sources`` have all said it, the first of them first; ``inherited`` said what it makes more
    precise.  ``origin``: learned from messages, saved by a model's tool, or added over the memory
    API.  ``edited``: by a person.  Times are Unix seconds.
    """

    id: str
    text: str
    about: str = USER
    state: State = "current"
    valid_from: float = 0.0
    known_since: bool = False
    last_confirmed: float = 0.0
    expires_at: float | None = None
    until: float | None = None
    superseded_by: str | None = None
    superseded_in: Source | None = None
    doubted_by: str | None = None
    slot: SlotValue | None = None
    later: str = ""
    sources: tuple[Source, ...] = ()
    inherited: tuple[Source, ...] = ()
    origin: Origin = "learned"
    edited: bool = False
    metadata: Mapping[str, object] = {}

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def holds(self, now: float) -> bool:
        """Is it current, and not expired?"""
        return self.state == "current" and not self.expired(now)


Facts = dict[str, Fact]
"""All facts of a person, by id."""


class TooManyFacts(ValueError):
    """There are as many as may be given: nothing was done."""

    def __init__(self) -> None:
        super().__init__(
            f"this person has as many memories as may be added or saved, {MOST_GIVEN:,};"
            " delete some first"
        )


def given(facts: Iterable[Fact]) -> int:
    """How many of them were not learned."""
    return sum(fact.origin != "learned" for fact in facts)


def check_given(facts: Facts) -> None:
    """Raises TooManyFacts where the one that was just put is one too many."""
    if given(facts.values()) > MOST_GIVEN:
        raise TooManyFacts


def fact_id(mark: str) -> str:
    """The id of the fact with this mark, which is no other's."""
    return f"{KIND}_{mark}"


def new_id() -> str:
    return fact_id(secrets.token_urlsafe(12))


def fact_place(user: str, fact: str) -> Place:
    return Place((PEOPLE, user, FACTS), fact)


def one_line(text: str) -> str:
    """A text without line breaks and other control characters: none of it can pass for a line."""
    return _SPACE.sub(" ", text).strip()


def confirmed(fact: Fact, source: Source, settings: FactsSettings) -> Fact:
    """The fact, said once more."""
    said = (source.exchange, source.message)
    if any(said == (known.exchange, known.message) for known in fact.sources):
        return fact
    sources = kept_sources((*fact.sources, source))
    last = max(fact.last_confirmed, source.at)
    return dated(replace(fact, sources=sources, last_confirmed=last), settings)


def superseded(old: Fact, new: Fact, source: Source) -> Fact:
    """The fact whose place another took because of this message."""
    return replace(old, state="superseded", superseded_by=new.id, superseded_in=source)


def parted(fact: Fact, state: State) -> Fact:
    """The fact in a state that no other fact is the reason of."""
    return replace(fact, state=state, superseded_by=None, superseded_in=None)


def dated(fact: Fact, settings: FactsSettings) -> Fact:
    """The fact with the time at which it expires, which moves with each confirmation."""
    ends = [fact.until] if fact.until is not None else []
    if settings.expire_days:
        ends.append(fact.last_confirmed + settings.expire_days * DAY)
    return replace(fact, expires_at=min(ends, default=None))


def kept_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """At most so many: the oldest that is not the only one of its session goes first."""
    kept = list(sources)
    while len(kept) > MOST_SOURCES:
        sessions = [source.session for source in kept]
        spare = (i for i, session in enumerate(sessions) if sessions.count(session) > 1)
        del kept[next(spare, 1)]
    return tuple(kept)


FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The first and the last day that there is a date for."""


def date_text(time: float) -> str:
    """YYYY-MM-DD, of a time that no calendar has the nearest day."""
    return datetime.fromtimestamp(min(max(FIRST, time), LAST), UTC).date().isoformat()


def noted_on(time: float, zone: tzinfo | None) -> str:
    """That it was noted then, by the day in a zone; None is UTC."""
    return f"noted {date_text(time + utc_offset(time, zone))}"


def dates_of(fact: Fact, zone: tzinfo | None = None) -> str:
    """When it was noted last, there, and when it holds, as far as that was said."""
    begins = date_text(fact.valid_from) if fact.known_since else None
    ends = date_text(fact.until - 1) if fact.until is not None else None
    match begins, ends:
        case None, None:
            holds = ""
        case _, None:
            holds = f"; holds from {begins}"
        case None, _:
            holds = f"; holds to {ends}"
        case _:
            holds = f"; holds {begins} to {ends}"
    return f"{noted_on(fact.last_confirmed, zone)}{holds}"


def state_of(fact: Fact, now: float) -> str:
    """As people list it: a current fact may have expired."""
    return "expired" if fact.state == "current" and fact.expired(now) else fact.state


def fact_memory(item: Item, now: float) -> LearnedMemory:
    """See :class:`proxy.learning.kinds.Kind`."""
    filed = stored(item, Fact)
    return LearnedMemory(
        id=filed.value.id,
        state=state_of(filed.value, now),
        created_at=filed.created_at,
        confirmed=filed.value.last_confirmed,
        shown=partial(fact_fields, filed, now),
    )


def fact_fields(filed: Stored[Fact], now: float, count: Callable[[str], int]) -> dict[str, object]:
    """A memory of the kind "fact"."""
    fact = filed.value
    first = fact.sources[0] if fact.sources else None
    return {
        "object": "memory",
        "id": fact.id,
        "kind": KIND,
        "text": fact.text,
        "about": fact.about,
        "state": state_of(fact, now),
        "score": 0.0,
        "parts": {},
        "tokens": count(fact.text),
        "role": "user",
        "message_id": first.message if first else None,
        "session_id": first.session if first else None,
        "sources": [source_fields(each) for each in (*fact.sources, *fact.inherited)],
        "valid_from": fact.valid_from,
        "last_confirmed": fact.last_confirmed,
        "expires_at": fact.expires_at,
        "superseded_by": fact.superseded_by,
        "doubted_by": fact.doubted_by,
        "later": fact.later or None,
        "edited": fact.edited,
        "origin": fact.origin,
        "metadata": fact.metadata,
        "created_at": filed.created_at,
        "updated_at": filed.updated_at,
        "version": filed.version,
    }
