"""The context of a chat request: its session, its headers and its profile.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from proxy.chat.blocks import summary_block
from proxy.chat.request import ChatRequest
from proxy.gateway.identity import Identity
from proxy.memory.model import NO_PROFILE, LoadOptions, SessionKey
from proxy.memory.prompt.compose import PromptRules, SummaryRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.recall.query.query import RecallOptions
from proxy.settings import ProfileSettings, RecallSettings

SCANNED_CHARACTERS = 16_384
"""Patterns are matched against this much of a text: they can be slow."""

DEFAULT_RECALL_DIVISOR = 5
"""By default recall may use a profile's ``max_tokens`` divided by this."""


def window_of(profile: ProfileSettings) -> Window:
    """The window of a profile.

    A token window reserves the maximum of summary, recall and learned memory whether it is used or
    not, so that their actual size does not move the window.
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
    """Tokens that the window reserves for the summary, recall and learned memory."""
    summary = profile.summary.max_tokens if profile.summary.enabled else 0
    recall = max_recall_tokens(profile) if profile.recall.enabled else 0
    return summary + recall + max_learned_tokens(profile)


def max_learned_tokens(profile: ProfileSettings) -> int:
    return sum(part.max_tokens for part in profile.learned.values() if part.enabled)


def summarises_all(profile: ProfileSettings) -> bool:
    """Whether a summary replaces everything before the current turn."""
    return profile.summary.enabled and profile.summary.mode == "summary"


def max_recall_tokens(profile: ProfileSettings) -> int:
    """The maximum of tokens for recall: its setting, or if unset its default but at most a fifth of
    the profile's ``max_tokens``, which could otherwise be less than that default.
    """
    recall = profile.recall
    if "max_tokens" in recall.model_fields_set:
        return recall.max_tokens
    return min(recall.max_tokens, profile.max_tokens // DEFAULT_RECALL_DIVISOR)


def recall_options(recall: RecallSettings) -> RecallOptions:
    return RecallOptions(
        own_session_only=recall.scope == "session",
        min_score=recall.min_score,
        roles=recall.roles,
        half_life_days=recall.half_life_days or None,
        standing_max_tokens=recall.standing.max_tokens,
        zone=recall.zone,
    )


class SideRequests:
    """Recognises requests that chat UIs send under a conversation's id and that are not part of it
    (titles, tags), by patterns for the beginning of a text.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def matches(self, *texts: str) -> bool:
        beginnings = [text[:SCANNED_CHARACTERS] for text in texts if text]
        return any(pattern.search(text) for pattern in self._patterns for text in beginnings)


NEVER = 10 * 365 * 86_400.0
"""Ten years in seconds: the pause of profiles that do not learn after a pause."""


class Pace(NamedTuple):
    """When a session is learned from: after ``turns`` turns, or ``seconds`` without one."""

    turns: int
    seconds: float


class ProfileRules(msgspec.Struct, frozen=True):
    """What is derived from a profile's settings, once for all its requests.

    ``max_learned_tokens`` and ``max_recall_tokens`` limit learned memory and recall in a prompt.
    ``pace`` is None if no model reads sessions; ``learns``: any kind of learned memory is enabled.
    """

    profile: ProfileSettings
    side_requests: SideRequests
    window: Window
    max_learned_tokens: int
    max_recall_tokens: int
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
            side_requests=SideRequests(profile.side_requests),
            window=window_of(profile),
            max_learned_tokens=max_learned_tokens(profile),
            max_recall_tokens=max_recall_tokens(profile),
            recall=recall_options(profile.recall),
            pace=Pace(turns, seconds) if paces else None,
            learns=any(part.enabled for part in profile.learned.values()),
        )


class RequestContext(msgspec.Struct, frozen=True, gc=False):
    """The session of an exchange, the headers of its request, and its profile."""

    key: SessionKey
    identity: Identity
    profile_rules: ProfileRules
    fails_closed: bool
    """A failure of memory fails the request (``store.on_failure = "closed"``)."""

    @property
    def profile(self) -> ProfileSettings:
        return self.profile_rules.profile

    @property
    def cache_key(self) -> str:
        """The session's key for upstreams' prompt caches: a hash, so that ids stay here."""
        return sha256("\0".join(self.key).encode()).hexdigest()[:32]


def intent_of(request: ChatRequest, context: RequestContext, now: float) -> Intent:
    """How reconciliation is to read the request's messages; ``now`` in Unix seconds.

    If the upstream keeps the conversation, clients send only new messages.  Some programs always
    send the whole conversation, parts of it perhaps replaced by a summary.  With an idempotency key
    only the exchange recorded under that key counts as the first attempt of a retry.
    """
    identity = context.identity
    history = context.profile.client_history
    if request.state.kept_upstream:
        history = "delta"
    elif request.state.sends_all and history == "auto":
        history = "full"
    return Intent(
        history=identity.history or history,
        rewind=identity.rewind,
        retry=identity.retry and identity.idempotency_key is None,
        now=now,
    )


def rules_of(
    request: ChatRequest, context: RequestContext, count: Callable[[str], int]
) -> PromptRules:
    """How the prompt is to be composed.  ``count`` counts the tokens of a text."""
    profile = context.profile
    summaries = None
    if profile.summary.enabled:
        summaries = SummaryRules(profile.max_tokens, count(summary_block("")))
    return PromptRules(
        window=context.profile_rules.window,
        inject_system=profile.remember_system and request.wants_system,
        max_injected_tokens=context.identity.max_tokens,
        inject=context.identity.mode != "write" and not request.state.forbids_injection,
        summaries=summaries,
    )


def load_options_of(context: RequestContext, rules: PromptRules) -> LoadOptions:
    """What to load of the session.

    An unbounded window does not start where a bounded window of the profile has started before.
    """
    return LoadOptions(
        profile=context.identity.profile if rules.window.is_bounded else NO_PROFILE,
        max_messages=rules.window.max_messages,
        max_tokens=rules.window.max_tokens,
        idempotency_key=context.identity.idempotency_key,
        max_uncovered_tokens=rules.summaries.max_tokens if rules.summaries else None,
    )
