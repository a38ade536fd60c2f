"""Splits a request's message into the several answers that its client may have joined.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

from proxy.chat.message import ChatMessage

T = TypeVar("T")

MAX_PARTS = 4
"""The most parts that a candidate message may consist of."""


def split_answers(
    items: Iterable[T], is_text: Callable[[T], bool], may_begin: Callable[[T, T], bool]
) -> list[list[T]]:
    """Split items into parts that may each be a message; every part but the last has a text.

    ``may_begin(item, previous)``: whether a part may begin at ``item``, after a text.
    """
    parts: list[list[T]] = []
    has_text = False
    for item in items:
        if not parts or (has_text and may_begin(item, parts[-1][-1])):
            parts.append([])
            has_text = False
        parts[-1].append(item)
        has_text = has_text or is_text(item)
    return parts


def candidate_messages(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[list[ChatMessage]]:
    """For each part, the messages that begin with it and have one, two, up to ``MAX_PARTS`` parts.

    ``read`` makes one message of the items of these parts.  This is what a ``Splitter`` returns.
    """
    return [_candidates_from(parts[at : at + MAX_PARTS], read) for at in range(len(parts))]


def _candidates_from(
    parts: Sequence[Sequence[T]], read: Callable[[list[T]], ChatMessage]
) -> list[ChatMessage]:
    return [read([*chain(*parts[:n])]) for n in range(1, len(parts) + 1)]
