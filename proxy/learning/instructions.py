"""How to answer: a text for each application of a tenant, which feedback improves.

It is kept on the tenant's own shelf under ("instructions", APPLICATION): "current", and below it
"versions", "proposals", and the "feedback" that no proposal has been made of yet; "reflection" says
when there is to be one.  Who changes the current one compares its version first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import blake2b
from typing import Literal

import msgspec

from proxy.learning.source import Source
from proxy.memory.items import INSTRUCTIONS, Namespace, Place
from proxy.memory.model import exchange_of

FEATURE = "instructions"

CURRENT = "current"
LONGEST_TEXT = 20_000
"""Characters of instructions."""

MOST_VERSIONS = 200
MOST_PROPOSALS = 100
"""Of more, the oldest go."""

MOST_PENDING = 500
"""Pieces of feedback that wait for a proposal; more are not noted."""

Origin = Literal["edited", "learned"]
State = Literal["pending", "approved", "rejected", "applied"]


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """The current text; ``version`` is its number, 0 where there never was one."""

    text: str = ""
    version: int = 0


class Revision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version.  ``proposal`` is what it was made from; ``created_at`` in Unix seconds."""

    version: int
    text: str
    origin: Origin = "edited"
    proposal: str | None = None
    rolled_back_to: int | None = None
    created_at: float = 0.0


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Where a piece of feedback is, and who gave it ("" is nobody), at Unix seconds.

    What it says belongs to the person and lies with them.
    """

    user: str
    session: str
    message: str
    at: float

    @property
    def source(self) -> Source:
        exchange = exchange_of(self.message)
        return Source(session=self.session, message=self.message, exchange=exchange, at=self.at)


Theirs = Callable[[Given], bool]
"""Whether feedback is of what is erased."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that a model proposes in place of version ``base``, after ``feedback`` pieces of it.

    ``sources`` is that feedback: what is erased of it takes the proposal along, which may repeat
    it.  ``doubts`` are why a person should look at it first.  "applied" is approved by nobody: it
    was put into force at once.  Times are Unix seconds.
    """

    id: str
    text: str
    why: str
    base: int
    feedback: int
    state: State = "pending"
    doubts: tuple[str, ...] = ()
    sources: tuple[Given, ...] = ()
    created_at: float = 0.0
    decided_at: float | None = None


class Reflection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``waiting`` pieces of feedback are pending, ``tried`` were when nothing came of it last time.

    ``asked``: somebody wants a proposal now.
    """

    waiting: int = 0
    tried: int = 0
    asked: bool = False

    def due(self, after_feedback: int) -> bool:
        return bool(self.waiting) and (self.asked or self.waiting - self.tried >= after_feedback)


def namespace(application: str, part: str = "") -> Namespace:
    """Where an application's instructions are, or with ``part`` what is below them."""
    return (INSTRUCTIONS, application, part) if part else (INSTRUCTIONS, application)


def current_place(application: str) -> Place:
    return Place(namespace(application), CURRENT)


def reflection_place(application: str) -> Place:
    return Place(namespace(application), "reflection")


def revision_place(application: str, version: int) -> Place:
    """In the order of their numbers."""
    return Place(namespace(application, "versions"), f"{version:08}")


def proposal_place(application: str, proposal: str) -> Place:
    return Place(namespace(application, "proposals"), proposal)


def pending_place(application: str, session: str, message: str) -> Place:
    name = blake2b(f"{session}/{message}".encode(), digest_size=16).hexdigest()
    return Place(namespace(application, "feedback"), name)


def new_id(now: float) -> str:
    """In the order of their times."""
    return f"proposal_{int(now * 1000):012x}{secrets.token_hex(4)}"
