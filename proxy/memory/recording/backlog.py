"""What waits in the spool for its store: shown to later requests, and carried out in order.

Several workers share a spool.  Each keeps the order of a session, and an exchange counts once, so
that it does no harm if all of them replay it.

A session that cannot be replayed in the time of a chat is replayed beside all others, with a time
of its own, one such session after the other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple, TypeVar

import msgspec

from proxy.memory.limit import Limit
from proxy.memory.model import Amendment, Ask, Commit, Outcome, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.recording.amend import More
from proxy.memory.recording.availability import Pauses, Troubles, hashed
from proxy.memory.recording.commit import PLANNED_BYTES, Count, Deferred, settle
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.overlay import amended, overlay
from proxy.memory.recording.settling import Settling
from proxy.memory.recording.spool import Kind, Spool, SpoolEntry, SpoolError
from proxy.memory.store import Store, StoreError, StoreTimeout

logger = logging.getLogger(__name__)

T = TypeVar("T")

REPLAY_SECONDS = 30.0
"""What an entry may take that cannot be replayed in the time of a chat."""

AT_ONCE = 16
"""Entries of a session that are replayed before it is the others' turn."""

SESSIONS_AT_ONCE = 1000
"""Sessions with something to replay that are looked at together."""

SHOWN = (200, 8 * 1024 * 1024)
"""Entries of a session, and bytes of them, that a request can be shown: more take too long."""

LATELY = 60.0
"""Seconds for which a loss is told of."""

_KEPT = ("foreign", "unreadable")
"""What cannot be carried out, ever, and stays in quarantine."""

THREADS = 2
"""For the spool: others' work in threads must not delay what has to be durable."""


class Tally(msgspec.Struct):
    """What has become of exchanges that the store did not take at once."""

    lost: int = 0
    spooled: int = 0
    replayed: int = 0


