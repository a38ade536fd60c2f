"""What of memory an upstream has refused, for a while: it is not asked for it again at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from cachetools import LRUCache

MOST = 256
"""Kinds that are known; the one that was refused longest ago is forgotten."""

SECONDS = 600.0
"""Until it is tried again: upstreams learn, too."""

LONGEST = 256
"""Bytes of a name; the client writes it, and we would keep it."""


class RefusalKind(NamedTuple):
    """What was refused, and of which requests: those for a model; for tools also by how much it
    is to reason (JSON), and by whether the client brings some itself.  "thoughtless" are calls
    without what the model thought before it made them."""

    model: str | None = None
    effort: bytes = b""
    own: bool = False
    what: Literal["tools", "marks", "thoughtless"] = "tools"

    @property
    def short(self) -> bool:
        return len(self.model or "") + len(self.effort) <= LONGEST


class Refusals:
    """Of one upstream.  ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: LRUCache[RefusalKind, float] = LRUCache(MOST)

    def __len__(self) -> int:
        return len(self._until)

    def add(self, kind: RefusalKind) -> None:
        """It was refused, and the same request was answered without it."""
        if not kind.short:
            return
        self._until[kind] = self._clock() + SECONDS

    def discard(self, kind: RefusalKind) -> None:
        """What was done about it was refused."""
        self._until.pop(kind, None)

    def __contains__(self, kind: RefusalKind) -> bool:
        until = self._until.get(kind)
        if until is not None and until <= self._clock():
            del self._until[kind]
            return False
        return until is not None
