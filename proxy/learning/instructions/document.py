"""Instructions on how to answer: a text for each application of a tenant, improved by feedback.

Items of the tenant under ("instructions", APPLICATION): "current" is the text, "reflection" says
when the next proposal is due.  Below it are "versions", "proposals", and "feedback" that waits for
a proposal.  Each change checks the version of "current".

Instructions are in the system message of everybody's chats and are made from what users write, so
that a proposal is checked for injections.  Pure.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Literal

import msgspec

from proxy.learning.evidence import Source
from proxy.learning.prompt_cards import Block, CountText, TokenBudget, card_cache, whole_block
from proxy.learning.similarity import QueryText
from proxy.memory.items import INSTRUCTIONS, ItemOwner, Namespace, OwnedPlace, Place
from proxy.memory.model import exchange_of
from proxy.recall.lexicon.loader import any_of, lazy_pattern, phrase_pattern
from proxy.recall.query.words import words
from proxy.settings import ProfileSettings

FEATURE = "instructions"

CURRENT, REFLECTION = "current", "reflection"
VERSIONS, PROPOSALS, PENDING = "versions", "proposals", "feedback"
"""Keys of an application's single items, and labels of those of which there are several."""

MAX_TEXT = 20_000
"""Characters of instructions."""

MAX_VERSIONS = 200
MAX_PROPOSALS = 100
"""Of more, the oldest go."""

MAX_PENDING = 500
"""Pieces of feedback that wait for a proposal; more are not noted."""

Origin = Literal["edited", "learned"]
State = Literal["pending", "approved", "rejected", "applied"]


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """The current text; ``version`` is its number, 0 if there never was one."""

    text: str = ""
    version: int = 0


class Revision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version.  ``proposal`` is the id of the proposal that it comes from, if any;
    ``created_at`` is in Unix seconds."""

    version: int
    text: str
    origin: Origin = "edited"
    proposal: str | None = None
    rolled_back_to: int | None = None
    created_at: float = 0.0


class FeedbackSource(msgspec.Struct, frozen=True, kw_only=True):
    """Refers to a piece of feedback of a user ("" if unknown), given ``at`` (Unix seconds).

    The feedback itself is stored with that user.
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
"""Whether a piece of feedback is being erased."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that a model proposes to replace version ``base``, from ``feedback`` pieces of it.

    ``sources`` is that feedback: if any is erased, so is the proposal, which may repeat it.
    ``doubts`` are reasons for a person to review it first.  The state "applied" means that it took
    effect at once, without approval.  Times are Unix seconds.
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
    """When the next proposal is due: ``waiting`` pieces of feedback are pending, and ``tried`` were
    at the last attempt that brought none.

    ``asked``: a person has requested a proposal now.
    """

    waiting: int = 0
    tried: int = 0
    asked: bool = False

    def is_due(self, after_feedback: int) -> bool:
        return bool(self.waiting) and (self.asked or self.waiting - self.tried >= after_feedback)


def namespace(application: str, part: str = "") -> Namespace:
    """The namespace of an application's instructions, or of one ``part`` below it."""
    return (INSTRUCTIONS, application, part) if part else (INSTRUCTIONS, application)


def current_place(application: str) -> Place:
    return Place(namespace(application), CURRENT)


def reflection_place(application: str) -> Place:
    return Place(namespace(application), REFLECTION)


def revision_place(application: str, version: int) -> Place:
    """Keys sort by version."""
    return Place(namespace(application, VERSIONS), f"{version:08}")


def proposal_place(application: str, proposal: str) -> Place:
    return Place(namespace(application, PROPOSALS), proposal)


def pending_place(application: str, session: str, message: str) -> Place:
    name = blake2b(f"{session}/{message}".encode(), digest_size=16).hexdigest()
    return Place(namespace(application, PENDING), name)


def new_id(now: float) -> str:
    """A proposal's id; ids sort by time."""
    return f"proposal_{int(now * 1000):012x}{secrets.token_hex(4)}"


SAME_WORDS = 8
"""Consecutive words that a text must share with a user's to count as copied from it; characters of
scripts without spaces count half."""

_SUSPICIOUS = {
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


def find_doubts(text: str, current: str, material: Iterable[str]) -> tuple[str, ...]:
    """Reasons for a person to review a text, apart from what the current one has already.

    ``material`` are texts of users: questions and comments.
    """
    found = [
        f"it speaks of {what}" for what in _suspicious_parts(text) - _suspicious_parts(current)
    ]
    if _copies_material(text, current, material):
        found.append("it repeats a user's words")
    return tuple(sorted(found))


def _suspicious_parts(text: str) -> set[str]:
    return {what for what, pattern in _SUSPICIOUS.items() if pattern.search(text)}


def _copies_material(text: str, current: str, material: Iterable[str]) -> bool:
    new = set(_word_runs(text)) - set(_word_runs(current))
    return any(not new.isdisjoint(_word_runs(each)) for each in material)


def _word_runs(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of ``SAME_WORDS`` words; two characters of scripts without spaces are a word."""
    units: list[str] = []
    for word in words(text):
        units += list(word.text) if word.unspaced else [word.text, ""]
    length = 2 * SAME_WORDS
    return (tuple(units[at : at + length]) for at in range(len(units) - length + 1))


NOTE = "How to answer in this application, from its operator. The system message above comes first."

_current = msgspec.json.Decoder(Instructions)


def card_place(tenant: str, user: str | None, profile: ProfileSettings) -> OwnedPlace:
    """The card is the current text itself."""
    return OwnedPlace(ItemOwner(tenant), current_place(profile.instructions.name))


def choose(
    card: bytes, profile: ProfileSettings, query: QueryText, budget: TokenBudget
) -> Block | None:
    return _fit(card, budget.tokens, budget.count)


@card_cache
def _fit(card: bytes, tokens: int, count: CountText) -> Block | None:
    """All of it, or as many of its first lines as fit."""
    return whole_block(FEATURE, NOTE, _current.decode(card).text.splitlines(), tokens, count)
