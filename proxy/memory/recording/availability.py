"""Is the store away, or is it one session that cannot be had in time?

A store is away when it does not answer what is cheap; of one that has several servers each may be,
with the sessions that it has, see ``Store.part_of``.  A session that is slow for its own size, or
of which only half is left, is a matter of that session alone: it is left alone for a while, longer
each time, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import msgspec
from cachetools import LRUCache

from proxy.memory.limit import TimeLimit
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError

PAUSE = 1.0
"""Seconds for which requests leave a store alone that failed them."""

PAUSES = (1.0, 30.0)
"""Seconds for which a session is left alone: at first, doubled each time, and at most."""

KNOWN = 1000
"""Sessions in trouble that are remembered; the longest untouched are forgotten first."""


def hashed(key: SessionKey) -> str:
    """A session as logs call it."""
    return hashlib.sha256(key.session.encode("utf-8", "surrogatepass")).hexdigest()[:12]


PartOf = Callable[[SessionKey], str]
"""See ``Store.part_of``."""


def again(failure: StoreError) -> StoreError:
    """A copy to be raised: the traceback of an exception grows with every raise, and keeps its
    frames alive."""
    return type(failure)(*failure.args)


class Probe:
    """Asks whether a part of the store answers at all; those who want to know at the same time ask
    once.

    A question that was begun has ``patience`` seconds to be answered.
    """

    def __init__(
        self, peek: Callable[[SessionKey], Awaitable[None]], part_of: PartOf, patience: float
    ) -> None:
        self._peek, self._part_of, self._patience = peek, part_of, patience
        self._asking: dict[str, asyncio.Task[bool]] = {}

    def begin(self, key: SessionKey) -> asyncio.Task[bool]:
        part = self._part_of(key)
        asking = self._asking.get(part)
        if asking is None or asking.done():
            asking = self._asking[part] = asyncio.create_task(self._ask(key), name="probe")
        return asking

    async def answers(self, key: SessionKey, begun: asyncio.Task[bool] | None = None) -> bool:
        """Does it?  ``begun`` is a question asked earlier."""
        return await asyncio.shield(begun or self.begin(key))

    async def _ask(self, key: SessionKey) -> bool:
        try:
            async with TimeLimit(self._patience):
                await self._peek(key)
        except (TimeoutError, StoreError):
            return False
        return True


class Pauses:
    """The parts of the store that are left alone for a moment, with loads and with commits."""

    def __init__(self, part_of: PartOf, clock: Callable[[], float]) -> None:
        self._part_of, self._clock = part_of, clock
        self._loads: dict[str, tuple[StoreError, float]] = {}
        self._commits: dict[str, float] = {}

    def away(self, key: SessionKey, failure: StoreError) -> None:
        """The part that has this session does not answer."""
        self._loads[self._part_of(key)] = failure, self._clock() + PAUSE
        self.late(key)

    def late(self, key: SessionKey) -> None:
        """It has not taken a commit in time."""
        self._commits[self._part_of(key)] = self._clock() + PAUSE

    def back(self, key: SessionKey) -> None:
        """It works again."""
        part = self._part_of(key)
        self._loads.pop(part, None)
        self._commits.pop(part, None)

    def loading(self, key: SessionKey) -> StoreError | None:
        """How it failed, while nothing is loaded from it."""
        failure, until = self._loads.get(self._part_of(key), (None, 0.0))
        return again(failure) if failure and self._clock() < until else None

    def committing(self, key: SessionKey) -> bool:
        """Is nothing written to it?"""
        return self._clock() < self._commits.get(self._part_of(key), 0.0)


class Trouble(msgspec.Struct):
    """A session that failed: how it did, for how long it is left alone, and until when."""

    failure: StoreError
    pause: float
    until: float


class Troubles:
    """The sessions that are left alone; bounded."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: LRUCache[SessionKey, Trouble] = LRUCache(KNOWN)

    def __len__(self) -> int:
        """How many failed when they were last tried, and lately."""
        since = self._clock() - PAUSES[1]
        return sum(trouble.until > since for trouble in self._known.values())

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._known

    def failed(self, key: SessionKey, failure: StoreError) -> None:
        """It has failed, perhaps again: leave it alone."""
        before, (first, most) = self._known.get(key), PAUSES
        pause = first if before is None else min(before.pause * 2, most)
        self._known[key] = Trouble(failure, pause, self._clock() + pause)

    def worked(self, key: SessionKey) -> None:
        self._known.pop(key, None)

    def pausing(self, key: SessionKey) -> StoreError | None:
        """How it failed, while it is left alone."""
        trouble = self._known.get(key)
        if trouble is None or self._clock() >= trouble.until:
            return None
        return again(trouble.failure)
