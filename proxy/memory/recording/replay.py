"""Replays the spool: writes its entries to their store, in order.

Several workers share a spool.  Each keeps the order of a session, and an exchange counts once, so
that it does no harm if all of them replay it.

A session that is too slow for a chat's timeout is replayed in a task of its own with a longer one,
one such session at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from proxy.chat import jsontext
from proxy.memory.model import Amendment, Commit, Draft, LoadOptions, Outcome, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.recording.amend import ExtendedAnswer
from proxy.memory.recording.async_spool import SpoolThreads
from proxy.memory.recording.availability import FailingSessions, session_hash
from proxy.memory.recording.commit import (
    PLANNED_BYTES,
    Count,
    Deferred,
    SpooledMessage,
    plan_deferred,
)
from proxy.memory.recording.concurrent_commit import CommitSettler
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.spool import Kind, Spool, SpoolEntry, SpoolError
from proxy.memory.store import Store, StoreError, StoreTimeout

logger = logging.getLogger(__name__)

REPLAY_SECONDS = 30.0
"""The timeout of an entry of a session that is too slow for a chat's timeout."""

ENTRIES_PER_TURN = 16
"""Entries of a session that are replayed before it is the turn of the next session."""

SESSIONS_AT_ONCE = 1000
"""Sessions with waiting entries that are read from the spool at once."""

_QUARANTINED = ("foreign", "unreadable")
"""Outcomes of entries that can never be replayed and stay in quarantine."""

_LISTS: Mapping[type[msgspec.Struct], str] = {Commit: "drafts", Deferred: "messages"}
"""The long field of each kind of payload."""

OnTaken = Callable[[SessionKey], None]
"""Called with the session of each entry as soon as the store has taken it."""


def encode_payload(what: msgspec.Struct) -> bytes:
    """The payload of a spool entry.  Messages one by one, here and below: thousands at once would
    hold up all streams, whichever thread did it."""
    name = _LISTS.get(type(what))
    return msgspec.json.encode(what) if name is None else jsontext.encode_by_item(what, name)


def decode_payload(kind: Kind, payload: bytes) -> Commit | Amendment | ExtendedAnswer | Deferred:
    """Raises msgspec.DecodeError."""
    if kind == "commit":
        return jsontext.decode_by_item(payload, Commit, "drafts", Draft)
    if kind == "amendment":
        return msgspec.json.decode(payload, type=Amendment)
    if kind == "more":
        return msgspec.json.decode(payload, type=ExtendedAnswer)
    return jsontext.decode_by_item(payload, Deferred, "messages", SpooledMessage)


class ReplayContext(NamedTuple):
    """What replaying an entry needs: the store, its planner and settler, and a token counter for
    each model."""

    store: Store
    planner: Planner
    settling: CommitSettler
    counter: Callable[[str | None], Count]

    async def decode(
        self, entry: SpoolEntry, before: Callable[[LoadOptions], Awaitable[Snapshot]] | None = None
    ) -> Commit | Amendment | None:
        """What to write for an entry; None if there is nothing to write any more.

        ``before`` returns the session before the entry; None: load it.  Raises msgspec.DecodeError,
        StoreError.
        """
        size = len(entry.payload) // PLANNED_BYTES
        what = await self.planner.run(
            entry.key.tenant, size, partial(decode_payload, entry.kind, entry.payload)
        )
        if isinstance(what, (Commit, Amendment)):
            return what
        load = before or partial(self.store.load, entry.key)
        snapshot = await load(what.load_options)
        if isinstance(what, ExtendedAnswer):
            count = self.counter(what.exchange.model)
            size = len(what.answer.body) // PLANNED_BYTES
            amendment = partial(what.amendment, snapshot, count)
            return await self.planner.run(entry.key.tenant, size, amendment)
        count = self.counter(what.meta.exchange.model)
        return await plan_deferred(self.planner, entry.key, snapshot, what, count)


