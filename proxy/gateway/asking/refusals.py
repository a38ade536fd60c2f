"""Remembers what an upstream has refused of memory, so that it is not tried in each request."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

from cachetools import LRUCache

from proxy.memory.model import SessionKey

MAX_REFUSALS = 256
"""Kinds remembered per upstream, and of media per session; the least recently used is dropped."""

SECONDS = 600.0
"""Until a refused kind is tried again: the upstream may have changed."""

MEDIA_SECONDS = 3600.0
"""Until refused media are tried again: a model may see by then, an expired link stays expired."""

MAX_SESSIONS = 256
"""Sessions whose refused media are remembered."""

MAX_NAME_BYTES = 256
"""Bounds the model's name and effort of a kind, which come from the client."""


class Refusal(NamedTuple):
    """What was refused, and for which requests: by model, and for tools also by the reasoning
    effort (JSON) and by whether the client has tools of its ``own``.

    "thoughtless": tool calls in the history were refused because their reasoning was missing.
    "media": what a stored ``message`` (its id) has beside text.
    """

    model: str | None = None
    effort: bytes = b""
    own: bool = False
    what: Literal["tools", "marks", "thoughtless", "media"] = "tools"
    message: str = ""

    @property
    def has_short_name(self) -> bool:
        return len(self.model or "") + len(self.effort) <= MAX_NAME_BYTES


class Refusals:
    """The refusals of one upstream, kept for ``seconds``.  ``clock`` returns seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, seconds: float = SECONDS
    ) -> None:
        self._clock, self._seconds = clock, seconds
        self._until: LRUCache[Refusal, float] = LRUCache(MAX_REFUSALS)

    def __len__(self) -> int:
        return len(self._until)

    def add(self, kind: Refusal) -> None:
        """Remember a kind: a request was refused with it and answered without it."""
        if not kind.has_short_name:
            return
        self._until[kind] = self._clock() + self._seconds

    def discard(self, kind: Refusal) -> None:
        """Forget a kind: the remedy for it was refused."""
        self._until.pop(kind, None)

    def __contains__(self, kind: Refusal) -> bool:
        until = self._until.get(kind)
        if until is not None and until <= self._clock():
            del self._until[kind]
            return False
        return until is not None

    def messages(self, model: str | None) -> frozenset[str]:
        """The ids of the stored messages whose media were refused for a model."""
        return frozenset([k.message for k in list(self._until) if k.model == model and k in self])


class KnownRefusals:
    """What each upstream has refused; media by session as well, so that no session's many pictures
    push out what is known of another's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._upstreams = defaultdict[str, Refusals](partial(Refusals, clock))
        self._media: LRUCache[tuple[str, SessionKey], Refusals] = LRUCache(MAX_SESSIONS)

    def of(self, upstream: str) -> Refusals:
        return self._upstreams[upstream]

    def media(self, upstream: str, key: SessionKey, model: str | None) -> frozenset[str]:
        """The ids of a session's messages whose media are known to be refused."""
        known = self._media.get((upstream, key))
        return known.messages(model) if known is not None else frozenset()

    def add(self, upstream: str, key: SessionKey, kinds: Iterable[Refusal]) -> None:
        """Remember what a request of a session was refused with and answered without."""
        for kind in kinds:
            media = kind.what == "media"
            known = self._of_session(upstream, key) if media else self.of(upstream)
            known.add(kind)

    def _of_session(self, upstream: str, key: SessionKey) -> Refusals:
        return self._media.setdefault((upstream, key), Refusals(self._clock, MEDIA_SECONDS))
