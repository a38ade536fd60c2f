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
"""Limit on the refusals remembered per upstream, and of media per session (LRU)."""

SECONDS = 600.0
"""Until a refused feature is tried again: the upstream may have changed."""

MEDIA_SECONDS = 3600.0
"""Until refused media are tried again: the upstream's model may accept them by then."""

MAX_SESSIONS = 256
"""Sessions whose refused media are remembered."""

MAX_NAME_BYTES = 256
"""Limit on the model's name and effort of a refusal, which come from the client."""


class Refusal(NamedTuple):
    """What was refused, and for which requests: by model, and for tools also by the reasoning
    effort (JSON) and by whether the client has tools of its own.

    "missing_reasoning": tool calls in the history were refused because their reasoning was missing.
    "media": what a stored ``message`` (its id) has beside text.
    """

    model: str | None = None
    effort: bytes = b""
    has_client_tools: bool = False
    feature: Literal["tools", "marks", "missing_reasoning", "media"] = "tools"
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
        self._expiry_times: LRUCache[Refusal, float] = LRUCache(MAX_REFUSALS)

    def __len__(self) -> int:
        return len(self._expiry_times)

    def add(self, refusal: Refusal) -> None:
        """Remember a refusal: the request was refused with the feature and answered without it."""
        if not refusal.has_short_name:
            return
        self._expiry_times[refusal] = self._clock() + self._seconds

    def discard(self, refusal: Refusal) -> None:
        """Forget a refusal: the remedy for it was refused too."""
        self._expiry_times.pop(refusal, None)

    def __contains__(self, refusal: Refusal) -> bool:
        expiry = self._expiry_times.get(refusal)
        if expiry is not None and expiry <= self._clock():
            del self._expiry_times[refusal]
            return False
        return expiry is not None

    def messages(self, model: str | None) -> frozenset[str]:
        """The ids of the stored messages whose media were refused for a model."""
        known = [x for x in list(self._expiry_times) if x.model == model and x in self]
        return frozenset([refusal.message for refusal in known])


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

    def add(self, upstream: str, key: SessionKey, refusals: Iterable[Refusal]) -> None:
        """Remember what a request of a session was refused with and answered without."""
        for refusal in refusals:
            is_media = refusal.feature == "media"
            known = self._of_session(upstream, key) if is_media else self.of(upstream)
            known.add(refusal)

    def _of_session(self, upstream: str, key: SessionKey) -> Refusals:
        return self._media.setdefault((upstream, key), Refusals(self._clock, MEDIA_SECONDS))
