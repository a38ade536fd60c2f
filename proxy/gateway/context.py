"""What surrounds a chat request: whose it is, what it asks, what its profile says.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from proxy.chat.blocks import summary_block
from proxy.chat.request import ChatRequest
from proxy.gateway.identity import Identity
from proxy.memory.model import NO_PROFILE, Ask, SessionKey
from proxy.memory.prompt.compose import Rules, Summarised
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.recall.query.query import RecallOptions
from proxy.settings import ProfileSettings, RecallSettings

TOLD_BY = 16_384
"""Characters of a text that tell what kind of request it is: patterns can be slow."""

SHARE = 5
"""The part of all injected tokens that recall has by default."""


def window_of(profile: ProfileSettings) -> Window:
    """The window of a profile.

    A token window leaves room for the most that summary and recall may take, used or not: their
    actual size must not move it.
    """
    max_messages = max_tokens = None
    if profile.window == "none" or summarises_all(profile):
        max_messages = 0
    elif profile.window == "message_window":
        max_messages = profile.max_messages
    elif profile.window == "token_window":
        max_tokens = max(0, profile.max_tokens - reserved_tokens(profile))
    return Window(max_messages, max_tokens, profile.evict_to, profile.start_on_user)


def reserved_tokens(profile: ProfileSettings) -> int:
    """What the window leaves to the summary, to recall, and to what is known."""
    summary = profile.summary.max_tokens if profile.summary.enabled else 0
    recall = recall_tokens(profile) if profile.recall.enabled else 0
    return summary + recall + known_tokens(profile)


def known_tokens(profile: ProfileSettings) -> int:
    """The most that what is learned may take."""
    return sum(part.max_tokens for part in profile.learned.values() if part.enabled)


def summarises_all(profile: ProfileSettings) -> bool:
    """Does a summary stand in for all that is older than the running turn?"""
    return profile.summary.enabled and profile.summary.mode == "summary"


def recall_tokens(profile: ProfileSettings) -> int:
    """What recall may take: its setting, and where that is not set at most a fifth of all.

    A small ``max_tokens`` would otherwise be all recall's, by a default that nobody chose.
    """
    recall = profile.recall
    if "max_tokens" in recall.model_fields_set:
        return recall.max_tokens
    return min(recall.max_tokens, profile.max_tokens // SHARE)


def options_of(recall: RecallSettings) -> RecallOptions:
    """How a profile wants recall to work."""
    return RecallOptions(
        own_session_only=recall.scope == "session",
        min_score=recall.min_score,
        roles=recall.roles,
        half_life_days=recall.half_life_days or None,
        standing_max_tokens=recall.standing.max_tokens,
        zone=recall.zone,
    )


class SideRequests:
    """Requests that chat UIs make beside the conversation, under the same id: titles, tags.

    The beginning of a text tells them.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def matches(self, *texts: str) -> bool:
        beginnings = [text[:TOLD_BY] for text in texts if text]
        return any(pattern.search(text) for pattern in self._patterns for text in beginnings)


NEVER = 10 * 365 * 86_400.0
"""Ten years in seconds: for profiles that no pause makes learn."""


class Pace(NamedTuple):
    """What learning from sessions waits for: so many turns, or so many seconds of quiet."""

    turns: int
    seconds: float


class ProfileRules(msgspec.Struct, frozen=True):
    """What a profile means for each of its requests: it is made once.

    ``known_tokens`` and ``recall_tokens`` are the most that what is learned, and recall, may take;
    ``pace`` is None where no model reads sessions, ``learns``: has it anything that is learned?
    """

    profile: ProfileSettings
    side: SideRequests
    window: Window
    known_tokens: int
    recall_tokens: int
    recall: RecallOptions
    pace: Pace | None
    learns: bool

    @classmethod
    def of(cls, profile: ProfileSettings) -> ProfileRules:
        paces = profile.paces
        turns = min((turns for turns, _ in paces), default=0)
        seconds = min((seconds or NEVER for _, seconds in paces), default=NEVER)
        return cls(
            profile=profile,
            side=SideRequests(profile.side_requests),
            window=window_of(profile),
            known_tokens=known_tokens(profile),
            recall_tokens=recall_tokens(profile),
            recall=options_of(profile.recall),
            pace=Pace(turns, seconds) if paces else None,
            learns=any(part.enabled for part in profile.learned.values()),
        )


class RequestContext(msgspec.Struct, frozen=True, gc=False):
    """What surrounds an exchange: whose it is and what its profile says."""

    key: SessionKey
    identity: Identity
    usual: ProfileRules
    closed: bool
    """Refuse rather than go on without memory (``store.on_failure = "closed"``)."""

    @property
    def profile(self) -> ProfileSettings:
        return self.usual.profile

    @property
    def cache_key(self) -> str:
        """What upstreams are told of the session, to find what they have cached of it."""
        return sha256("\0".join(self.key).encode()).hexdigest()[:32]


def intent_of(request: ChatRequest, context: RequestContext, now: float) -> Intent:
    """What the client wants of reconciliation; ``now`` in Unix seconds.

    Of a conversation that the upstream keeps it sends what is new; some programs send all of it,
    and may have put a summary in the place of most.  A retry has the key of the first attempt:
    where there is one, what is recorded under it is what the request repeats, and nothing else.
    """
    identity = context.identity
    usual = context.profile.client_history
    if request.state.elsewhere:
        usual = "delta"
    elif request.state.complete and usual == "auto":
        usual = "full"
    return Intent(
        history=identity.history or usual,
        rewind=identity.rewind,
        retry=identity.retry and identity.idempotency_key is None,
        now=now,
    )


def rules_of(request: ChatRequest, context: RequestContext, count: Callable[[str], int]) -> Rules:
    """How the prompt is to be composed.  ``count`` counts the tokens of a text."""
    profile = context.profile
    summarised = None
    if profile.summary.enabled:
        summarised = Summarised(profile.max_tokens, count(summary_block("")))
    return Rules(
        window=context.usual.window,
        system=profile.remember_system and request.wants_system,
        cap=context.identity.max_tokens,
        inject=context.identity.mode != "write" and not request.state.upstreams,
        summarised=summarised,
    )


def ask_of(context: RequestContext, rules: Rules) -> Ask:
    """What a request needs to see of its session.

    A window without bounds begins nowhere, wherever one with bounds has begun before.
    """
    return Ask(
        profile=context.identity.profile if rules.window.is_bounded else NO_PROFILE,
        max_messages=rules.window.max_messages,
        max_tokens=rules.window.max_tokens,
        idempotency_key=context.identity.idempotency_key,
        uncovered=rules.summarised.most if rules.summarised else None,
    )
