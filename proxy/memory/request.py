"""What a request says, as far as reconciling it with a session's log goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from proxy.memory.align import Side
from proxy.memory.model import Card

History = Literal["auto", "full", "delta"]


class Incoming(Side, Protocol):
    """A message of the request."""

    @property
    def text(self) -> str: ...
    @property
    def blank(self) -> bool: ...


Rerendered = Callable[[Incoming, Card], bool]
"""Is an assistant message of the request the stored answer, re-rendered?  Equal calls are given."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the client said about its request, beside the messages."""

    history: History = "auto"
    rewind: int = 0
    retry: bool = False
    """The client's SDK calls it an automatic retry (``X-Stainless-Retry-Count`` above 0)."""
    now: float = 0.0


def visible(message: Incoming) -> bool:
    return message.role not in ("system", "developer") and not message.blank
