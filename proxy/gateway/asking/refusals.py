"""Remembers what an upstream has refused of memory, so that it is not tried in each request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from cachetools import LRUCache

MAX_KINDS = 256
"""Kinds remembered per upstream; the least recently used is dropped."""

SECONDS = 600.0
"""Until a refused kind is tried again: the upstream may have changed."""

MAX_NAME_BYTES = 256
"""Bounds the model's name and effort of a kind, which come from the client."""


class RefusalKind(NamedTuple):
    """What was refused, and for which requests: by model, and for tools also by the reasoning
    effort (JSON) and by whether the client has tools of its ``own``.

    "thoughtless": tool calls in the history were refused because their reasoning was missing.
    """

    model: str | None = None
    effort: bytes = b""
    own: bool = False
    what: Literal["tools", "marks", "thoughtless"] = "tools"

    @property
    def short(self) -> bool:
        return len(self.model or "") + len(self.effort) <= MAX_NAME_BYTES


class Refusals:
    """The refusals of one upstream.  ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: LRUCache[RefusalKind, float] = LRUCache(MAX_KINDS)

    def __len__(self) -> int:
        return len(self._until)

    def add(self, kind: RefusalKind) -> None:
        """Remember a kind: a request was refused with it and answered without it."""
        if not kind.short:
            return
        self._until[kind] = self._clock() + SECONDS

    def discard(self, kind: RefusalKind) -> None:
        """Forget a kind: the remedy for it was refused."""
        self._until.pop(kind, None)

    def __contains__(self, kind: RefusalKind) -> bool:
        until = self._until.get(kind)
        if until is not None and until <= self._clock():
            del self._until[kind]
            return False
        return until is not None
