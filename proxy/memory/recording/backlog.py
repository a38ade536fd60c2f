"""Puts exchanges into the spool, and overlays them on the snapshots that later requests load.

How they get from the spool into the store: see ``replay``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from proxy.memory.limit import TimeLimit
from proxy.memory.model import (
    Amendment,
    Commit,
    Exchange,
    LoadOptions,
    Outcome,
    SessionKey,
    Snapshot,
)
from proxy.memory.recording.async_spool import SpoolThreads
from proxy.memory.recording.availability import FailingSessions, PausedServers
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.overlay import overlay, with_amendment
from proxy.memory.recording.replay import Replay, ReplayContext, encode_payload
from proxy.memory.recording.spool import Kind, Spool, SpoolEntry, SpoolError
from proxy.memory.store import StoreError, StoreTimeout

logger = logging.getLogger(__name__)

OVERLAY_LIMITS = (200, 8 * 1024 * 1024)
"""Entries of a session, and their bytes, that are overlaid on a snapshot: more take too long."""

LOSS_SECONDS = 60.0
"""Seconds for which a loss is reported."""


class Tally(msgspec.Struct, frozen=True):
    """Counts of exchanges that the store did not record at once."""

    lost: int
    spooled: int
    replayed: int


class Backlog:
    """A spool and its store.

    ``live`` has the store timeouts of chats, ``long_timeout`` those of ``REPLAY_SECONDS``.
    ``last_resort`` is the seconds for writing an exchange that the spool cannot take to the store,
    together with all waiting entries of its session, and for reading what other clients changed
    since an entry was planned.
    """

    def __init__(
        self,
        spool: Spool,
        live: ReplayContext,
        long_timeout: ReplayContext,
        listeners: Listeners,
        last_resort: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._live, self._last_resort, self._clock = spool, live, last_resort, clock
        self._in_thread = SpoolThreads(spool)
        self._replay = Replay(
            spool,
            self._in_thread,
            live,
            long_timeout,
            listeners,
            last_resort,
            FailingSessions(clock),
        )
        self._spooled, self._lost, self._lost_at = 0, 0, -LOSS_SECONDS
        self.pauses = PausedServers(live.store.server_of, clock)
        """The parts of the store that neither requests nor replay use at the moment."""

    @property
    def tally(self) -> Tally:
        return Tally(self._lost, self._spooled, self._replay.replayed)

    @property
    def has_lost_recently(self) -> bool:
        """Whether an exchange was lost within the last ``LOSS_SECONDS``."""
        return self._clock() - self._lost_at < LOSS_SECONDS

    @property
    def slow(self) -> int:
        """The number of sessions too slow to replay within a chat's timeout."""
        return len(self._replay.slow)

    async def open(self) -> Mapping[str, int]:
        """Open the spool; the number of its entries for other stores, by store name.  Raises
        SpoolError."""
        await self._in_thread(self._spool.open, True)
        return await self._in_thread(self._spool.waiting_for_others)

    async def reopen(self) -> None:
        """Open the spool if it is not open or its file is gone.  Raises SpoolError."""
        if not self._spool.is_open:
            await self._in_thread(self._spool.open, True)

    async def close(self) -> None:
        """Stop replaying, which the next start continues, and close the spool."""
        await self._replay.close()
        await self._in_thread.close()

    async def replay(self) -> bool:
        """See ``Replay.all``; parts of the store that take an entry are resumed."""
        return await self._replay.all(self.pauses.resume)

    async def review(self) -> None:
        """See ``Replay.review``."""
        await self._replay.review()

    # Keeping

    async def put(
        self, key: SessionKey, exchange: str, kind: Kind, what: msgspec.Struct
    ) -> Literal["spooled", "lost"] | Outcome:
        """Spool ``what``, durable on return; what the spool cannot take is tried with the store.

        "lost" if neither takes it.
        """
        try:
            payload = await self._in_thread(encode_payload, what)
            return await self._spool_or_store(SpoolEntry(-1, key, exchange, kind, payload))
        except SpoolError as failure:
            logger.error("an exchange is lost: %s", failure)
        except Exception:  # the boundary to the spool: whatever is wrong with it, the chat goes on
            logger.exception("an exchange is lost")
        self._lost += 1
        self._lost_at = self._clock()
        return "lost"

    async def _spool_or_store(self, entry: SpoolEntry) -> Literal["spooled"] | Outcome:
        try:
            await self._in_thread(self._spool.put, *entry[1:])
        except SpoolError as failure:
            return await self._store_now(entry, failure)
        self._spooled += 1
        return "spooled"

    async def _store_now(self, entry: SpoolEntry, failure: SpoolError) -> Outcome:
        """Write an entry to the store at once, after all waiting entries of its session.  Raises
        ``failure`` if the store fails too, or commits to it are paused."""
        if self.pauses.commits_paused(entry.key):
            raise failure
        try:
            async with TimeLimit(self._last_resort):
                await self._ping(entry.key)
                if not await self._catch_up(entry.key):
                    raise failure
                return await self._replay.execute_now(entry)
        except (StoreError, TimeoutError):
            raise failure from None

    async def _ping(self, key: SessionKey) -> None:
        """Raises StoreError; after a failure or timeout commits are paused."""
        try:
            await self._live.store.ping(key)
        except (StoreError, asyncio.CancelledError):
            self.pauses.pause_commits(key)
            raise

    async def _catch_up(self, key: SessionKey) -> bool:
        """Replay the waiting entries of a session; True if none are left."""
        try:
            await self._replay.catch_up(key, self.pauses.resume)
            count, _ = await self._in_thread(self._spool.size_of, key)
        except SpoolError:
            return not self.has_waiting(key)  # as far as can be known
        return count == 0

    # Showing

    def has_waiting(self, key: SessionKey) -> bool:
        """Whether this session has waiting entries."""
        try:
            return self._spool.has_waiting(key)
        except SpoolError:
            return False

    async def load(
        self, key: SessionKey, options: LoadOptions
    ) -> tuple[Snapshot, list[SpoolEntry]]:
        """The session and its waiting entries; ``options`` is for the whole log.  Raises
        StoreError.

        An entry that is replayed during the load may be missing in both: then both are read again.
        """
        before = await self._entries(key)
        while True:
            snapshot = await self._live.store.load(key, options)
            entries = await self._entries(key)
            if {entry.id for entry in before} <= {entry.id for entry in entries}:
                return snapshot, entries
            before = entries

    async def with_waiting(
        self,
        key: SessionKey,
        snapshot: Snapshot,
        entries: Sequence[SpoolEntry],
        options: LoadOptions,
    ) -> Snapshot:
        """The session's snapshot with its waiting entries applied, of attempts with one key the
        last.  Raises StoreError."""
        attempts, stored = {options.idempotency_key: snapshot.attempt}, snapshot.last

        async def before(asked: LoadOptions) -> Snapshot:
            name = asked.idempotency_key
            if name not in attempts and stored is not None and snapshot.last is stored:
                attempts[name] = await self._as_attempt(key, stored, name)
            return msgspec.structs.replace(snapshot, attempt=attempts.get(name))

        for entry in entries:
            what = await self._decode(entry, before)
            if what is None:
                continue
            if isinstance(what, Amendment):
                work = partial(with_amendment, snapshot, what)
            else:
                own = msgspec.structs.replace(options, idempotency_key=what.idempotency_key)
                work = partial(overlay, await before(own), what, own)
            snapshot = await self._live.planner.run(key.tenant, len(snapshot.log), work)
            if isinstance(what, Commit):
                attempts[what.idempotency_key] = snapshot.attempt
        return msgspec.structs.replace(snapshot, attempt=attempts[options.idempotency_key])

    async def _as_attempt(
        self, key: SessionKey, last: Exchange, idempotency_key: str | None
    ) -> Exchange | None:
        """The store's last exchange if it was recorded under this key; a waiting retry of an
        earlier one comes too late.  Raises StoreError."""
        if idempotency_key is None or not last.has_idempotency_key:
            return None
        options = LoadOptions("", max_messages=1, idempotency_key=idempotency_key)
        attempt = (await self._live.store.load(key, options)).attempt
        return attempt if attempt is not None and attempt.id == last.id else None

    async def _entries(self, key: SessionKey) -> list[SpoolEntry]:
        try:
            count, size = await self._in_thread(self._spool.size_of, key)
            if count > OVERLAY_LIMITS[0] or size > OVERLAY_LIMITS[1]:
                raise StoreTimeout("more waits in the spool than can be shown in time")
            return await self._in_thread(self._spool.entries, key)
        except SpoolError:
            return []

    async def _decode(
        self, entry: SpoolEntry, before: Callable[[LoadOptions], Awaitable[Snapshot]]
    ) -> Commit | Amendment | None:
        try:
            return await self._live.decode(entry, before)
        except msgspec.DecodeError:
            return None  # replay sets it aside
