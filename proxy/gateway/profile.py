"""What a profile of the configuration means for one request.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.memory.model import Ask
from proxy.memory.window import Window
from proxy.settings import ProfileSettings

SHARE = 5
"""The part of all injected tokens that recall has by default."""


def window_of(profile: ProfileSettings) -> Window:
    """The window of a profile.

    A token window leaves room for the most that summary and recall may take, used or not: their
    actual size must not move it.
    """
    max_messages = max_tokens = None
    if profile.window == "none":
        max_messages = 0
    elif profile.window == "message_window":
        max_messages = profile.max_messages
    elif profile.window == "token_window":
        max_tokens = max(0, profile.max_tokens - reserved_tokens(profile))
    return Window(max_messages, max_tokens, profile.evict_to, profile.start_on_user)


def reserved_tokens(profile: ProfileSettings) -> int:
    """What the window leaves to summary and recall."""
    summary = profile.summary.max_tokens if profile.summary.enabled else 0
    return summary + (recall_tokens(profile) if profile.recall.enabled else 0)


def recall_tokens(profile: ProfileSettings) -> int:
    """What recall may take: its setting, and where that is not set at most a fifth of all.

    A small ``max_tokens`` would otherwise be all recall's, by a default that nobody chose.
    """
    recall = profile.recall
    if "max_tokens" in recall.model_fields_set:
        return recall.max_tokens
    return min(recall.max_tokens, profile.max_tokens // SHARE)


def ask_of(name: str, window: Window, idempotency_key: str | None) -> Ask:
    """What a request needs to see of its session."""
    return Ask(
        profile=name,
        max_messages=window.max_messages,
        max_tokens=window.max_tokens,
        idempotency_key=idempotency_key,
    )


class SideRequests:
    """Requests that chat UIs make beside the conversation, under the same id: titles, tags."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def matches(self, *texts: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns for text in texts if text)
