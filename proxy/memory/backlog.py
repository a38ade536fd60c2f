"""What waits in the spool for its store: shown to later requests, and carried out in order.

Several workers share a spool.  Each keeps the order of a session, and an exchange counts once, so
that it does no harm if all of them replay it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from proxy.memory.deferred import Deferred, settle
from proxy.memory.model import Amendment, Ask, Commit, SessionKey, Snapshot
from proxy.memory.overlay import overlay
from proxy.memory.planner import Planner
from proxy.memory.spool import Kind, Spool, SpoolEntry, SpoolError
from proxy.memory.store import Store, StoreError
from proxy.memory.transcript import Count

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What has become of exchanges that the store did not take at once."""

    lost: int = 0
    spooled: int = 0
    replayed: int = 0


class Backlog:
    """A spool and the store that it is for.

    ``on_quarantine`` is told of each entry set aside, ``on_recorded`` of each session written to.
    """

    def __init__(
        self,
        store: Store,
        spool: Spool,
        planner: Planner,
        counter: Callable[[str | None], Count],
        on_quarantine: Callable[[], None],
        on_recorded: Callable[[SessionKey], None],
    ) -> None:
        self._store, self._spool, self._planner = store, spool, planner
        self._counter, self._on_quarantine = counter, on_quarantine
        self._on_recorded = on_recorded
        self._untidy = True
        """The spool's files may hold what was carried out: by now, or by a process that ended."""
        self.tally = Tally()

    async def put(
        self, key: SessionKey, exchange: str, kind: Kind, what: msgspec.Struct
    ) -> Literal["spooled", "lost"]:
        """Keep something for later; durable on return unless it is lost."""
        try:
            payload = msgspec.json.encode(what)
            await asyncio.to_thread(self._spool.put, key, exchange, kind, payload)
        except SpoolError as failure:
            logger.error("an exchange is lost: %s", failure)
        except Exception:  # the boundary to the spool: whatever is wrong with it, the chat goes on
            logger.exception("an exchange is lost")
        else:
            self.tally.spooled += 1
            return "spooled"
        self.tally.lost += 1
        return "lost"

    # Showing

    def waiting(self, key: SessionKey) -> bool:
        """Does something of this session wait?"""
        try:
            return self._spool.waiting(key)
        except SpoolError:
            return False

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        """The session as it will be; ``ask`` is for the whole log.  Raises StoreError.

        An entry that is carried out while the store is asked may be in neither of the two: then
        both are asked again.
        """
        before = await self._entries(key)
        while True:
            snapshot = await self._store.load(key, ask)
            entries = await self._entries(key)
            if {entry.id for entry in before} <= {entry.id for entry in entries}:
                break
            before = entries
        for entry in entries:
            commit = await self._legible(entry, snapshot)
            if commit is not None:
                snapshot = overlay(snapshot, commit, ask)
        return snapshot

    async def _entries(self, key: SessionKey) -> list[SpoolEntry]:
        try:
            return await asyncio.to_thread(self._spool.entries, key)
        except SpoolError:
            return []

    async def _legible(self, entry: SpoolEntry, snapshot: Snapshot) -> Commit | None:
        try:
            return await self._commit_of(entry, snapshot)
        except msgspec.DecodeError:
            return None  # replay sets it aside

    async def _commit_of(self, entry: SpoolEntry, snapshot: Snapshot | None) -> Commit | None:
        if entry.kind == "commit":
            return msgspec.json.decode(entry.payload, type=Commit)
        if entry.kind == "amendment":
            return None
        deferred = msgspec.json.decode(entry.payload, type=Deferred)
        if snapshot is None:
            snapshot = await self._store.load(entry.key, deferred.ask)
        count = self._counter(deferred.occasion.exchange.model)
        return await settle(self._planner, entry.key, snapshot, deferred, count)

    # Replay

    async def replay(self, on_taken: Callable[[], None]) -> bool:
        """Carry out what waits, in order; False if nothing was done.  Raises StoreError if the
        store is down, SpoolError.

        ``on_taken`` is told of each entry that the store took, at once: it works again.

        A session whose entry the store refuses is left for later, so that it holds up no other.
        """
        if self._spool.idle():
            await self._tidy()
            return False
        await self._store.ping()  # a backlog is not read for a store that is down
        progress = False
        refused: set[SessionKey] = set()
        for entry in await asyncio.to_thread(self._spool.entries):
            if entry.key in refused:
                continue
            if await self._replay_one(entry, on_taken):
                progress = True
            else:
                refused.add(entry.key)
        return progress

    async def _tidy(self) -> None:
        """What was carried out may be erased in the store: the spool must not hold it still."""
        if self._untidy:
            await asyncio.to_thread(self._spool.empty_log)
            self._untidy = False

    async def review(self) -> None:
        """Drop what is quarantined of sessions and people that were erased since: it is never
        committed again, where their mark would refuse it.  Raises StoreError, SpoolError.
        """
        for aside in await asyncio.to_thread(self._spool.asides):
            if await self._store.erased(aside.subjects, aside.began):
                self._untidy = True
                await asyncio.to_thread(self._spool.done, aside)

    async def _replay_one(self, entry: SpoolEntry, on_taken: Callable[[], None]) -> bool:
        """Carry out one entry; False if the store is up and yet refuses it."""
        try:
            outcome = await self._carry_out(entry)
        except msgspec.DecodeError:
            outcome = "unreadable"
        except StoreError:
            await self._store.ping()
            return False
        except Exception:  # the boundary to the store: one bad entry must not hold up all others
            logger.exception("an exchange in the spool cannot be carried out")
            outcome = "unreadable"
        if outcome != "unreadable":
            on_taken()
        if outcome in ("foreign", "unreadable"):
            await asyncio.to_thread(self._spool.quarantine, entry, outcome)
            self._on_quarantine()
            return True
        self._untidy = True
        await asyncio.to_thread(self._spool.done, entry)
        if outcome != "erased":
            self.tally.replayed += 1
            self._on_recorded(entry.key)
        return True

    async def _carry_out(self, entry: SpoolEntry) -> str:
        if entry.kind == "amendment":
            amendment = msgspec.json.decode(entry.payload, type=Amendment)
            await self._store.amend(entry.key, amendment)
            return "recorded"
        commit = await self._commit_of(entry, None)
        return "recorded" if commit is None else await self._store.commit(entry.key, commit)
