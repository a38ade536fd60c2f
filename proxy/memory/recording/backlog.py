"""What waits in the spool for its store: put there, and shown to later requests.

How it is carried out: see ``replay``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from proxy.memory.limit import TimeLimit
from proxy.memory.model import Amendment, Ask, Commit, Outcome, SessionKey, Snapshot
from proxy.memory.recording.aside import Aside
from proxy.memory.recording.availability import Pauses, Troubles
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.overlay import amended, overlay
from proxy.memory.recording.replay import Means, Replay
from proxy.memory.recording.spool import Kind, Spool, SpoolEntry, SpoolError
from proxy.memory.store import StoreError, StoreTimeout

logger = logging.getLogger(__name__)

SHOWN = (200, 8 * 1024 * 1024)
"""Entries of a session, and bytes of them, that a request can be shown: more take too long."""

LATELY = 60.0
"""Seconds for which a loss is reported."""


class Tally(msgspec.Struct, frozen=True):
    """What has become of exchanges that the store did not take at once."""

    lost: int
    spooled: int
    replayed: int


class Backlog:
    """A spool and the store that it is for.

    ``live`` is for the time that a chat has, ``patient`` for ``REPLAY_SECONDS``, and
    ``last_resort`` are the seconds that the store has for what the spool cannot take, and all of
    its session before it, and for reading what others have changed since an entry was planned.
    """

    def __init__(
        self,
        spool: Spool,
        live: Means,
        patient: Means,
        listeners: Listeners,
        last_resort: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._live, self._last_resort, self._clock = spool, live, last_resort, clock
        self._aside = Aside(spool)
        self._replay = Replay(
            spool, self._aside, live, patient, listeners, last_resort, Troubles(clock)
        )
        self._spooled, self._lost, self._lost_at = 0, 0, -LATELY
        self.pauses = Pauses(live.store.part_of, clock)
        """The parts of the store that are left alone, here and by requests."""

    @property
    def tally(self) -> Tally:
        return Tally(self._lost, self._spooled, self._replay.replayed)

    @property
    def losing(self) -> bool:
        """Was an exchange lost lately?"""
        return self._clock() - self._lost_at < LATELY

    @property
    def slow(self) -> int:
        """Sessions that could not be replayed in the time of a chat."""
        return len(self._replay.slow)

    async def open(self) -> Mapping[str, int]:
        """Open the spool; how many entries in it wait for other stores, by these' names.  Raises
        SpoolError."""
        await self._aside(self._spool.open, True)
        return await self._aside(self._spool.elsewhere)

    async def reopen(self) -> None:
        """Open it again if it could not be, or its file is gone.  Raises SpoolError."""
        if not self._spool.is_open:
            await self._aside(self._spool.open, True)

    async def close(self) -> None:
        """Leave the rest for the next start; the spool is closed."""
        await self._replay.close()
        await self._aside.close()

    async def replay(self) -> bool:
        """See ``Replay.all``: what the store takes says that its part works again."""
        return await self._replay.all(self.pauses.back)

    async def review(self) -> None:
        """See ``Replay.review``."""
        await self._replay.review()

    # Keeping

    async def put(
        self, key: SessionKey, exchange: str, kind: Kind, what: msgspec.Struct
    ) -> Literal["spooled", "lost"] | Outcome:
        """Keep something for later; durable on return unless it is lost.

        What the spool cannot take the store may.
        """
        try:
            payload = await self._aside(msgspec.json.encode, what)
            return await self._kept(SpoolEntry(-1, key, exchange, kind, payload))
        except SpoolError as failure:
            logger.error("an exchange is lost: %s", failure)
        except Exception:  # the boundary to the spool: whatever is wrong with it, the chat goes on
            logger.exception("an exchange is lost")
        self._lost += 1
        self._lost_at = self._clock()
        return "lost"

    async def _kept(self, entry: SpoolEntry) -> Literal["spooled"] | Outcome:
        try:
            await self._aside(self._spool.put, *entry[1:])
        except SpoolError as failure:
            return await self._stored(entry, failure)
        self._spooled += 1
        return "spooled"

    async def _stored(self, entry: SpoolEntry, failure: SpoolError) -> Outcome:
        """Carry it out at once, behind all that waits for its session.  Raises ``failure`` if the
        store does not take it either, and is not asked while it is known not to."""
        if self.pauses.committing(entry.key):
            raise failure
        try:
            async with TimeLimit(self._last_resort):
                await self._ping(entry.key)
                if not await self._caught_up(entry.key):
                    raise failure
                return await self._replay.at_once(entry)
        except (StoreError, TimeoutError):
            raise failure from None

    async def _ping(self, key: SessionKey) -> None:
        """Raises StoreError; after that, or no answer in time, none asks again for a moment."""
        try:
            await self._live.store.ping(key)
        except (StoreError, asyncio.CancelledError):
            self.pauses.late(key)
            raise

    async def _caught_up(self, key: SessionKey) -> bool:
        """Carry out what waits for a session: is nothing left?"""
        try:
            await self._replay.catch_up(key, self.pauses.back)
            count, _ = await self._aside(self._spool.weight, key)
        except SpoolError:
            return not self.waiting(key)  # as far as can be known
        return count == 0

    # Showing

    def waiting(self, key: SessionKey) -> bool:
        """Does something of this session wait?"""
        try:
            return self._spool.waiting(key)
        except SpoolError:
            return False

    async def load(self, key: SessionKey, ask: Ask) -> tuple[Snapshot, list[SpoolEntry]]:
        """The session, and what waits for it; ``ask`` is for the whole log.  Raises StoreError.

        An entry that is carried out while the store is asked may be in neither of the two: then
        both are asked again.
        """
        before = await self._entries(key)
        while True:
            snapshot = await self._live.store.load(key, ask)
            entries = await self._entries(key)
            if {entry.id for entry in before} <= {entry.id for entry in entries}:
                return snapshot, entries
            before = entries

    async def overlaid(
        self, snapshot: Snapshot, entries: Sequence[SpoolEntry], ask: Ask
    ) -> Snapshot:
        """The session as it will be."""
        for entry in entries:
            what = await self._legible(entry, snapshot)
            if what is None:
                continue
            if isinstance(what, Amendment):
                work = partial(amended, snapshot, what)
            else:
                work = partial(overlay, snapshot, what, ask)
            snapshot = await self._live.planner.run(len(snapshot.log), work)
        return snapshot

    async def _entries(self, key: SessionKey) -> list[SpoolEntry]:
        try:
            count, size = await self._aside(self._spool.weight, key)
            if count > SHOWN[0] or size > SHOWN[1]:
                raise StoreTimeout("more waits in the spool than can be shown in time")
            return await self._aside(self._spool.entries, key)
        except SpoolError:
            return []

    async def _legible(self, entry: SpoolEntry, snapshot: Snapshot) -> Commit | Amendment | None:
        try:
            return await self._live.meant(entry, snapshot)
        except msgspec.DecodeError:
            return None  # replay sets it aside