class Replay:
    """``live`` has the store timeouts of chats, ``long_timeout`` those of ``REPLAY_SECONDS``.

    ``timeout``: seconds for reading what other clients changed since an entry was planned.
    """

    def __init__(
        self,
        spool: Spool,
        threads: SpoolThreads,
        live: ReplayContext,
        long_timeout: ReplayContext,
        listeners: Listeners,
        timeout: float,
        slow: FailingSessions,
    ) -> None:
        self._spool, self._in_thread = spool, threads
        self._live, self._long_timeout = live, long_timeout
        self._listeners, self._timeout = listeners, timeout
        self._log_has_deleted = True
        """The spool's log may still hold deleted entries, also of a process that ended."""
        self._stuck: tuple[SpoolEntry, str] | None = None
        """The last entry that was replayed but could not be deleted, with its outcome."""
        self._slow_task: asyncio.Task[None] | None = None
        self.slow = slow
        """Sessions too slow to replay within a chat's timeout."""
        self.replayed = 0
        """The number of exchanges that the store took or had already."""

    async def close(self) -> None:
        """Stop; the next start continues."""
        if self._slow_task is not None:
            self._slow_task.cancel()
            await asyncio.gather(self._slow_task, return_exceptions=True)

    async def all(self, on_taken: OnTaken) -> bool:
        """Replay all entries, in order; False if none was.  Raises SpoolError, and StoreError if
        the whole store is down.

        A session whose entry the store refuses is left for later, so that it holds up no other, and
        so are all sessions on a server that is down.
        """
        await self._retry_stuck()
        if self._spool.is_idle():
            await self._empty_log()
            return False
        away = await self._failures_by_part()  # a backlog is not read for a store that is down
        progress, after = False, -1
        while heads := await self._in_thread(
            self._spool.oldest_by_session, after, SESSIONS_AT_ONCE
        ):
            for head in heads:
                progress |= await self._replay_session(head.key, away, on_taken)
            after = heads[-1].id
        if away and not progress:
            raise next(iter(away.values()))
        return progress

    async def _retry_stuck(self) -> None:
        """Once the spool can be written again, replay all entries still in it and delete them: the
        store ignores those that it has."""
        stuck = self._stuck
        if stuck is None:
            return
        with suppress(SpoolError):
            await self._remove(*stuck)
            await self._in_thread(self._spool.unskip_all)
            if self._stuck is stuck:
                self._stuck = None

    async def _empty_log(self) -> None:
        """Remove deleted entries from the spool's log: they may have been erased in the store."""
        if self._log_has_deleted:
            await self._in_thread(self._spool.empty_log)
            self._log_has_deleted = False

    async def _failures_by_part(self) -> dict[str, StoreError]:
        """The errors of those parts of the store that have waiting entries and are down.  Raises
        StoreError if all of them are."""
        parts = {self._live.store.server_of(key): key for key in self._spool.sessions()}
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
        """Delete quarantined entries of sessions and users that were erased since: these are never
        replayed, so that their erasure mark would not catch them.  Raises StoreError, SpoolError.
        """
        for entry in await self._in_thread(self._spool.quarantined):
            if await self._live.store.is_erased(entry.subjects, entry.began):
                self._log_has_deleted = True
                await self._in_thread(self._spool.remove, entry)

    # One session

    async def _replay_session(
        self, key: SessionKey, away: dict[str, StoreError], on_taken: OnTaken
    ) -> bool:
        """Replay some entries of a session, unless its part of the store is down."""
        part = self._live.store.server_of(key)
        if part in away:
            return False
        if key in self.slow:
            self._start_slow_replay(key, on_taken)
            return False
        try:
            return await self._replay_batch(key, self._live, on_taken)
        except StoreError as failure:
            away[part] = failure
            return False

    def _start_slow_replay(self, key: SessionKey, on_taken: OnTaken) -> None:
        """Start replaying a slow session if it is due and no other one is being replayed."""
        if (self._slow_task is None or self._slow_task.done()) and not self.slow.pause_cause(key):
            work = self._replay_slow(key, on_taken)
            self._slow_task = asyncio.create_task(work, name="slow replay")

    async def _replay_slow(self, key: SessionKey, on_taken: OnTaken) -> None:
        try:
            async with asyncio.timeout(REPLAY_SECONDS):
                if await self._replay_batch(key, self._long_timeout, on_taken):
                    self.slow.mark_recovered(key)
        except (StoreError, SpoolError):
            pass  # of store or spool, not of this session: the next look comes soon
        except TimeoutError:
            self._mark_slow(key, StoreTimeout(f"it took longer than {REPLAY_SECONDS:g} s"))

    def _mark_slow(self, key: SessionKey, failure: StoreError) -> None:
        logger.warning("session %s is replayed later, by itself: %s", session_hash(key), failure)
        self.slow.mark_failed(key, failure)

    async def catch_up(self, key: SessionKey, on_taken: OnTaken) -> None:
        """Replay the entries of a session as far as possible.  Raises StoreError, SpoolError."""
        while await self._replay_batch(key, self._live, on_taken):
            pass

    async def _replay_batch(
        self, key: SessionKey, context: ReplayContext, on_taken: OnTaken
    ) -> bool:
        """Replay some entries of a session; False if none could be."""
        progress = False
        for entry in await self._in_thread(self._spool.entries, key, ENTRIES_PER_TURN):
            if not await self._replay_entry(entry, context, on_taken):
                return progress
            progress = True
        return progress

    # One entry

    async def _replay_entry(
        self, entry: SpoolEntry, context: ReplayContext, on_taken: OnTaken
    ) -> bool:
        """Replay one entry; False if the store is up and yet refuses it."""
        outcome: str
        try:
            outcome = await self._execute(entry, context)
        except msgspec.DecodeError:
            outcome = "unreadable"
        except StoreError as failure:
            await self._live.store.ping(entry.key)
            if isinstance(failure, StoreTimeout):
                await self._live.store.peek(entry.key)
                self._mark_slow(entry.key, failure)
            return False
        except Exception:  # the boundary to the store: one bad entry must not hold up all others
            logger.exception("an exchange in the spool cannot be carried out")
            outcome = "unreadable"
        if outcome != "unreadable":
            on_taken(entry.key)
        await self._finish_entry(entry, outcome)
        if outcome not in (*_QUARANTINED, "erased"):
            self._listeners.on_recorded(entry.key)
        return True

    async def execute_now(self, entry: SpoolEntry) -> Outcome:
        """Write an entry that is not in the spool to the store.  Raises StoreError."""
        outcome = await self._execute(entry, self._live)
        if outcome == "recorded":
            self._listeners.on_recorded(entry.key)
        return outcome

    async def _execute(self, entry: SpoolEntry, context: ReplayContext) -> Outcome:
        what = await context.decode(entry)
        if isinstance(what, Commit):
            return await context.settling.commit(entry.key, what, self._timeout)
        seq = await context.store.amend(entry.key, what) if what is not None else None
        if seq is not None:
            self._listeners.on_edited(entry.key, (seq,))
        return "recorded"

    async def _finish_entry(self, entry: SpoolEntry, outcome: str) -> None:
        """Remove an entry.  One that cannot be removed is skipped, so that those after it do not
        wait in a spool that may be full."""
        try:
            await self._remove(entry, outcome)
        except SpoolError as failure:
            await self._in_thread(self._spool.skip, entry)
            if self._stuck is None:
                logger.warning("what the store has taken stays in the spool for now: %s", failure)
            self._stuck = entry._replace(payload=b""), outcome

    async def _remove(self, entry: SpoolEntry, outcome: str) -> None:
        if outcome in _QUARANTINED:
            await self._in_thread(self._spool.quarantine, entry, outcome)
            self._listeners.on_quarantine()
            return
        self._log_has_deleted = True
        await self._in_thread(self._spool.remove, entry)
        self.replayed += outcome != "erased"
