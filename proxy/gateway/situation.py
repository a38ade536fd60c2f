"""What surrounds a chat request: whose it is, what it asks, what its profile says.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.chat.blocks import summary_block
from proxy.chat.request import ChatRequest
from proxy.gateway.identity import Identity
from proxy.gateway.profile import SideRequests, window_of
from proxy.memory.compose import Rules, Summarised
from proxy.memory.model import Ask, SessionKey
from proxy.memory.request import Intent
from proxy.settings import ProfileSettings


@dataclass(frozen=True, slots=True)
class Situation:
    """What surrounds an exchange: whose it is and what its profile says."""

    key: SessionKey
    identity: Identity
    profile: ProfileSettings
    side: SideRequests
    closed: bool
    """Refuse rather than go on without memory (``store.on_failure = "closed"``)."""


def intent_of(situation: Situation, now: float) -> Intent:
    """What the client wants of reconciliation; ``now`` in Unix seconds."""
    identity = situation.identity
    return Intent(
        history=identity.history or situation.profile.client_history,
        rewind=identity.rewind,
        retry=identity.retry,
        now=now,
    )


def rules_of(request: ChatRequest, situation: Situation, count: Callable[[str], int]) -> Rules:
    """How the prompt is to be composed.  ``count`` counts the tokens of a text."""
    profile = situation.profile
    summarised = None
    if profile.summary.enabled:
        summarised = Summarised(profile.max_tokens, count(summary_block("")))
    return Rules(
        window=window_of(profile),
        system=profile.remember_system and not request.leading,
        cap=situation.identity.max_tokens,
        inject=situation.identity.mode != "write",
        summarised=summarised,
    )


def ask_of(situation: Situation, rules: Rules) -> Ask:
    """What a request needs to see of its session."""
    return Ask(
        profile=situation.identity.profile,
        max_messages=rules.window.max_messages,
        max_tokens=rules.window.max_tokens,
        idempotency_key=situation.identity.idempotency_key,
        uncovered=rules.summarised.most if rules.summarised else None,
    )
