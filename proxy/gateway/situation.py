"""What surrounds a chat request: whose it is, what it asks, what its profile says.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.chat.request import ChatRequest
from proxy.gateway.identity import Identity
from proxy.gateway.profile import SideRequests, window_of
from proxy.memory.compose import Rules
from proxy.memory.model import SessionKey
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


def rules_of(request: ChatRequest, situation: Situation) -> Rules:
    """How the prompt is to be composed."""
    return Rules(
        window=window_of(situation.profile),
        system=situation.profile.remember_system and not request.leading,
        cap=situation.identity.max_tokens,
        inject=situation.identity.mode != "write",
    )
