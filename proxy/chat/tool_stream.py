"""Calls of memory in a streamed answer: taken out, and all else let through as it comes.

Sans I/O: events in, events out.  An event that holds no part of such a call is the very one that
came in; the others are rewritten, or left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

from proxy.chat import jsontext
from proxy.chat.calls import Calls
from proxy.chat.deltas import Node
from proxy.chat.events import mark, suspect
from proxy.chat.reply import ReplyBuilder
from proxy.chat.tool_called import Called, called
from proxy.chat.tool_chunk import IDENTITY, Chunk, says
from proxy.chat.tool_offer import NAMES
from proxy.chat.tool_usage import summed

EventT = TypeVar("EventT", bound="Event")


class Event(Protocol):
    """An event of a stream, with a payload."""

    @property
    def payload(self) -> bytes: ...

    def replaced(self: EventT, payload: bytes) -> EventT:
        """The same event with another payload."""
        ...


class _Waiting(NamedTuple):
    """An event, and the calls that the pieces in it belong to."""

    event: Event
    chunk: Chunk | None
    nodes: list[Node]
