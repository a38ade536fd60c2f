"""The SQLite file and its threads.

One thread writes, others read: reads do not queue behind commits, and commits that wait at the same
time share one fsync.  Chats, lists, and checks of the file have separate reading threads, so that
none waits for another.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import wraps
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull
from proxy.process.sqlite_file import FileIdentity, identity
from proxy.stores.common.log_cache import LogCache
from proxy.stores.common.passage_cache import PassageCache
from proxy.stores.sqlite.caches.changes import Changes
from proxy.stores.sqlite.caches.heads import IndexHeadCache
from proxy.stores.sqlite.caches.items import ItemCache
from proxy.stores.sqlite.caches.wal_index import WalIndex, acquire
from proxy.stores.sqlite.schema import connect, connect_as_is
from proxy.stores.sqlite.waste import has_expired, purge_now, sweep
from proxy.stores.sqlite.worker import Opener, Priority, Running, Worker, consistent_read, readers

T = TypeVar("T")
P = ParamSpec("P")

Work: TypeAlias = Callable[Concatenate[Connection, float, P], T]
"""What a job runs in a transaction: a function of the connection, of the time of the call (Unix
seconds), and of the arguments of the store's method."""

MIN_FREE_BYTES = 16 * 1024 * 1024
"""Free bytes that the disk should have: for a large exchange, and for the log that it is written
to."""

READERS = 3
"""Threads that read for chats, so that one long read does not delay all others."""

WIPE_TRIES, WIPE_PAUSE = 12, 0.25
"""Attempts to empty the log while a reader keeps it, and seconds before each: an erasure waits for
this."""

TIDY_INTERVAL, TIDY_PAUSE = 5.0, 0.25
"""Seconds between two searches for expired data, and between two steps of removing it: others write
in between."""

MAX_STEP_PAUSE = 0.1
"""The longest pause (s) between two steps of long work; else it is as long as the step took.  Other
processes poll for the file's lock, and would never get it without a pause."""

_PEEK = "SELECT id FROM sessions LIMIT 1"


class SQLiteOpener:
    """Opens the file, and checks that it and its log are still the same: they may be replaced under
    the same names."""

    def __init__(self, path: Path, patience: float, *, as_is: bool) -> None:
        self._path, self._patience = path, patience
        self._file = os.path.realpath(path)  # beside that SQLite has its log
        self._connect = connect_as_is if as_is else connect
        self._connecting = Lock()
        self._connections = 0
        self._known: FileIdentity = None
        self._log: tuple[FileIdentity, FileIdentity] | None = None

    def connect(self) -> Connection:
        # One thread at a time: the file must be created before another thread locks it.
        with self._connecting:
            self.check()
            before = identity(self._path)
            connection = self._connect(self._path, self._patience)
            if before not in (None, identity(self._path)):
                connection.close()  # to the old file: it was restored meanwhile
                raise StoreError(f"{self._path} was replaced while it was being opened")
            self._known = identity(self._path)
            if not self._connections:
                self._log = self._log_identity()
            self._connections += 1
            return connection

    def close(self, connection: Connection) -> None:
        """Closing the last connection makes SQLite remove the log; the next one creates another."""
        with self._connecting, closing(connection):
            self._connections -= 1
            log = self._log_identity()
            if not self._connections and log == self._log:
                self._log = None
            if log[0] is None:  # deleted, but still open: move its contents into the file
                connection.execute("PRAGMA wal_checkpoint").fetchone()

    def check(self) -> None:
        """Raise StoreError if the file was replaced: what is written to the old one is lost."""
        if self._known is not None and identity(self._path) != self._known:
            raise StoreError(
                f"{self._path} was deleted or replaced while it was in use: "
                "put it back, or start the proxy again"
            )
        if self._log is not None and self._log_identity() != self._log:
            raise StoreError(
                f"{self._path}-wal or -shm was deleted or replaced while it was in use: "
                "start the proxy again"
            )

    def index(self) -> WalIndex | None:
        return acquire(Path(self._file))

    def _log_identity(self) -> tuple[FileIdentity, FileIdentity]:
        return identity(f"{self._file}-wal"), identity(f"{self._file}-shm")


