"""SQLiteStore: all memory in one file, for any number of processes on one host; SQLiteMemory: in
RAM.

SQLiteMemory is an in-memory database of SQLite, not a file on a RAM disk: no other process can open
it, and it is gone however the process ends.  It has one thread for everything, since connections
that share such a database lock each other out of its tables.
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
from proxy.memory.items import Change, Item, ItemOwner, Namespace, OwnedPlace, Place
from proxy.memory.model import Amendment, Commit, LoadOptions, Outcome, SessionKey, Snapshot
from proxy.memory.store import StoreError, StoreTimeout
from proxy.recall.index import IndexBatch, IndexLookup, Owner
from proxy.stores.common.history import counts_of
from proxy.stores.common.log_cache import CachedLog, LastLoad
from proxy.stores.common.passage_cache import CachedPassages
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
from proxy.stores.sqlite.caches.changes import Era
from proxy.stores.sqlite.file import (
    SQLiteFile,
    erases,
    erases_texts,
    lists,
    pages,
    reads,
    without_time,
    writes,
    writes_keeping_caches,
    writes_later,
)
from proxy.stores.sqlite.index import reading as index_reading
from proxy.stores.sqlite.index import vectors as index_vectors
from proxy.stores.sqlite.index import writing as index_writing
from proxy.stores.sqlite.schema import migrate
from proxy.stores.sqlite.worker import Priority, Running, T, Worker

ATTEMPTS = 3
"""Retries of a step of a restore that timed out."""

LARGE_WRITE = 200
"""Messages; a larger write takes so long that it gets a transaction of its own."""


class SQLiteStore(SQLiteFile):
    """See :class:`proxy.stores.open.Backend`.

    ``reads`` are those that a chat waits for, ``lists`` those of the memory API and of background
    work, ``pages`` large ones of these.  ``erases`` also overwrites what was removed.
    ``writes_keeping_caches`` changes nothing that is cached; nor does ``writes_later``, which runs
    after all other writes and is synced with the next of them.
    """

    # Memory

    async def load(self, key: SessionKey, options: LoadOptions) -> Snapshot:
        era, known, logs = self._changes.era(), self._logs.get(key), self._logs
        if (
            era
            and known
            and known.last_load
            and known.last_load.era is era
            and known.last_load.options == options
        ):
            return known.last_load.snapshot or Snapshot()
        now, logs_era, writes = self._clock(), logs.era, logs.writes
        if options.whole:
            known = None
        work = partial(sqlite_read.load, now=now, key=key, options=options, known=known)
        snapshot, cached = await self._read(work)
        if not options.whole:
            if cached is not None:
                still = era if writes == logs.writes else None
                cached = _with_last_load(cached, options, snapshot, still)
            logs.put(key, cached, logs_era)
        return snapshot

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        outcome: Outcome = "recorded"
        try:
            for step in commit_steps(commit):
                large = isinstance(step, CommitStep) or len(step.drafts) > LARGE_WRITE
                writing = partial(sqlite_write.commit, commit=step)
                outcome = await self._write_and_reload(key, writing, "large" if large else "soon")
                if outcome != "recorded":
                    break
            return outcome
        finally:
            if commit.superseded or commit.activated or commit.idempotency_key:
                self._passages.invalidate(key)

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        writing = partial(sqlite_write.amend, amendment=amendment)
        try:
            return await self._write_and_reload(key, writing)
        finally:
            if amendment.edited:
                self._passages.invalidate(key)

    async def _write_and_reload(
        self, key: SessionKey, write: Callable[..., T], priority: Priority = "soon"
    ) -> T:
        """Write to a session, and read in the same transaction what the next load would, for the
        cache."""
        now, era, known, cached = self._clock(), self._logs.era, self._logs.get(key), None
        this = self._latest_writes[key] = object()

        def work(connection: Connection) -> tuple[T, CachedLog | None]:
            result = write(connection, now, key)
            # Of several concurrent writes only the last one reads, what all have written.
            last = self._latest_writes.get(key) is this
            return result, self._reload(connection, now, key, known) if last else None

        try:
            result, cached = await self._write_keeping_caches(work, priority)
            return result
        finally:
            self._logs.on_write(key, cached, era)
            if self._latest_writes.get(key) is this:
                del self._latest_writes[key]

    def _reload(
        self, connection: Connection, now: float, key: SessionKey, known: CachedLog | None
    ) -> CachedLog | None:
        if known is None or known.last_load is None:
            return None
        options = known.last_load.options
        try:
            found = sqlite_read.load_from_cache(connection, now, key, options, known)
        # A boundary: an error of this read must not undo the write.
        except Exception:
            if not connection.in_transaction:  # it has: a read may find the disk full as well
                raise
            return None
        if found is None or found[1] is None:
            return None
        return _with_last_load(found[1], options, found[0], self._changes.writing)

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        era, kept = self._changes.era(), self._passages.era
        stamp = (era, user)
        known = {name: self._cached_at(SessionKey(tenant, name), stamp) for name in places}
        missing = {name: known[name].missing(seqs) for name, seqs in places.items()}
        missing = {name: seqs for name, seqs in missing.items() if seqs}
        read, lasting = await self._read_passages(tenant, user, missing) if missing else ({}, ())
        for name in lasting if era else ():
            theirs = {seq: message for (session, seq), message in read.items() if session == name}
            self._passages.put(SessionKey(tenant, name), known[name].merged_with(theirs), kept)
        for name, seqs in places.items():
            read |= known[name].select(name, seqs)
        return read

    def _cached_at(self, key: SessionKey, stamp: object) -> CachedPassages:
        """The cached passages of a session with this stamp: an era, and the user who reads."""
        known = self._passages.get(key)
        return known if known.stamp == stamp else CachedPassages(stamp)

    bodies, wires = reads(sqlite_read.bodies), reads(sqlite_read.wires)
    _read_passages = reads(sqlite_read.passages, single=True)

    # Summaries

    summaries = reads(sqlite_summaries.versions)
    put_summary = writes(sqlite_summaries.put)
    drop_summaries = erases(sqlite_summaries.drop)
    mark_stalled = writes(sqlite_summaries.mark_stalled)

    # Queue

    enqueue = writes_keeping_caches(without_time(sqlite_work.enqueue))
    waiting = lists(without_time(sqlite_work.waiting))
    requested_profiles = lists(without_time(sqlite_work.requested_profiles))
    claim = writes_keeping_caches(without_time(sqlite_work.claim))
    extend = writes_keeping_caches(without_time(sqlite_work.extend))
    finish = writes_keeping_caches(without_time(sqlite_work.finish))
    postpone = writes_keeping_caches(without_time(sqlite_work.postpone))

    # Erasures

    mark = writes(without_time(sqlite_marks.mark))
    unmark = writes(without_time(sqlite_marks.unmark))
    is_erased = reads(sqlite_marks.is_erased)

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
        """The sessions are moved at once, and their indexes removed in steps."""
        moving = partial(sqlite_archive.move, now=self._clock(), old=old, new=new)
        return await self._erase_texts(moving, lambda moved: on_progress(moved, moved))

    _clear_some = writes(sqlite_waste.clear_some)

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """Nothing to do: the list is the table of sessions."""
        return ()

    async def clear(self, tenant: str, user: str) -> None:
        await self._repeat(lambda: self._clear_some(tenant, user))
        await self._erase_texts(lambda c: sqlite_restore.cancel_all(c, tenant, user))

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        now = self._clock()
        # Old texts and details must be overwritten in the file, as after a deletion.
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
            write = self._write_large if len(archived.lines) > LARGE_WRITE else self._write
            whole = partial(
                sqlite_restore.restore, now=now, key=key, archived=archived, since=since
            )
            return await write(self._with_space_check(whole))
        name = await self._write(lambda c: sqlite_restore.stage(c, now, key, archived))
        if name is None:
            return False
        known = await asyncio.to_thread(counts_of, archived)
        staged = sqlite_restore.StagedSession(name, archived, known, parts, since)
        try:
            for step in range(len(parts)):
                write_step = partial(sqlite_restore.write_step, staged, step)
                await self._write_with_retries(self._with_space_check(write_step))
            publish = partial(sqlite_restore.publish, staged, key, now)
            done = await self._write_large(publish)
        except BaseException:  # also if cancelled; if this fails too, the staged rows expire
            with suppress(StoreError):
                await self._write_large(lambda c: sqlite_restore.discard(c, name))
            raise
        if not done:  # it may have been erased: overwrite its removed rows
            await self._erase(lambda c: None)
        return done

    async def _write_with_retries(self, work: Callable[[Connection], None]) -> None:
        """Run an idempotent write; retried if it times out."""
        for _ in range(ATTEMPTS):
            with suppress(StoreTimeout):
                return await self._write_large(work)
        await self._write_large(work)

    # Index

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        era, heads = self._changes.era(), self._heads
        head = None if terms else heads.get(owner, session, era)
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
            done = await self._write_later(self._with_space_check(work) if batch.rows else work)
            return done
        finally:
            self._heads.on_write(owner, batch if done else None)

    unindexed = lists(sqlite_archive.unindexed)
    whole_index = reads(index_reading.whole_index, single=True)
    rows = reads(index_reading.rows)
    _read_lookup = reads(index_reading.lookup, single=True)
    vectors = reads(index_vectors.vectors)
    put_vectors = writes_later(index_vectors.put_vectors)
    drop_session = writes(index_writing.drop_session)
    drop = erases(without_time(index_writing.drop))

    # Items

    async def items_at(self, owner: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        found = await self.items_of([OwnedPlace(owner, place) for place in places])
        return {at.place: item for at, item in found.items()}

    async def items_of(self, places: Collection[OwnedPlace]) -> dict[OwnedPlace, Item]:
        era, cache, writes = self._changes.era(), self._items, self._items.writes
        if (known := cache.get(places, era)) is not None:
            return known
        found = await self._read_items(places)
        if era is not None and writes == cache.writes:
            cache.put(places, found, era)
        return found

    _read_items = reads(sqlite_items.items_of)
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
        self, owner: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        work = partial(
            sqlite_items.change_items, now=self._clock(), owner=owner, changes=changes, since=since
        )
        if any(each.value is None for each in changes):
            return await self._erase(work)
        try:
            return await self._write_keeping_caches(work)
        finally:
            self._items.on_write(owner, changes)

    async def drop_items(self, owner: ItemOwner, prefix: Namespace) -> int:
        gone = 0
        while some := await self._drop_some(owner, prefix):
            gone += some
        await self._erase(lambda c: None)
        return gone

    # Meter

    add_usage = writes_keeping_caches(without_time(sqlite_work.add_usage))
    usage_of_days = lists(without_time(sqlite_work.usage_of_days))


def _with_last_load(
    log: CachedLog, options: LoadOptions, snapshot: Snapshot, era: Era | None
) -> CachedLog:
    """The log with the load's request, and with its snapshot if the same load would return that
    again within this era."""
    if era is None or not log.never_expires or options.idempotency_key is not None:
        return replace(log, last_load=LastLoad(options))
    return replace(log, last_load=LastLoad(options, snapshot, era))


class MemoryOpener:
    """Opens connections to an in-memory database, and keeps one open, without which SQLite would
    delete it."""

    def __init__(self) -> None:
        self._address = f"file:{secrets.token_hex(16)}?mode=memory&cache=shared"
        self._anchor: Connection | None = None

    def connect(self) -> Connection:
        if self._anchor is None:
            self._anchor = self._connection()
            migrate(self._anchor)
        return self._connection()

    def close(self, connection: Connection) -> None:
        connection.close()

    def check(self) -> None:
        """Nothing to do: nobody can delete or replace it."""

    def index(self) -> None:
        """None: such a database has no WAL."""

    def end(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
        self._anchor = None

    def _connection(self) -> Connection:
        connection = sqlite3.connect(
            self._address, uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA secure_delete = ON")
        # Else temporary data that exceeds the cache would be written to the disk.
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection


class SQLiteMemory(SQLiteStore):
    """A store in RAM: empty after ``open``, and deleted by ``close``."""

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
        if self._writer is None and self._original is None:
            self._writer = Worker("sqlite-memory", self._opener, writes=True)
            self._tidying = asyncio.create_task(self._tidy(), name="tidying")

    async def warnings(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        await super().close()
        if self._original is None:
            self._memory.end()

    def _run_in(self, reader: Worker | None, work: Callable[[Connection], T]) -> Running[T]:
        return self._active_writer.run(work, self._timeout)
