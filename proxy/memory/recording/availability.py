"""Tells whether the store is down or one session alone is too slow or damaged.

A store, or one of its servers (see ``Store.server_of``), is down when it does not answer a cheap
request.  A session that is too large to load in time, or has lost messages, is paused by itself,
for longer each time; other sessions are not affected.
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

PAUSE_SECONDS = 1.0
"""Seconds for which no request uses a part of the store that failed."""

SESSION_PAUSES = (1.0, 30.0)
"""Seconds for which a failing session is paused: first, doubled each time; and at most."""

MAX_FAILING_SESSIONS = 1000
"""Failing sessions that are remembered, least recently used ones are dropped."""


def session_hash(key: SessionKey) -> str:
    """The hash of a session id that logs show."""
    return hashlib.sha256(key.session.encode("utf-8", "surrogatepass")).hexdigest()[:12]


ServerOf = Callable[[SessionKey], str]
"""See ``Store.server_of``."""


def copy_of_error(failure: StoreError) -> StoreError:
    """A copy to raise: the traceback of an exception that is raised again and again grows, and
    keeps its frames alive."""
    return type(failure)(*failure.args)


class Probe:
    """Checks that a part of the store answers at all; concurrent checks of a part share one
    request.

    A check fails after ``timeout`` seconds.
    """

    def __init__(
        self, peek: Callable[[SessionKey], Awaitable[None]], server_of: ServerOf, timeout: float
    ) -> None:
        self._peek, self._server_of, self._timeout = peek, server_of, timeout
        self._asking: dict[str, asyncio.Task[bool]] = {}

    def begin(self, key: SessionKey) -> asyncio.Task[bool]:
        part = self._server_of(key)
        asking = self._asking.get(part)
        if asking is None or asking.done():
            asking = self._asking[part] = asyncio.create_task(self._peek_session(key), name="probe")
        return asking

    async def answers(self, key: SessionKey, begun: asyncio.Task[bool] | None = None) -> bool:
        """Whether the session's part of the store answers; ``begun`` is a check begun earlier."""
        return await asyncio.shield(begun or self.begin(key))

    async def _peek_session(self, key: SessionKey) -> bool:
        try:
            async with TimeLimit(self._timeout):
                await self._peek(key)
        except (TimeoutError, StoreError):
            return False
        return True


class PausedServers:
    """The parts of the store that are not used for a moment: for loads, for commits."""

    def __init__(self, server_of: ServerOf, clock: Callable[[], float]) -> None:
        self._server_of, self._clock = server_of, clock
        self._loads: dict[str, tuple[StoreError, float]] = {}
        self._commits: dict[str, float] = {}

    def pause_all(self, key: SessionKey, failure: StoreError) -> None:
        """The session's part is down: pause loads and commits."""
        self._loads[self._server_of(key)] = failure, self._clock() + PAUSE_SECONDS
        self.pause_commits(key)

    def pause_commits(self, key: SessionKey) -> None:
        """A commit timed out: pause commits to the session's part."""
        self._commits[self._server_of(key)] = self._clock() + PAUSE_SECONDS

    def resume(self, key: SessionKey) -> None:
        """The session's part works again."""
        part = self._server_of(key)
        self._loads.pop(part, None)
        self._commits.pop(part, None)

    def load_failure(self, key: SessionKey) -> StoreError | None:
        """The error to raise while loads are paused, else None."""
        failure, until = self._loads.get(self._server_of(key), (None, 0.0))
        return copy_of_error(failure) if failure and self._clock() < until else None

    def commits_paused(self, key: SessionKey) -> bool:
        """Whether commits to the session's part are paused."""
        return self._clock() < self._commits.get(self._server_of(key), 0.0)


class FailingSession(msgspec.Struct):
    """A session that failed; ``pause`` is in seconds, ``until`` a time of the clock."""

    failure: StoreError
    pause: float
    until: float


class FailingSessions:
    """The sessions that are paused because they failed; bounded."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: LRUCache[SessionKey, FailingSession] = LRUCache(MAX_FAILING_SESSIONS)

    def __len__(self) -> int:
        """The number of sessions whose last, recent attempt failed."""
        since = self._clock() - SESSION_PAUSES[1]
        return sum(trouble.until > since for trouble in self._known.values())

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._known

    def mark_failed(self, key: SessionKey, failure: StoreError) -> None:
        """Pause the session, twice as long as before."""
        before, (first, most) = self._known.get(key), SESSION_PAUSES
        pause = first if before is None else min(before.pause * 2, most)
        self._known[key] = FailingSession(failure, pause, self._clock() + pause)

    def mark_recovered(self, key: SessionKey) -> None:
        self._known.pop(key, None)

    def pause_cause(self, key: SessionKey) -> StoreError | None:
        """The error to raise while the session is paused, else None."""
        trouble = self._known.get(key)
        if trouble is None or self._clock() >= trouble.until:
            return None
        return copy_of_error(trouble.failure)
