"""What is learned from: what a person has said in a session, beyond what was read before.

Only the user's own words are ever in a lesson: no answers, no tools' results, no system messages,
no injected memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec

from proxy.memory.items import PEOPLE, Change, Shelf
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings

READ = "learned"
"""Namespace of the marks that say how far a feature has read a session."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user's, ``at`` (Unix seconds).  ``text`` is what they wrote."""

    message: str
    exchange: str
    seq: int
    text: str
    at: float


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a session was read: up to ``seq``."""

    seq: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one feature has not read yet, oldest first, not more than fits into one request.

    ``model`` is the one that the session uses.  ``read`` is the version of the feature's mark.
    """

    shelf: Shelf
    key: SessionKey
    settings: ProfileSettings
    said: tuple[Said, ...]
    model: str | None
    read: int = 0

    def mark(self, feature: str) -> Change:
        """To be made together with what was learned: read once, whatever happens."""
        return Change(
            namespace=(PEOPLE, self.shelf.user, READ, feature),
            key=self.key.session,
            value=msgspec.json.encode(Mark(seq=self.said[-1].seq)),
            after=self.read,
        )


class Student(Protocol):
    """Learns one thing from lessons."""

    @property
    def feature(self) -> str: ...

    def wants(self, settings: ProfileSettings) -> bool:
        """Is it switched on in this profile?"""
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
