"""Carrying out what waits in the spool for its store, in order.

Several workers share a spool.  Each keeps the order of a session, and an exchange counts once, so
that it does no harm if all of them replay it.

A session that cannot be replayed in the time of a chat is replayed beside all others, with a time
of its own, one such session after the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from proxy.memory.model import Amendment, Commit, Outcome, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.recording.amend import More
from proxy.memory.recording.aside import Aside
from proxy.memory.recording.availability import Troubles, hashed
from proxy.memory.recording.commit import PLANNED_BYTES, Count, Deferred, settle
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.settling import Settling
from proxy.memory.recording.spool import Spool, SpoolEntry, SpoolError
from proxy.memory.store import Store, StoreError, StoreTimeout

logger = logging.getLogger(__name__)

REPLAY_SECONDS = 30.0
"""What an entry may take that cannot be replayed in the time of a chat."""

AT_ONCE = 16
"""Entries of a session that are replayed before it is the others' turn."""

SESSIONS_AT_ONCE = 1000
"""Sessions with something to replay that are looked at together."""

_KEPT = ("foreign", "unreadable")
"""What cannot be carried out, ever, and stays in quarantine."""

OnTaken = Callable[[SessionKey], None]
"""Called at once with the session of each entry that the store took: it works again."""


class Means(NamedTuple):
    """With what an entry is carried out: a store, what plans and settles over it, and what counts
    tokens as a model does."""

    store: Store
    planner: Planner
    settling: Settling
    counter: Callable[[str | None], Count]

    async def meant(
        self, entry: SpoolEntry, snapshot: Snapshot | None = None
    ) -> Commit | Amendment | None:
        """What an entry asks of the store, None if nothing any more.  Raises msgspec.DecodeError,
        StoreError.

        ``snapshot`` is all that is before it, None what the store has.
        """
        if entry.kind == "commit":
            return msgspec.json.decode(entry.payload, type=Commit)
        if entry.kind == "amendment":
            return msgspec.json.decode(entry.payload, type=Amendment)
        if entry.kind == "more":
            more = msgspec.json.decode(entry.payload, type=More)
            if snapshot is None:
                snapshot = await self.store.load(entry.key, more.ask)
            count = self.counter(more.exchange.model)
            size = len(more.answer.body) // PLANNED_BYTES
            return await self.planner.run(size, partial(more.amendment, snapshot, count))
        deferred = msgspec.json.decode(entry.payload, type=Deferred)
        if snapshot is None:
            snapshot = await self.store.load(entry.key, deferred.ask)
        count = self.counter(deferred.meta.exchange.model)
        return await settle(self.planner, entry.key, snapshot, deferred, count)


class Replay:
    """``live`` is for the time that a chat has, ``patient`` for ``REPLAY_SECONDS``.

    What others have changed since an entry was planned is read for ``patience`` seconds.
    """

    def __init__(
        self,
        spool: Spool,
        aside: Aside,
        live: Means,
        patient: Means,
        listeners: Listeners,
        patience: float,
        slow: Troubles,
    ) -> None:
        self._spool, self._aside, self._live, self._patient = spool, aside, live, patient
        self._listeners, self._patience = listeners, patience
        self._untidy = True
        """The spool's files may hold what was carried out: by now, or by a process that ended."""
        self._stuck: tuple[SpoolEntry, str] | None = None
        """What was carried out last and could not be removed, with its outcome."""
        self._beside: asyncio.Task[None] | None = None
        self.slow = slow
        """Sessions that could not be replayed in the time of a chat."""
        self.replayed = 0
        """Exchanges that the store has taken, or had already."""

    async def close(self) -> None:
        """Leave the rest for the next start."""
        if self._beside is not None:
            self._beside.cancel()
            await asyncio.gather(self._beside, return_exceptions=True)

    async def all(self, on_taken: OnTaken) -> bool:
        """Carry out what waits, in order; False if nothing was done.  Raises StoreError if nothing
        could be because the store is down, SpoolError.

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
                progress |= await self._head(head.key, away, on_taken)
            after = heads[-1].id
        if away and not progress:
            raise next(iter(away.values()))
        return progress

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

    async def review(self) -> None:
        """Drop what is quarantined of sessions and people that were erased since: it is never
        committed again, where their mark would refuse it.  Raises StoreError, SpoolError.
        """
        for entry in await self._aside(self._spool.quarantined):
            if await self._live.store.erased(entry.subjects, entry.began):
                self._untidy = True
                await self._aside(self._spool.done, entry)

    # One session

    async def _head(self, key: SessionKey, away: dict[str, StoreError], on_taken: OnTaken) -> bool:
        """Carry out some of a session, unless its part of the store is away, or turns out to be."""
        part = self._live.store.part_of(key)
        if part in away:
            return False
        if key in self.slow:
            self._begin_beside(key, on_taken)
            return False
        try:
            return await self._some(key, self._live, on_taken)
        except StoreError as failure:
            away[part] = failure
            return False

    def _begin_beside(self, key: SessionKey, on_taken: OnTaken) -> None:
        """Begin to replay a slow session, if none is being replayed and it is due."""
        if (self._beside is None or self._beside.done()) and not self.slow.pausing(key):
            self._beside = asyncio.create_task(self._slowly(key, on_taken), name="slow replay")

    async def _slowly(self, key: SessionKey, on_taken: OnTaken) -> None:
        try:
            async with asyncio.timeout(REPLAY_SECONDS):
                if await self._some(key, self._patient, on_taken):
                    self.slow.worked(key)
        except (StoreError, SpoolError):
            pass  # of store or spool, not of this session: the next look comes soon
        except TimeoutError:
            self._is_slow(key, StoreTimeout(f"it took longer than {REPLAY_SECONDS:g} s"))

    def _is_slow(self, key: SessionKey, failure: StoreError) -> None:
        logger.warning("session %s is replayed later, by itself: %s", hashed(key), failure)
        self.slow.failed(key, failure)

    async def catch_up(self, key: SessionKey, on_taken: OnTaken) -> None:
        """Carry out what waits for a session, as far as can be.  Raises StoreError, SpoolError."""
        while await self._some(key, self._live, on_taken):
            pass

    async def _some(self, key: SessionKey, means: Means, on_taken: OnTaken) -> bool:
        """Carry out some entries of a session; whether there were any that could be."""
        progress = False
        for entry in await self._aside(self._spool.entries, key, AT_ONCE):
            if not await self._one(entry, means, on_taken):
                return progress
            progress = True
        return progress

    # One entry

    async def _one(self, entry: SpoolEntry, means: Means, on_taken: OnTaken) -> bool:
        """Carry out one entry; False if the store is up and yet refuses it."""
        outcome: str
        try:
            outcome = await self._carried_out(entry, means)
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

    async def at_once(self, entry: SpoolEntry) -> Outcome:
        """What becomes of something that is not in the spool.  Raises StoreError."""
        outcome = await self._carried_out(entry, self._live)
        if outcome == "recorded":
            self._listeners.on_recorded(entry.key)
        return outcome

    async def _carried_out(self, entry: SpoolEntry, means: Means) -> Outcome:
        what = await means.meant(entry)
        if isinstance(what, Commit):
            return await means.settling.commit(entry.key, what, self._patience)
        seq = await means.store.amend(entry.key, what) if what is not None else None
        if seq is not None:
            self._listeners.on_edited(entry.key, (seq,))
        return "recorded"

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
        self.replayed += outcome != "erased"
