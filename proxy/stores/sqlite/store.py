"""SQLiteStore: all memory in one file, for any number of processes on one host; SQLiteMemory: in
RAM.

It is SQLite's own database in memory and no file in RAM: nobody else can open it, and it is gone
however the process ends.  All is done in one thread: connections that share such a database lock
each other out of its tables.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection

from msgspec.structs import replace

from proxy.memory.archive import Message, OnProgress, Revision, SessionArchive, do_nothing
from proxy.memory.items import Change, Item, ItemOwner, Namespace, Place
from proxy.memory.model import Amendment, Ask, Commit, Outcome, SessionKey, Snapshot
from proxy.memory.store import StoreError, StoreTimeout
from proxy.recall.index import IndexBatch, IndexLookup, Owner
from proxy.stores.common.history import counts_of
from proxy.stores.common.known_logs import CachedLog, LastLoad
from proxy.stores.common.known_passages import CachedPassages
from proxy.stores.common.steps import CommitStep, commit_steps, revision_steps
from proxy.stores.sqlite import archive as sqlite_archive
from proxy.stores.sqlite import items as sqlite_items
from proxy.stores.sqlite import marks as sqlite_marks
from proxy.stores.sqlite import read as sqlite_read
from proxy.stores.sqlite import restore as sqlite_restore
from proxy.stores.sqlite import revise as sqlite_revise
from proxy.stores.sqlite import summaries as sqlite_summaries
from proxy.stores.sqlite import waste as sqlite_waste
from proxy.stores.sqlite import work as sqlite_work
from proxy.stores.sqlite import write as sqlite_write
from proxy.stores.sqlite.file import (
    SQLiteFile,
    erases,
    erases_texts,
    lists,
    pages,
    reads,
    without_time,
    writes,
    writes_beside,
    writes_later,
)
from proxy.stores.sqlite.index import reading as index_reading
from proxy.stores.sqlite.index import vectors as index_vectors
from proxy.stores.sqlite.index import writing as index_writing
from proxy.stores.sqlite.known.changes import Era
from proxy.stores.sqlite.schema import migrate
from proxy.stores.sqlite.worker import Running, T, Turn, Worker

ATTEMPTS = 3
"""Times that a step of a restore is tried again."""

MANY = 200
"""Messages from which on writing them takes so long that nobody shares the transaction."""


class SQLiteStore(SQLiteFile):
    """See :class:`proxy.stores.open.Backend`.

    ``reads`` is what a chat waits for, ``lists`` what people and the background read; after
    ``erases`` nothing of what was removed is in the files any more; ``writes_beside`` changes
    nothing that is known; ``writes_later`` neither, gives way to what a chat waits for, and is
    synced with the next of it.
    """

    # Memory

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        era, known, logs = self._changes.era(), self._logs.of(key), self._logs
        if era and known and known.seen and known.seen.era is era and known.seen.ask == ask:
            return known.seen.snapshot or Snapshot()
        now, logs_era, writes = self._clock(), logs.era, logs.writes
        if ask.whole:
            known = None
        work = partial(sqlite_read.load, now=now, key=key, ask=ask, known=known)
        snapshot, learned = await self._read(work)
        if not ask.whole:
            if learned is not None:
                still = era if writes == logs.writes else None
                learned = _seen(learned, ask, snapshot, still)
            logs.put(key, learned, logs_era)
        return snapshot

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        outcome: Outcome = "recorded"
        try:
            for step in commit_steps(commit):
                large = isinstance(step, CommitStep) or len(step.drafts) > MANY
                writing = partial(sqlite_write.commit, commit=step)
                outcome = await self._written(key, writing, "large" if large else "soon")
                if outcome != "recorded":
                    break
            return outcome
        finally:
            if commit.superseded or commit.activated or commit.idempotency_key:
                self._passages.changed(key)

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        try:
            return await self._written(key, partial(sqlite_write.amend, amendment=amendment))
        finally:
            if amendment.edited:
                self._passages.changed(key)

    async def _written(self, key: SessionKey, write: Callable[..., T], turn: Turn = "soon") -> T:
        """Write to a session, and look in the same transaction at what the next load would find."""
        now, era, known, learned = self._clock(), self._logs.era, self._logs.of(key), None
        this = self._newest[key] = object()

        def work(connection: Connection) -> tuple[T, CachedLog | None]:
            result = write(connection, now, key)
            # Of several at once the last one finds what all have written.
            last = self._newest.get(key) is this
            return result, self._look_again(connection, now, key, known) if last else None

        try:
            result, learned = await self._write_kept(work, turn)
            return result
        finally:
            self._logs.written(key, learned, era)
            if self._newest.get(key) is this:
                del self._newest[key]

    def _look_again(
        self, connection: Connection, now: float, key: SessionKey, known: CachedLog | None
    ) -> CachedLog | None:
        if known is None or known.seen is None:
            return None
        ask = known.seen.ask
        try:
            found = sqlite_read.since(connection, now, key, ask, known)
        # A boundary: what cannot be looked at must not undo what has been written.
        except Exception:  # noqa: BLE001
            return None
        if found is None or found[1] is None:
            return None
        return _seen(found[1], ask, found[0], self._changes.writing)

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        era, kept = self._changes.era(), self._passages.era
        stamp = (era, user)
        known = {name: self._known_at(SessionKey(tenant, name), stamp) for name in places}
        missing = {name: known[name].lacks(seqs) for name, seqs in places.items()}
        missing = {name: seqs for name, seqs in missing.items() if seqs}
        read, lasting = await self._read_passages(tenant, user, missing) if missing else ({}, ())
        for name in lasting if era else ():
            theirs = {seq: message for (session, seq), message in read.items() if session == name}
            self._passages.put(SessionKey(tenant, name), known[name].merged_with(theirs), kept)
        for name, seqs in places.items():
            read |= known[name].of(name, seqs)
        return read

    def _known_at(self, key: SessionKey, stamp: object) -> CachedPassages:
        """What is known of a session at this stamp, an era in which ``user`` may read it."""
        known = self._passages.of(key)
        return known if known.stamp == stamp else CachedPassages(stamp)

    bodies, wires = reads(sqlite_read.bodies), reads(sqlite_read.wires)
    _read_passages = reads(sqlite_read.passages, single=True)

    # Summaries

    summaries = reads(sqlite_summaries.versions)
    put_summary = writes(sqlite_summaries.put)
    drop_summaries = erases(sqlite_summaries.drop)
    stall = writes(sqlite_summaries.stall)

    # Queue

    enqueue = writes_beside(without_time(sqlite_work.enqueue))
    waiting = lists(without_time(sqlite_work.waiting))
    asked_for = lists(without_time(sqlite_work.asked_for))
    claim = writes_beside(without_time(sqlite_work.claim))
    extend = writes_beside(without_time(sqlite_work.extend))
    finish = writes_beside(without_time(sqlite_work.finish))
    put_off = writes_beside(without_time(sqlite_work.put_off))

    # Erasures

    mark = writes(without_time(sqlite_marks.mark))
    unmark = writes(without_time(sqlite_marks.unmark))
    erased = reads(sqlite_marks.erased)

    # Archive

    session = lists(sqlite_archive.session, single=True)
    tenants = lists(sqlite_archive.tenants)
    sessions = pages(sqlite_archive.sessions)
    messages = pages(sqlite_archive.messages, single=True)
    message = lists(sqlite_archive.message)
    lines = pages(sqlite_archive.lines)
    exchange = lists(sqlite_archive.exchange)
    exchanges = lists(sqlite_archive.exchanges)
    delete = erases_texts(sqlite_archive.delete)

    async def move(self, old: str, new: str, on_progress: OnProgress = do_nothing) -> int:
        """The sessions move at once; what takes long is to remove their indexes."""
        moving = partial(sqlite_archive.move, now=self._clock(), old=old, new=new)
        return await self._erase_texts(moving, lambda moved: on_progress(moved, moved))

    _clear_some = writes(sqlite_waste.clear_some)

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """What it lists are the sessions themselves."""
        return ()

    async def clear(self, tenant: str, user: str) -> None:
        await self._by_steps(lambda: self._clear_some(tenant, user))
        await self._erase_texts(lambda c: sqlite_restore.cancel_all(c, tenant, user))

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        now = self._clock()
        # What is edited and what was said of the session is not kept, like what is removed.
        erasing = revision.edited or revision.removed or revision.details
        run = self._erase_texts if erasing else self._write
        *ahead, last = revision_steps(revision)
        for step in ahead:
            switching = partial(sqlite_revise.revise, now=now, key=key, revision=step)
            if not await self._write_large(switching):
                return False
        return await run(partial(sqlite_revise.revise, now=now, key=key, revision=last))

    async def restore(
        self, key: SessionKey, archived: SessionArchive, since: float | None = None
    ) -> bool:
        now, parts = self._clock(), sqlite_restore.parts_of(archived)
        if len(parts) <= 1:
            write = self._write_large if len(archived.lines) > MANY else self._write
            whole = partial(
                sqlite_restore.restore, now=now, key=key, archived=archived, since=since
            )
            return await write(self._with_room_check(whole))
        name = await self._write(lambda c: sqlite_restore.stage(c, now, key, archived))
        if name is None:
            return False
        known = await asyncio.to_thread(counts_of, archived)
        brought = sqlite_restore.StagedSession(name, archived, known, parts, since)
        try:
            for step in range(len(parts)):
                bringing = partial(sqlite_restore.write_step, brought, step)
                await self._patiently(self._with_room_check(bringing))
            settling = partial(sqlite_restore.publish, brought, key, now)
            done = await self._write_large(settling)
        except BaseException:  # also where nobody waits any more: what is left goes with time
            with suppress(StoreError):
                await self._write_large(lambda c: sqlite_restore.discard(c, name))
            raise
        if not done:  # it may have been erased: nothing of it stays in the files
            await self._erase(lambda c: None)
        return done

    async def _patiently(self, work: Callable[[Connection], None]) -> None:
        """Write what may be written twice; one that is late is tried again."""
        for _ in range(ATTEMPTS):
            with suppress(StoreTimeout):
                return await self._write_large(work)
        await self._write_large(work)

    # Index

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        era, heads = self._changes.era(), self._heads
        head = None if terms else heads.of(owner, session, era)
        if head is not None:
            return head
        writes = heads.writes
        lookup, lasts = await self._read_lookup(owner, terms, newest, session)
        if lasts and era is not None and writes == heads.writes:
            heads.put(owner, session, lookup, era)
        return lookup

    async def write(self, owner: Owner, batch: IndexBatch) -> bool:
        work = partial(index_writing.write, now=self._clock(), owner=owner, batch=batch)
        done = False
        try:
            done = await self._write_later(self._with_room_check(work) if batch.rows else work)
            return done
        finally:
            self._heads.written(owner, batch if done else None)

    unindexed = lists(sqlite_archive.unindexed)
    whole_index = reads(index_reading.whole_index, single=True)
    rows = reads(index_reading.rows)
    _read_lookup = reads(index_reading.lookup, single=True)
    vectors = reads(index_vectors.vectors)
    put_vectors = writes_later(index_vectors.put_vectors)
    drop_session = writes(index_writing.drop_session)
    drop = erases(without_time(index_writing.drop))

    # Items

    async def items_at(self, shelf: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        era, asked = self._changes.era(), (shelf, tuple(places))
        known = self._items.of(asked, era)
        if known is not None:
            return known
        found = await self._read_items(shelf, places)
        if era is not None:
            self._items.put(asked, found, era)
        return found

    _read_items = reads(sqlite_items.items_at)
    items = pages(sqlite_items.items)
    namespaces = pages(sqlite_items.namespaces)
    adopt_items = writes(sqlite_items.adopt_items)
    _some_people = lists(sqlite_items.people)
    _drop_some = writes(sqlite_items.drop_some)

    async def people(self, tenant: str) -> Sequence[str]:
        found: list[str] = []
        while some := await self._some_people(tenant, found[-1] if found else ""):
            found += some
        return found

    async def change_items(
        self, shelf: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        now = self._clock()
        run = self._erase if any(each.value is None for each in changes) else self._write
        return await run(lambda c: sqlite_items.change_items(c, now, shelf, changes, since))

    async def drop_items(self, shelf: ItemOwner, prefix: Namespace) -> int:
        gone = 0
        while some := await self._drop_some(shelf, prefix):
            gone += some
        await self._erase(lambda c: None)
        return gone

    # Meter

    spend = writes_beside(without_time(sqlite_work.spend))
    spent = lists(without_time(sqlite_work.spent))


def _seen(log: CachedLog, ask: Ask, snapshot: Snapshot, era: Era | None) -> CachedLog:
    """The log with what the load asked for; and with what it found, where the same load will find
    that again as long as this era lasts."""
    if era is None or not log.never_expires or ask.idempotency_key is not None:
        return replace(log, seen=LastLoad(ask))
    return replace(log, seen=LastLoad(ask, snapshot, era))


class MemoryOpener:
    """Knows the database, which is there as long as a connection to it is: one is kept."""

    def __init__(self) -> None:
        self._address = f"file:{secrets.token_hex(16)}?mode=memory&cache=shared"
        self._kept: sqlite3.Connection | None = None

    def connect(self) -> sqlite3.Connection:
        if self._kept is None:
            self._kept = self._connection()
            migrate(self._kept)
        return self._connection()

    def close(self, connection: sqlite3.Connection) -> None:
        connection.close()

    def check(self) -> None:
        """Nobody can delete or replace it."""

    def index(self) -> None:
        """There is no log, and one thread for all."""

    def end(self) -> None:
        if self._kept is not None:
            self._kept.close()
        self._kept = None

    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address, uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA secure_delete = ON")
        # What does not fit into a cache would go to the disk.
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection


class SQLiteMemory(SQLiteStore):
    """It begins empty with ``open``, and all is gone with ``close``."""

    def __init__(
        self,
        *,
        timeout: float = 0.25,
        commit_timeout: float = 2.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(Path(), timeout=timeout, commit_timeout=commit_timeout, clock=clock)
        self.name = "memory://"
        self._memory = self._opener = MemoryOpener()

    def __repr__(self) -> str:
        return f"<SQLiteMemory [{'open' if self._writer else 'closed'}]>"

    async def open(self) -> None:
        if self._writer is None and self._beside is None:
            self._writer = Worker("sqlite-memory", self._opener, writes=True)
            self._tidying = asyncio.create_task(self._tidy(), name="tidying")

    async def concerns(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        await super().close()
        if self._beside is None:
            self._memory.end()

    def _by(self, reader: Worker | None, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        return self._writing.run(work, self._timeout)
