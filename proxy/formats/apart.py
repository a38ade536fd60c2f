"""A message of a request that may be several: which ones it is, by what is stored.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TypeVar

from proxy.chat.message import ChatMessage

T = TypeVar("T")

MAX_PARTS = 4
"""Of one answer, as far as it is found among others."""


def messages_in(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage], known: AbstractSet[str]
) -> list[ChatMessage]:
    """See Apart: where an answer of several parts is known, it stays one."""
    found: list[ChatMessage] = []
    while parts:
        size, message = _longest_known(parts[:MAX_PARTS], read, known)
        found.append(message)
        parts = parts[size:]
    return found


def _longest_known(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage], known: AbstractSet[str]
) -> tuple[int, ChatMessage]:
    """The message that most of the first parts are, and how many; else that of the first alone."""
    runs = [(n, read([*chain(*parts[:n])])) for n in range(1, len(parts) + 1)]
    return next((run for run in reversed(runs) if run[1].digest in known), runs[0])
