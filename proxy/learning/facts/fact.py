"""A fact: one statement of a person about themselves, with its sources, state and dates.

A fact is never deleted because of a later one: it is superseded.
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

from proxy.learning.collection import LearnedMemory, Stored, decode_item
from proxy.learning.evidence import Source, source_fields
from proxy.memory.items import PEOPLE, Item, Place
from proxy.recall.notes.slots import SlotValue
from proxy.recall.query.dates import DAY, utc_offset
from proxy.settings.learned import FactsSettings

State = Literal["current", "superseded", "quarantined"]
Origin = Literal["learned", "saved", "added"]

FACTS = "facts"
KIND = "fact"
"""The kind of a fact in lists of memories."""

USER = "user"
"""``about`` of what is said of the user."""

MAX_STATEMENT = 500
MAX_ABOUT = 100
"""Characters of a statement, and of its subject."""

MAX_SOURCES = 10

MAX_GIVEN = 2_000
"""Facts of a person that were not learned (added, saved, imported), of every state: each change of
a fact reads all of them, and other changes wait meanwhile."""

MAX_IMPORTED = 10_000
"""Facts of a person after an import, learned ones included: their origin is the file's claim."""

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement about the user, or about somebody or something in their life.

    It is valid from ``valid_from``, which is when it was said unless ``known_since``.  It was last
    said at ``last_confirmed``, and is not used after ``expires_at``; ``until`` is the end that was
    said, or set by a person.
    ``superseded_by`` is the id of the fact that replaced it, ``superseded_in`` the message because
    of which.  ``doubted_by`` is a fact that a model wanted to replace it with, though no message
    was about it.
    ``slot`` is its value of something that has one value at a time; ``later`` is a value that was
    said after it, "" if there is none.
    ``sources`` are the messages that say it, the oldest first; ``inherited`` are those of the less
    precise fact that it replaced.  ``origin``: learned from messages, saved by a model's tool, or
    added over the memory API.  ``edited``: by a person.  Times are Unix seconds.
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

    def is_expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def holds(self, now: float) -> bool:
        return self.state == "current" and not self.is_expired(now)


Facts = dict[str, Fact]
"""All facts of a person, by id."""


class TooManyFacts(ValueError):
    """The person has the most facts that may be added or saved: nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            f"this person has as many memories as may be added or saved, {MAX_GIVEN:,};"
            " delete some first"
        )


def count_given(facts: Iterable[Fact]) -> int:
    """The number of facts that were not learned."""
    return sum(fact.origin != "learned" for fact in facts)


def check_max_given(facts: Facts) -> None:
    """Raises TooManyFacts if there are more than ``MAX_GIVEN`` that were not learned."""
    if count_given(facts.values()) > MAX_GIVEN:
        raise TooManyFacts


def fact_id(mark: str) -> str:
    """The id of a fact from a unique ``mark``."""
    return f"{KIND}_{mark}"


def new_id() -> str:
    return fact_id(secrets.token_urlsafe(12))


def fact_place(user: str, fact: str) -> Place:
    return Place((PEOPLE, user, FACTS), fact)


def one_line(text: str) -> str:
    """A text with line breaks and other control characters replaced by spaces."""
    return _SPACE.sub(" ", text).strip()


def confirmed(fact: Fact, source: Source, settings: FactsSettings) -> Fact:
    """The fact with one more source, unless it has that already."""
    said = (source.exchange, source.message)
    if any(said == (known.exchange, known.message) for known in fact.sources):
        return fact
    sources = limit_sources((*fact.sources, source))
    last = max(fact.last_confirmed, source.at)
    return with_expiry(replace(fact, sources=sources, last_confirmed=last), settings)


def superseded(old: Fact, new: Fact, source: Source) -> Fact:
    """The fact ``old`` as superseded by ``new`` because of this message."""
    return replace(old, state="superseded", superseded_by=new.id, superseded_in=source)


def with_state(fact: Fact, state: State) -> Fact:
    """The fact in a state that is not due to another fact."""
    return replace(fact, state=state, superseded_by=None, superseded_in=None)


def with_expiry(fact: Fact, settings: FactsSettings) -> Fact:
    """The fact with ``expires_at`` computed from ``until`` and its last confirmation."""
    ends = [fact.until] if fact.until is not None else []
    if settings.expire_days:
        ends.append(fact.last_confirmed + settings.expire_days * DAY)
    return replace(fact, expires_at=min(ends, default=None))


def limit_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """At most ``MAX_SOURCES``: first the oldest goes that is not the only one of its session."""
    kept = list(sources)
    while len(kept) > MAX_SOURCES:
        sessions = [source.session for source in kept]
        spare = (i for i, session in enumerate(sessions) if sessions.count(session) > 1)
        del kept[next(spare, 1)]
    return tuple(kept)


FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The first and the last time that has a date, in Unix seconds."""


def date_text(time: float) -> str:
    """YYYY-MM-DD; the nearest possible day for a time out of range."""
    return datetime.fromtimestamp(min(max(FIRST, time), LAST), UTC).date().isoformat()


def render_noted(time: float, zone: tzinfo | None) -> str:
    """``noted 2023-05-07``, by the day in a zone, None for UTC."""
    return f"noted {date_text(time + utc_offset(time, zone))}"


def render_dates(fact: Fact, zone: tzinfo | None = None) -> str:
    """``noted 2023-05-07; holds from 2023-04-01``: the days of a fact, as far as known."""
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
    return f"{render_noted(fact.last_confirmed, zone)}{holds}"


def state_of(fact: Fact, now: float) -> str:
    """Its state in lists, where a current fact may be "expired"."""
    return "expired" if fact.state == "current" and fact.is_expired(now) else fact.state


def fact_memory(item: Item, now: float) -> LearnedMemory:
    stored = decode_item(item, Fact)
    return LearnedMemory(
        id=stored.value.id,
        state=state_of(stored.value, now),
        created_at=stored.created_at,
        confirmed=stored.value.last_confirmed,
        fields=partial(fact_fields, stored, now),
    )


def fact_fields(stored: Stored[Fact], now: float, count: Callable[[str], int]) -> dict[str, object]:
    """A fact as the memory API returns it."""
    fact = stored.value
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
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
        "version": stored.version,
    }