class Means(NamedTuple):
    """With what an entry is carried out: a store, and what plans and settles over it."""

    store: Store
    planner: Planner
    settling: Settling


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
        counter: Callable[[str | None], Count],
        listeners: Listeners,
        last_resort: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._live, self._patient = spool, live, patient
        self._counter, self._listeners, self._last_resort = counter, listeners, last_resort
        self._threads, self._closed = ThreadPoolExecutor(THREADS, "spool"), False
        self._untidy = True
        """The spool's files may hold what was carried out: by now, or by a process that ended."""
        self._stuck: tuple[SpoolEntry, str] | None = None
        """What was carried out last and could not be removed, with its outcome."""
        self._beside: asyncio.Task[None] | None = None
        self._clock, self._lost_at = clock, -LATELY
        self.tally = Tally()
        self.pauses = Pauses(live.store.part_of, clock)
        """The parts of the store that are left alone, here and by requests."""
        self.slow = Troubles(clock)
        """Sessions that could not be replayed in the time of a chat."""

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
        if self._beside is not None:
            self._beside.cancel()
            await asyncio.gather(self._beside, return_exceptions=True)
        self._closed = True
        await asyncio.to_thread(self._spool.close)
        await asyncio.to_thread(self._threads.shutdown)

    async def _aside(self, work: Callable[..., T], *arguments: object) -> T:
        """The result of something that the spool does, which blocks.

        Raises SpoolError once this is closed.
        """
        if self._closed:
            raise SpoolError("the spool is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *arguments))

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
        self.tally.lost += 1
        self._lost_at = self._clock()
        return "lost"

    async def _kept(self, entry: SpoolEntry) -> Literal["spooled"] | Outcome:
        try:
            await self._aside(self._spool.put, *entry[1:])
        except SpoolError as failure:
            return await self._stored(entry, failure)
        self.tally.spooled += 1
        return "spooled"

    async def _stored(self, entry: SpoolEntry, failure: SpoolError) -> Outcome:
        """Carry it out at once, behind all that waits for its session.  Raises ``failure`` if the
        store does not take it either, and is not asked while it is known not to."""
        if self.pauses.committing(entry.key):
            raise failure
        try:
            async with Limit(self._last_resort):
                await self._ping(entry.key)
                if not await self._caught_up(entry.key):
                    raise failure
                outcome = await self._carry_out(entry, self._live)
        except (StoreError, TimeoutError):
            raise failure from None
        if outcome == "recorded":
            self._listeners.on_recorded(entry.key)
        return outcome

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
            while await self._replay_session(key, self._live, self.pauses.back):
                pass
            count, _ = await self._aside(self._spool.weight, key)
        except SpoolError:
            return not self.waiting(key)  # as far as can be known
        return count == 0

    @property
    def losing(self) -> bool:
        """Was an exchange lost lately?"""
        return self._clock() - self._lost_at < LATELY

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
            return await self._meant(entry, self._live, snapshot)
        except msgspec.DecodeError:
            return None  # replay sets it aside

    async def _meant(
        self, entry: SpoolEntry, means: Means, snapshot: Snapshot | None
    ) -> Commit | Amendment | None:
        """What an entry asks of the store, None if nothing any more; ``snapshot`` is all that is
        before it, None what the store has."""
        if entry.kind == "commit":
            return msgspec.json.decode(entry.payload, type=Commit)
        if entry.kind == "amendment":
            return msgspec.json.decode(entry.payload, type=Amendment)
        if entry.kind == "more":
            more = msgspec.json.decode(entry.payload, type=More)
            if snapshot is None:
                snapshot = await means.store.load(entry.key, more.ask)
            count = self._counter(more.exchange.model)
            size = len(more.answer.body) // PLANNED_BYTES
            return await means.planner.run(size, partial(more.amendment, snapshot, count))
        deferred = msgspec.json.decode(entry.payload, type=Deferred)
        if snapshot is None:
            snapshot = await means.store.load(entry.key, deferred.ask)
        count = self._counter(deferred.meta.exchange.model)
        return await settle(means.planner, entry.key, snapshot, deferred, count)

    # Replay

    async def replay(self, on_taken: Callable[[SessionKey], None]) -> bool:
        """Carry out what waits, in order; False if nothing was done.  Raises StoreError if nothing
        could be because the store is down, SpoolError.

        ``on_taken`` is told of the session of each entry that the store took, at once: it works
        again.

        A session whose entry the store refuses is left for later, so that it holds up no other, as
        are all of a part of the store that is away.
        """
        await self._start_over()
        if self._spool.idle():
            await self._tidy()
            return False
        away = await self._away()  # a backlog is not read for a store that is down
        progress, after = False, -1
        while heads := await self._aside(self._spool.heads, after, SESSIONS_AT_ONCE):
            for head in heads:
                progress |= await self._replay_head(head.key, away, on_taken)
            after = heads[-1].id
        if away and not progress:
            raise next(iter(away.values()))
        return progress

    async def _away(self) -> dict[str, StoreError]:
        """How parts of the store fail for which something waits.  Raises StoreError if all do."""
        parts = {self._live.store.part_of(key): key for key in self._spool.sessions()}
        failures = await asyncio.gather(*map(self._failure, parts.values()))
        away = {part: failure for part, failure in zip(parts, failures, strict=True) if failure}
        if away and len(away) == len(parts):
            raise next(iter(away.values()))
        return away

    async def _failure(self, key: SessionKey) -> StoreError | None:
        try:
            await self._live.store.ping(key)
        except StoreError as failure:
            return failure
        return None

    async def _replay_head(
        self, key: SessionKey, away: dict[str, StoreError], on_taken: Callable[[SessionKey], None]
    ) -> bool:
        """Carry out some of a session, unless its part of the store is away, or turns out to be."""
        part = self._live.store.part_of(key)
        if part in away:
            return False
        if key in self.slow:
            self._replay_beside(key, on_taken)
            return False
        try:
            return await self._replay_session(key, self._live, on_taken)
        except StoreError as failure:
            away[part] = failure
            return False

    async def _start_over(self) -> None:
        """Once the spool can be written again, carry out all that is still in it and remove it: the
        store knows what it has."""
        stuck = self._stuck
        if stuck is None:
            return
        with suppress(SpoolError):
            await self._remove(*stuck)
            await self._aside(self._spool.start_over)
            if self._stuck is stuck:
                self._stuck = None

    async def _tidy(self) -> None:
        """What was carried out may be erased in the store: the spool must not hold it still."""
        if self._untidy:
            await self._aside(self._spool.empty_log)
            self._untidy = False

    async def review(self) -> None:
        """Drop what is quarantined of sessions and people that were erased since: it is never
        committed again, where their mark would refuse it.  Raises StoreError, SpoolError.
        """
        for entry in await self._aside(self._spool.quarantined):
            if await self._live.store.erased(entry.subjects, entry.began):
                self._untidy = True
                await self._aside(self._spool.done, entry)

    def _replay_beside(self, key: SessionKey, on_taken: Callable[[SessionKey], None]) -> None:
        """Begin to replay a slow session, if none is being replayed and it is due."""
        if (self._beside is None or self._beside.done()) and not self.slow.pausing(key):
            work = self._replay_slow(key, on_taken)
            self._beside = asyncio.create_task(work, name="slow replay")

    async def _replay_slow(self, key: SessionKey, on_taken: Callable[[SessionKey], None]) -> None:
        try:
            async with asyncio.timeout(REPLAY_SECONDS):
                if await self._replay_session(key, self._patient, on_taken):
                    self.slow.worked(key)
        except (StoreError, SpoolError):
            pass  # of store or spool, not of this session: the next look comes soon
        except TimeoutError:
            self._is_slow(key, StoreTimeout(f"it took longer than {REPLAY_SECONDS:g} s"))

    async def _replay_session(
        self, key: SessionKey, means: Means, on_taken: Callable[[SessionKey], None]
    ) -> bool:
        """Carry out some entries of a session; whether there were any that could be."""
        progress = False
        for entry in await self._aside(self._spool.entries, key, AT_ONCE):
            if not await self._replay_one(entry, means, on_taken):
                return progress
            progress = True
        return progress

    async def _replay_one(
        self, entry: SpoolEntry, means: Means, on_taken: Callable[[SessionKey], None]
    ) -> bool:
        """Carry out one entry; False if the store is up and yet refuses it."""
        outcome: str
        try:
            outcome = await self._carry_out(entry, means)
        except msgspec.DecodeError:
            outcome = "unreadable"
        except StoreError as failure:
            await self._live.store.ping(entry.key)
            if isinstance(failure, StoreTimeout):
                await self._live.store.peek(entry.key)
                self._is_slow(entry.key, failure)
            return False
        except Exception:  # the boundary to the store: one bad entry must not hold up all others
            logger.exception("an exchange in the spool cannot be carried out")
            outcome = "unreadable"
        if outcome != "unreadable":
            on_taken(entry.key)
        await self._leave(entry, outcome)
        if outcome not in (*_KEPT, "erased"):
            self._listeners.on_recorded(entry.key)
        return True

    async def _leave(self, entry: SpoolEntry, outcome: str) -> None:
        """Be done with an entry.  One that cannot be removed must not hold up those behind it: they
        would wait in a spool that takes nothing new."""
        try:
            await self._remove(entry, outcome)
        except SpoolError as failure:
            await self._aside(self._spool.pass_over, entry)
            if self._stuck is None:
                logger.warning("what the store has taken stays in the spool for now: %s", failure)
            self._stuck = entry._replace(payload=b""), outcome

    async def _remove(self, entry: SpoolEntry, outcome: str) -> None:
        if outcome in _KEPT:
            await self._aside(self._spool.quarantine, entry, outcome)
            self._listeners.on_quarantine()
            return
        self._untidy = True
        await self._aside(self._spool.done, entry)
        self.tally.replayed += outcome != "erased"

    def _is_slow(self, key: SessionKey, failure: StoreError) -> None:
        logger.warning("session %s is replayed later, by itself: %s", hashed(key), failure)
        self.slow.failed(key, failure)

    async def _carry_out(self, entry: SpoolEntry, means: Means) -> Outcome:
        what = await self._meant(entry, means, None)
        if isinstance(what, Commit):
            return await means.settling.commit(entry.key, what, self._last_resort)
        seq = await means.store.amend(entry.key, what) if what is not None else None
        if seq is not None:
            self._listeners.on_edited(entry.key, (seq,))
        return "recorded"
