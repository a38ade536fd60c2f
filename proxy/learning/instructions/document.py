"""How to answer: a text for each application of a tenant, which feedback improves, in prompts and
checked.

It is kept among the tenant's own items under ("instructions", APPLICATION): "current", and below it
"versions", "proposals", and the "feedback" that no proposal has been made of yet; "reflection" says
when there is to be one.  Who changes the current one compares its version first.

They stand in the system message of everybody's chats, and are made from what users say.  Pure.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Literal

import msgspec

from proxy.learning.evidence import Source
from proxy.learning.likeness import QueryText
from proxy.learning.prompt_cards import Block, CardPlace, TokenBudget, whole_block
from proxy.memory.items import INSTRUCTIONS, ItemOwner, Namespace, Place
from proxy.memory.model import exchange_of
from proxy.recall.lexicon.loader import any_of, lazy_pattern, phrase_pattern
from proxy.recall.query.words import words
from proxy.settings import ProfileSettings

FEATURE = "instructions"

CURRENT, REFLECTION = "current", "reflection"
VERSIONS, PROPOSALS, PENDING = "versions", "proposals", "feedback"
"""Under which keys an application's items lie, and under which labels there are several."""

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


class FeedbackSource(msgspec.Struct, frozen=True, kw_only=True):
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


IsAffected = Callable[[FeedbackSource], bool]
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
    sources: tuple[FeedbackSource, ...] = ()
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
    return Place(namespace(application), REFLECTION)


def revision_place(application: str, version: int) -> Place:
    """In the order of their numbers."""
    return Place(namespace(application, VERSIONS), f"{version:08}")


def proposal_place(application: str, proposal: str) -> Place:
    return Place(namespace(application, PROPOSALS), proposal)


def pending_place(application: str, session: str, message: str) -> Place:
    name = blake2b(f"{session}/{message}".encode(), digest_size=16).hexdigest()
    return Place(namespace(application, PENDING), name)


def new_id(now: float) -> str:
    """In the order of their times."""
    return f"proposal_{int(now * 1000):012x}{secrets.token_hex(4)}"


SAME_WORDS = 8
"""So many words in a row that a user has said too were taken over and not understood; characters
of scripts without spaces count half."""

_ALARMING = {
    "an address": re.compile(
        r"https?:|www\.|[\w.+-]+@[\w-]+\.\w+|\b\w[\w-]*\.(?:com|net|org|io|ru|cn|xyz|dev|app|info)\b"
        r"|!\[|\]\(|\b\d{1,3}(?:\.\d{1,3}){3}\b",
        re.IGNORECASE,
    ),
    "secrets": lazy_pattern(phrase_pattern(lambda each: each.injection.secrets), re.IGNORECASE),
    "the system message or other rules": lazy_pattern(
        any_of(lambda each: each.injection.rules), re.IGNORECASE
    ),
    "other people's data": re.compile(
        r"\b(?:other|all|every) (?:users?|customers?|people|sessions?|conversations?)\b"
        r"|\b(?:leak|exfiltrat\w*|reveal|disclose|forward|upload|transmit)\b",
        re.IGNORECASE,
    ),
    "code or data": re.compile(r"[A-Za-z0-9+/_-]{32,}|<\s*/?\s*\w+[^>]*>|\$\{|\{\{"),
}


def doubts(text: str, current: str, material: Iterable[str]) -> tuple[str, ...]:
    """Why a person should look at a text first, where it says more than the current one.

    ``material`` is what users have said: questions and comments.
    """
    found = [f"it speaks of {what}" for what in _alarms(text) - _alarms(current)]
    if _copies_material(text, current, material):
        found.append("it repeats a user's words")
    return tuple(sorted(found))


def _alarms(text: str) -> set[str]:
    return {what for what, pattern in _ALARMING.items() if pattern.search(text)}


def _copies_material(text: str, current: str, material: Iterable[str]) -> bool:
    new = set(_runs(text)) - set(_runs(current))
    return any(not new.isdisjoint(_runs(said)) for said in material)


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of ``SAME_WORDS`` words; two characters without spaces are a word."""
    said: list[str] = []
    for word in words(text):
        said += list(word.text) if word.unspaced else [word.text, ""]
    length = 2 * SAME_WORDS
    return (tuple(said[at : at + length]) for at in range(len(said) - length + 1))


NOTE = "How to answer in this application, from its operator. The system message above comes first."

_current = msgspec.json.Decoder(Instructions)


def where(tenant: str, user: str | None, profile: ProfileSettings) -> CardPlace:
    """The card is the current text itself."""
    return CardPlace(ItemOwner(tenant), current_place(profile.instructions.name))


def choose(
    card: bytes, profile: ProfileSettings, question: QueryText, room: TokenBudget
) -> Block | None:
    """All of it, or as many of its first lines as fit."""
    return whole_block(FEATURE, NOTE, _current.decode(card).text.splitlines(), room)
