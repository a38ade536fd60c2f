"""What a person has said of themselves: one statement, where it is from, and whether it holds.

Nothing that was said is deleted because something else was said later: it is superseded.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.learning.source import Source
from proxy.memory.items import PEOPLE, Place
from proxy.settings.written import FactsSettings

State = Literal["current", "superseded", "quarantined"]
Origin = Literal["learned", "saved", "added"]

FACTS = "facts"
USER = "user"
"""``about`` of what is said of the user."""

MOST_CHARACTERS = 500
MOST_ABOUT = 100
"""Characters of a statement, and of whom it is about."""

MOST_SOURCES = 10

DAY = 86_400.0

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement about the user, or about somebody or something in their life.

    It holds from ``valid_from``, was last said or confirmed ``last_confirmed``, and is of no use
    after ``expires_at``, of which ``until`` is what was said, or set by a person.
    ``superseded_by`` is the fact that took its place, ``superseded_in`` the message that said so.
    ``sources`` have all said it, the first of them first; ``inherited`` said what it makes more
    precise.  ``origin``: learned from messages, saved by the model's tool, or added over the memory
    API.  ``edited``: by a person.  Times are Unix seconds.
    """

    id: str
    text: str
    about: str = USER
    state: State = "current"
    valid_from: float = 0.0
    last_confirmed: float = 0.0
    expires_at: float | None = None
    until: float | None = None
    superseded_by: str | None = None
    superseded_in: Source | None = None
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


class Filed(NamedTuple):
    """A fact as it lies on its shelf."""

    fact: Fact
    version: int
    created_at: float
    updated_at: float


def new_id() -> str:
    return f"fact_{secrets.token_urlsafe(12)}"


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
