"""Which kinds of request the upstream has refused memory's tools for: no turn pays for it twice."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

MOST = 256
"""Kinds that are known; the one that was refused longest ago is forgotten."""

SECONDS = 600.0
"""Until it is tried again: upstreams learn, too."""

LONGEST = 256
"""Bytes of a name; the client writes it, and we would keep it."""


class Kind(NamedTuple):
    """What decides: the model, how much it reasons (JSON), whether the client brings tools."""

    model: str | None = None
    effort: bytes = b""
    own: bool = False

    @property
    def short(self) -> bool:
        return len(self.model or "") + len(self.effort) <= LONGEST


class Refusals:
    """Of one upstream.  ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[Kind, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, kind: Kind) -> None:
        """Tools were refused, and the same request was answered without them."""
        if not kind.short:
            return
        self._until[kind] = self._clock() + SECONDS
        self._until.move_to_end(kind)
        if len(self._until) > MOST:
            self._until.popitem(last=False)

    def __contains__(self, kind: Kind) -> bool:
        until = self._until.get(kind)
        if until is not None and until <= self._clock():
            del self._until[kind]
            return False
        return until is not None
