"""How to answer: a text for each application of a tenant, which feedback improves.

It is kept on the tenant's own shelf under ("instructions", APPLICATION): "current", and below it
"versions", "proposals", and "feedback" that no proposal has been made of yet; "reflection" says
when there is to be one.  Who changes the current one compares its version first.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import Literal

import msgspec

from proxy.memory.items import INSTRUCTIONS, Namespace, Place

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


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that a model proposes in place of version ``base``, after ``feedback`` pieces of it.

    ``doubts`` are why a person should look at it first.  "applied" is approved by nobody: it was
    put into force at once.  Times are Unix seconds.
    """

    id: str
    text: str
    why: str
    base: int
    feedback: int
    state: State = "pending"
    doubts: tuple[str, ...] = ()
    created_at: float = 0.0
    decided_at: float | None = None


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Where feedback is that no proposal has been made of yet; what it says lies there."""

    user: str
    session: str
    message: str
    at: float


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
