"""The SQLite file and its threads.

One thread writes, others read: reads do not queue behind commits, and commits that wait together
share one fsync.  Reads of chats, reads of lists, and checks of the file have threads of their own,
so that none of them waits for another.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull
from proxy.stores.common.known_logs import LogCache
from proxy.stores.common.known_passages import PassageCache
from proxy.stores.sqlite.known.changes import Changes
from proxy.stores.sqlite.known.heads import IndexHeadCache
from proxy.stores.sqlite.known.items import ItemCache
from proxy.stores.sqlite.known.wal_index import WalIndex, acquire
from proxy.stores.sqlite.schema import connect, connect_as_is
from proxy.stores.sqlite.waste import has_expired, purge_now, sweep
from proxy.stores.sqlite.worker import Opener, Running, Turn, Worker, consistent_read, readers

T = TypeVar("T")
P = ParamSpec("P")

Work: TypeAlias = Callable[Concatenate[sqlite3.Connection, float, P], T]
"""What is done in a transaction: a function of the connection, of the time at which it was asked
for, and of what the method of the contract takes."""


Identity: TypeAlias = tuple[int, int] | None
"""Identifies a file, unlike its name; None if there is no file."""

ROOM = 16 * 1024 * 1024
"""Free bytes that a disk should have: for a large exchange and the log before it."""

READERS = 3
"""Threads that read for chats: one that has much to read leaves room for others."""

WIPES, WIPE_AFTER = 12, 0.25
"""How often the log is tried to be emptied where a reader stays in it, and after so many seconds
each: who erases waits for it."""

TIDIED_AFTER, TIDIED_AGAIN = 5.0, 0.25
"""Seconds between two searches for expired data, and between two steps of removing it: others write
in between."""

MAX_STEP_PAUSE = 0.1
"""Seconds between two steps of long work, at most; else as long as a step took.  Other processes
poll for the file's lock, and would never get it without a pause."""

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
        self._known: Identity = None
        self._log: tuple[Identity, Identity] | None = None

    def connect(self) -> sqlite3.Connection:
        # One thread after the other: creating the file must be over before anyone locks it.
        with self._connecting:
            self.check()
            there = _identity(self._path)
            connection = self._connect(self._path, self._patience)
            if there not in (None, _identity(self._path)):
                connection.close()  # it is of the old one: a restore was faster
                raise StoreError(f"{self._path} was replaced while it was being opened")
            self._known = _identity(self._path)
            if not self._connections:
                self._log = self._log_there()
            self._connections += 1
            return connection

    def close(self, connection: sqlite3.Connection) -> None:
        """With the last connection SQLite removes the log, and the next one makes another."""
        with self._connecting, closing(connection):
            self._connections -= 1
            log = self._log_there()
            if not self._connections and log == self._log:
                self._log = None
            if log[0] is None:  # it has no name any more: what is in it goes into the file
                connection.execute("PRAGMA wal_checkpoint").fetchone()

    def check(self) -> None:
        """Raise StoreError if the file was replaced: what is written to the old one is lost."""
        if self._known is not None and _identity(self._path) != self._known:
            raise StoreError(
                f"{self._path} was deleted or replaced while it was in use: "
                "put it back, or start the proxy again"
            )
        if self._log is not None and self._log_there() != self._log:
            raise StoreError(
                f"{self._path}-wal or -shm was deleted or replaced while it was in use: "
                "start the proxy again"
            )

    def index(self) -> WalIndex | None:
        return acquire(Path(self._file))

    def _log_there(self) -> tuple[Identity, Identity]:
        return _identity(f"{self._file}-wal"), _identity(f"{self._file}-shm")


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
        self._beside: SQLiteFile | None = None
        self._changes = Changes()
        self._logs, self._passages = LogCache(), PassageCache()
        self._heads, self._items = IndexHeadCache(), ItemCache()
        self._turn = asyncio.Lock()
        self._newest: dict[SessionKey, object] = {}
        """The write under way to a session that was asked for last."""
        self._writer: Worker | None = None
        self._readers: Sequence[Worker] = ()
        self._lister: Worker | None = None
        self._prober: Worker | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} [{self._path}, {'open' if self._readers else 'closed'}]>"

    async def open(self) -> None:
        """Start the threads.  The file is opened with the first use, and tried anew each time."""
        if not self._readers:
            if self._beside is None:
                self._writer = Worker(
                    "sqlite-writer", self._opener, writes=True, changes=self._changes
                )
                if self._tidies:
                    self._tidying = asyncio.create_task(self._tidy(), name="tidying")
            self._readers = readers("sqlite-reader", self._opener, READERS)
            self._lister = Worker("sqlite-lister", self._opener, writes=False)
            self._prober = Worker("sqlite-prober", self._opener, writes=False)

    def patient(self, seconds: float) -> Self:
        """Readers of its own, and the same writer: two would take turns unfairly."""
        twin = copy(self)
        twin._beside, twin._timeout, twin._commit_timeout = self, seconds, seconds
        twin._readers, twin._writer, twin._lister, twin._prober = (), None, None, None
        twin._tidying, twin._turn = None, asyncio.Lock()
        return twin

    def part_of(self, key: SessionKey) -> str:
        return ""

    async def ping(self, key: SessionKey | None = None) -> None:
        await self._probe()
        # Touches a page and thereby the disk, and changes nothing.
        await self._write_kept(lambda c: c.execute("PRAGMA application_id = 0").fetchone())

    async def peek(self, key: SessionKey) -> None:
        await self._probe()

    async def _probe(self) -> None:
        # A statement that is not read to its end would keep its look at the file open.
        await self._by(self._prober, lambda c: c.execute(_PEEK).fetchone())

    async def concerns(self) -> Sequence[str]:
        left = await asyncio.to_thread(_room, self._path.parent)
        if left is None or left >= ROOM:
            return ()
        return (_disk_message(left),)

    async def wipe(self) -> None:
        for _ in range(WIPES):
            if not self._writing.log_kept:
                return
            await asyncio.sleep(WIPE_AFTER)
            await self._empty_log()
        if self._writing.log_kept:
            raise self._writing.log_kept

    async def _empty_log(self) -> None:
        await self._writing.empty_log(self._commit_timeout)

    async def _tidy(self) -> None:
        """Remove expired data also if nobody writes, and retry to empty the log."""
        while True:
            await asyncio.sleep(TIDIED_AFTER)
            with suppress(StoreError):
                while await self._tidy_step():
                    await asyncio.sleep(TIDIED_AGAIN)

    async def _tidy_step(self) -> bool:
        """Remove some expired data; True if there was any."""
        if self._writing.log_kept:
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

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        """Run a read that a chat waits for."""
        return self._by(self._readers[0] if self._readers else None, work)

    def _list(self, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        """Run a read of the memory API or of background work."""
        return self._by(self._lister, work)

    async def _page(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same for a large read: one at a time, and its timeout starts with its turn."""
        async with self._turn:
            return await self._list(work)

    def _by(self, reader: Worker | None, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        if reader is None:
            raise StoreError("the store is not open")
        return reader.run(work, self._timeout)

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        return self._writing.run(work, self._commit_timeout)

    def _write_large(self, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        """Run a write of tenths of a second, in a transaction of its own."""
        return self._writing.run(work, self._commit_timeout, "large")

    def _write_kept(
        self, work: Callable[[sqlite3.Connection], T], turn: Turn = "soon"
    ) -> Running[T]:
        """Run a write that changes nothing cached, or updates the caches itself."""
        return self._writing.run(work, self._commit_timeout, turn, kept=True)

    def _write_later(self, work: Callable[[sqlite3.Connection], T]) -> Running[T]:
        """The same for a write that can be repeated: all other writes go first."""
        return self._writing.run(work, self._commit_timeout, "later", kept=True)

    def _with_room_check(
        self, work: Callable[[sqlite3.Connection], T]
    ) -> Callable[[sqlite3.Connection], T]:
        """The work, raising StoreFull first if the disk has less than ROOM left.

        For writes that can wait or be repeated: exchanges need that room, and so do deletions,
        which take some before they free any.
        """

        def checked(connection: sqlite3.Connection) -> T:
            left = _room(self._path.parent)
            if left is not None and left < ROOM:
                raise StoreFull(f"SQLite: {_disk_message(left)}")
            return work(connection)

        return checked

    @property
    def _writing(self) -> Worker:
        writer = (self._beside or self)._writer
        if writer is None:
            raise StoreError("the store is not open")
        return writer

    async def _erase(
        self, work: Callable[[sqlite3.Connection], T], on_result: Callable[[T], None] | None = None
    ) -> T:
        """The result of ``work``, once nothing that it removed is in the files any more, unless a
        reader keeps the log: see ``wipe``.

        Other commits run between the steps.  ``on_result`` is called with the result before them.
        """
        try:
            result = await self._write(work)
            if on_result is not None:
                on_result(result)
            await self._by_steps(lambda: self._write_large(sweep))
            await self._empty_log()
            return result
        finally:
            self._items.forget()

    async def _by_steps(self, step: Callable[[], Running[object]]) -> None:
        """Repeat a step until it finds nothing left to do."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while await step():
            await asyncio.sleep(min(clock() - began, MAX_STEP_PAUSE))
            began = clock()

    async def _erase_texts(
        self, work: Callable[[sqlite3.Connection], T], on_result: Callable[[T], None] | None = None
    ) -> T:
        """The same for texts that may be cached: the caches are cleared."""
        try:
            return await self._erase(work, on_result)
        finally:
            self._logs.forget()
            self._passages.forget()
            self._heads.forget()


class Lane:
    """Makes methods of a store from functions of a connection, to run in one of its threads."""

    def __init__(
        self,
        run: Callable[[SQLiteFile, Callable[[sqlite3.Connection], Any]], Running[Any]],
        *,
        reads: bool = False,
    ) -> None:
        self._run, self._reads = run, reads

    def __call__(
        self, work: Work[P, T], *, single: bool = False
    ) -> Callable[Concatenate[SQLiteFile, P], Running[T]]:
        """``single``: it reads with one statement."""
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


reads, lists = Lane(SQLiteFile._read, reads=True), Lane(SQLiteFile._list, reads=True)
pages = Lane(SQLiteFile._page, reads=True)
writes, erases = Lane(SQLiteFile._write), Lane(SQLiteFile._erase)
writes_beside = Lane(SQLiteFile._write_kept)
writes_later, erases_texts = Lane(SQLiteFile._write_later), Lane(SQLiteFile._erase_texts)


def without_time(work: Callable[Concatenate[sqlite3.Connection, P], T]) -> Work[P, T]:
    """Makes ``Work`` from a function without a parameter for the time."""

    @wraps(work)
    def timed(
        connection: sqlite3.Connection, now: float, /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return work(connection, *args, **kwargs)

    return timed


def _identity(path: Path | str) -> Identity:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _disk_message(room: int) -> str:
    return f"the disk of the store has {room // 1024} KiB left"


def _room(folder: Path) -> int | None:
    """Free bytes on the folder's disk; None if unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
