"""A message of a request that may be several: its parts.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from proxy.chat.message import ChatMessage

T = TypeVar("T")

MAX_PARTS = 4
"""Of one answer, as far as it is found among others."""


def runs_of(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[list[ChatMessage]]:
    """See Apart."""
    return [_runs(parts[at : at + MAX_PARTS], read) for at in range(len(parts))]


def _runs(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[ChatMessage]:
    return [read([*chain(*parts[:n])]) for n in range(1, len(parts) + 1)]