class SQLiteFile:
    """``timeout`` bounds reads, ``commit_timeout`` writes and waiting for other processes (s).

    ``as_is``: the file is neither created nor migrated.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout: float = 0.25,
        commit_timeout: float = 2.5,
        clock: Callable[[], float] = time.time,
        as_is: bool = False,
    ) -> None:
        self._path = path.absolute()
        self.name = f"sqlite:///{self._path}"
        self._timeout = timeout
        self._commit_timeout = commit_timeout
        self._clock = clock
        self._tidies = not as_is
        self._tidying: asyncio.Task[None] | None = None
        self._opener: Opener = SQLiteOpener(self._path, commit_timeout, as_is=as_is)
        self._original: SQLiteFile | None = None
        self._changes = Changes()
        self._logs, self._passages = LogCache(), PassageCache()
        self._heads, self._items = IndexHeadCache(), ItemCache()
        self._page_lock = asyncio.Lock()
        self._latest_writes: dict[SessionKey, object] = {}
        """By session the latest of the writes that are under way."""
        self._writer: Worker | None = None
        self._readers: Sequence[Worker] = ()
        self._lister: Worker | None = None
        self._prober: Worker | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} [{self._path}, {'open' if self._readers else 'closed'}]>"

    async def open(self) -> None:
        """Start the threads.  The file is opened when it is first used; if that fails, again with
        the next use."""
        if not self._readers:
            if self._original is None:
                self._writer = Worker(
                    "sqlite-writer", self._opener, writes=True, changes=self._changes
                )
                if self._tidies:
                    self._tidying = asyncio.create_task(self._tidy(), name="tidying")
            self._readers = readers("sqlite-reader", self._opener, READERS)
            self._lister = Worker("sqlite-lister", self._opener, writes=False)
            self._prober = Worker("sqlite-prober", self._opener, writes=False)

    def with_long_timeout(self, seconds: float) -> Self:
        """See ``Backend``; has its own readers and shares the writer, since SQLite's lock is not
        fair between two."""
        twin = copy(self)
        twin._original, twin._timeout, twin._commit_timeout = self, seconds, seconds
        twin._readers, twin._writer, twin._lister, twin._prober = (), None, None, None
        twin._tidying, twin._page_lock = None, asyncio.Lock()
        return twin

    def server_of(self, key: SessionKey) -> str:
        return ""

    async def ping(self, key: SessionKey | None = None) -> None:
        await self._probe()
        # Writes a page, and so to the disk, but changes nothing.
        await self._write_keeping_caches(
            lambda c: c.execute("PRAGMA application_id = 0").fetchone()
        )

    async def peek(self, key: SessionKey) -> None:
        await self._probe()

    async def _probe(self) -> None:
        # fetchone: an unfinished statement would keep its snapshot of the file open.
        await self._run_in(self._prober, lambda c: c.execute(_PEEK).fetchone())

    async def warnings(self) -> Sequence[str]:
        free_bytes = await asyncio.to_thread(_free_bytes, self._path.parent)
        if free_bytes is None or free_bytes >= MIN_FREE_BYTES:
            return ()
        return (_disk_message(free_bytes),)

    async def purge_files(self) -> None:
        for _ in range(WIPE_TRIES):
            if not self._active_writer.log_error:
                return
            await asyncio.sleep(WIPE_PAUSE)
            await self._empty_log()
        if (error := self._active_writer.log_error) is not None:
            raise error

    async def _empty_log(self) -> None:
        await self._active_writer.run(
            lambda c: None, self._commit_timeout, "large", keeps_caches=True, truncate=True
        )

    async def _tidy(self) -> None:
        """Remove expired data also if nobody writes, and retry to empty the log."""
        while True:
            await asyncio.sleep(TIDY_INTERVAL)
            with suppress(StoreError):
                while await self._tidy_step():
                    await asyncio.sleep(TIDY_PAUSE)

    async def _tidy_step(self) -> bool:
        """Remove some expired data; True if there was any."""
        if self._active_writer.log_error:
            await self._empty_log()
        now = self._clock()
        if not await self._list(lambda c: has_expired(c, now)):
            return False
        await self._write_later(lambda c: purge_now(c, now))
        return True

    async def close(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.wait({self._tidying})
            self._tidying = None
        named = (self._writer, self._lister, self._prober)
        workers = [*(worker for worker in named if worker), *self._readers]
        self._writer = self._lister = self._prober = None
        self._readers = ()
        for worker in workers:
            worker.stop()
        for worker in workers:
            await asyncio.to_thread(worker.join, self._commit_timeout * 2)

    def _read(self, work: Callable[[Connection], T]) -> Running[T]:
        """Run a read that a chat waits for."""
        return self._run_in(self._readers[0] if self._readers else None, work)

    def _list(self, work: Callable[[Connection], T]) -> Running[T]:
        """Run a read of the memory API or of background work."""
        return self._run_in(self._lister, work)

    async def _page(self, work: Callable[[Connection], T]) -> T:
        """The same for a large read: one at a time, and its timeout starts after the others."""
        async with self._page_lock:
            return await self._list(work)

    def _run_in(self, reader: Worker | None, work: Callable[[Connection], T]) -> Running[T]:
        if reader is None:
            raise StoreError("the store is not open")
        return reader.run(work, self._timeout)

    def _write(self, work: Callable[[Connection], T]) -> Running[T]:
        return self._active_writer.run(work, self._commit_timeout)

    def _write_large(self, work: Callable[[Connection], T]) -> Running[T]:
        """Run a write of tenths of a second, in a transaction of its own."""
        return self._active_writer.run(work, self._commit_timeout, "large")

    def _write_keeping_caches(
        self, work: Callable[[Connection], T], priority: Priority = "soon"
    ) -> Running[T]:
        """Run a write that changes nothing cached, or updates the caches itself."""
        return self._active_writer.run(work, self._commit_timeout, priority, keeps_caches=True)

    def _write_later(self, work: Callable[[Connection], T]) -> Running[T]:
        """The same for a write that can be repeated: all other writes go first."""
        return self._active_writer.run(work, self._commit_timeout, "later", keeps_caches=True)

    def _with_space_check(self, work: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """The work, raising StoreFull first if the disk has less than ``MIN_FREE_BYTES`` left.

        For writes that can wait or be repeated: that space is for exchanges, and for deletions,
        which need some before they free any.
        """

        def checked(connection: Connection) -> T:
            free_bytes = _free_bytes(self._path.parent)
            if free_bytes is not None and free_bytes < MIN_FREE_BYTES:
                raise StoreFull(f"SQLite: {_disk_message(free_bytes)}")
            return work(connection)

        return checked

    @property
    def _active_writer(self) -> Worker:
        writer = (self._original or self)._writer
        if writer is None:
            raise StoreError("the store is not open")
        return writer

    async def _erase(
        self, work: Callable[[Connection], T], on_result: Callable[[T], None] | None = None
    ) -> T:
        """Run a write that removes data, and then overwrite that data in the files and in the log,
        unless a reader keeps the log: see ``purge_files``.

        Other commits run between the steps.  ``on_result`` is called with the result before the
        first one.
        """
        try:
            result = await self._write(work)
            if on_result is not None:
                on_result(result)
            await self._repeat(lambda: self._write_large(sweep))
            await self._empty_log()
            return result
        finally:
            self._items.clear()

    async def _repeat(self, step: Callable[[], Running[object]]) -> None:
        """Repeat a step until it finds nothing left to do."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while await step():
            await asyncio.sleep(min(clock() - began, MAX_STEP_PAUSE))
            began = clock()

    async def _erase_texts(
        self, work: Callable[[Connection], T], on_result: Callable[[T], None] | None = None
    ) -> T:
        """The same for texts that may be cached: the caches are cleared."""
        try:
            return await self._erase(work, on_result)
        finally:
            self._logs.clear()
            self._passages.clear()
            self._heads.clear()


