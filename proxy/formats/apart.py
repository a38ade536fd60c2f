"""Parts of a message of a request that may be several messages of the conversation.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

from proxy.chat.message import ChatMessage

T = TypeVar("T")

MAX_PARTS = 4
"""Parts that are taken for one answer at most."""


def parted(
    items: Iterable[T], is_text: Callable[[T], bool], may_begin: Callable[[T, T], bool]
) -> list[list[T]]:
    """What may be messages of their own: each but the last has a text.  ``may_begin`` is asked of
    an item and the one before it, behind a text."""
    parts: list[list[T]] = []
    has_text = False
    for item in items:
        if not parts or (has_text and may_begin(item, parts[-1][-1])):
            parts.append([])
            has_text = False
        parts[-1].append(item)
        has_text = has_text or is_text(item)
    return parts


def runs_of(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[list[ChatMessage]]:
    """What an ``Apart`` returns; ``read`` makes one message of the items of several parts."""
    return [_runs(parts[at : at + MAX_PARTS], read) for at in range(len(parts))]


def _runs(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[ChatMessage]:
    return [read([*chain(*parts[:n])]) for n in range(1, len(parts) + 1)]
