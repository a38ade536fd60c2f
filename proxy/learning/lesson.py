"""What is learned from: what a person has said in a session, beyond what was read before.

Only the user's own messages are ever in a lesson: no answers, no tools' results, no system
messages, no injected memory.  What a message quotes or has pasted into it is marked as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

from proxy.background.completion import Failed
from proxy.memory.archive import Session
from proxy.memory.items import PEOPLE, Change, Item, Place, Shelf
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings

READ = "learned"
"""Namespace of the marks that say how far a feature has read a session."""

FEATURES = ("facts", "profile", "episodes")
"""All that read sessions."""

BLANK = "\0"
"""Stands for each character that is not the user's own."""


class Span(NamedTuple):
    """Characters from ``start`` up to, not including, ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user's, or a piece of a long one, ``at`` (Unix seconds).

    ``text`` is what they wrote; ``pasted`` is what of it they quote or have pasted.
    """

    message: str
    exchange: str
    seq: int
    text: str
    at: float
    pasted: tuple[Span, ...] = ()

    @property
    def own(self) -> str:
        """The text with all that is pasted blanked; every character keeps its place."""
        kept, at = [], 0
        for start, end in self.pasted:
            kept += [self.text[at:start], BLANK * (end - start)]
            at = end
        return "".join((*kept, self.text[at:]))


def headed(number: int, said: Said, text: str) -> str:
    """A message as a model is shown it: a heading with its time (UTC), then this text of it.

    Indented, so that no line of it can pass for a heading.
    """
    when = datetime.fromtimestamp(said.at, UTC)
    indented = text.replace("\n", "\n  ")
    return f"Message {number}, {when:%A} {when:%Y-%m-%d %H:%M}:\n  {indented}"


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a session was read: up to ``seq``, and ``offset`` characters of the next message.

    ``message`` is that one's id.  ``began`` is when the session did: one that is deleted and begun
    anew has not been read.  ``without`` are exchanges that nothing is learned from any more.
    """

    seq: int = 0
    message: str = ""
    offset: int = 0
    began: float = 0.0
    without: tuple[str, ...] = ()


def mark_place(user: str, feature: str, session: str) -> Place:
    """Where the mark of a feature is kept."""
    return Place((PEOPLE, user, READ, feature), session)


def mark_of(item: Item | None, began: float) -> Mark:
    """The mark of a session that began then."""
    mark = msgspec.json.decode(item.value, type=Mark) if item else Mark()
    return mark if mark.began == began else Mark(began=began)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one feature has not read yet, oldest first, not more than fits into one request.

    ``model`` is the one that the session uses.  ``then`` is the mark when this has been read,
    ``read`` the version of the mark before it.  It was read after ``since`` (Unix seconds): what is
    learned from it is not kept if the person was erased then or later.
    """

    shelf: Shelf
    key: SessionKey
    settings: ProfileSettings
    said: tuple[Said, ...]
    model: str | None
    then: Mark
    read: int = 0
    since: float | None = None

    def mark(self, feature: str) -> Change:
        """To be made together with what was learned: read once, whatever happens."""
        namespace, key = mark_place(self.shelf.user, feature, self.key.session)
        value = msgspec.json.encode(self.then)
        return Change(namespace=namespace, key=key, value=value, after=self.read)


class Unreadable(Failed):
    """The model's answer is not what it was asked for, twice."""


class Student(Protocol):
    """Learns one thing from lessons."""

    @property
    def feature(self) -> str: ...

    def wants(self, settings: ProfileSettings) -> bool:
        """Is it switched on in this profile?"""
        ...

    def room(self, settings: ProfileSettings) -> int:
        """Tokens of what was said that fit into one lesson."""
        ...

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        """Is there a credential to ask the model with?"""
        ...

    async def learn(self, lesson: Lesson) -> bool:
        """Learn, and store it with the lesson's mark in one step.

        False: others have changed the same meanwhile; to be tried again from the store's present
        state.  Raises CompletionError and StoreError, with nothing changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """A session that asks for learning.  ``profile`` is the name, "" the default one's.

    Everything about it is read after ``since`` (Unix seconds).
    """

    session: Session
    key: SessionKey
    profile: str
    settings: ProfileSettings
    model: str | None
    since: float | None = None


class Reflector(Protocol):
    """Makes something of what is kept already, when a session asks for learning.

    Sessions without a user ask as well.
    """

    def wants(self, settings: ProfileSettings) -> bool: ...

    def ready(self, tenant: str, settings: ProfileSettings) -> bool: ...

    async def reflect(self, occasion: Occasion) -> bool:
        """False: to be tried again.  Raises CompletionError and StoreError."""
        ...