class MethodFactory:
    """Makes methods of a store from functions of a connection (``Work``); ``run`` runs them in one
    of its threads."""

    def __init__(
        self,
        run: Callable[[SQLiteFile, Callable[[Connection], Any]], Running[Any]],
        *,
        reads: bool = False,
    ) -> None:
        self._run, self._reads = run, reads

    def __call__(
        self, work: Work[P, T], *, single: bool = False
    ) -> Callable[Concatenate[SQLiteFile, P], Running[T]]:
        """``single``: ``work`` is a single statement, so it needs no transaction."""
        run, several = self._run, self._reads and not single

        @wraps(work)
        def method(store: SQLiteFile, /, *args: P.args, **kwargs: P.kwargs) -> Running[T]:
            now = store._clock()
            if several:
                return run(
                    store, lambda c: consistent_read(c, lambda c: work(c, now, *args, **kwargs))
                )
            return run(store, lambda c: work(c, now, *args, **kwargs))

        return method


reads = MethodFactory(SQLiteFile._read, reads=True)
lists = MethodFactory(SQLiteFile._list, reads=True)
pages = MethodFactory(SQLiteFile._page, reads=True)
writes, erases = MethodFactory(SQLiteFile._write), MethodFactory(SQLiteFile._erase)
writes_keeping_caches = MethodFactory(SQLiteFile._write_keeping_caches)
writes_later = MethodFactory(SQLiteFile._write_later)
erases_texts = MethodFactory(SQLiteFile._erase_texts)


def without_time(work: Callable[Concatenate[Connection, P], T]) -> Work[P, T]:
    """Makes ``Work`` from a function without a parameter for the time."""

    @wraps(work)
    def timed(connection: Connection, now: float, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return work(connection, *args, **kwargs)

    return timed


def _disk_message(free_bytes: int) -> str:
    return f"the disk of the store has {free_bytes // 1024} KiB left"


def _free_bytes(folder: Path) -> int | None:
    """Free bytes on the folder's disk; None if unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
