"""Threads that own a connection each, and how work gets there and back.  Knows no chats.

A queue and ``call_soon_threadsafe`` are all there is between the loop and the thread: an executor
costs several times as much per call.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar, cast

import msgspec

from proxy.memory.limit import Limit
from proxy.memory.store import StoreError, StoreTimeout
from proxy.stores.common.damage import damage_in

T = TypeVar("T")
Answer = tuple["asyncio.Future[object]", object]

Queue = SimpleQueue["Job | None"]

STEPS = 10_000
"""SQLite's instructions between two looks at whether anybody still waits for what is read: 1 ms."""

MAX_BATCH = 64
"""Most jobs that share one transaction, and with it one fsync."""

TRUNCATE_MS = 500
"""How long emptying the log waits for readers in other processes."""


@dataclass(frozen=True, slots=True)
class Job:
    work: Callable[[sqlite3.Connection], object]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[object]
    truncate: bool


class Opener(Protocol):
    """Knows the file."""

    def connect(self) -> sqlite3.Connection:
        """Raises OSError, sqlite3.Error, StoreError."""
        ...

    def check(self) -> None:
        """Raise StoreError where what is open is not what lies at the path any more."""
        ...


class Worker:
    """Runs jobs in order in one thread.  ``writes``: all that wait share a transaction.

    Readers may share a ``queue``: who is free takes the next job.
    """

    def __init__(
        self, name: str, opener: Opener, *, writes: bool, queue: Queue | None = None
    ) -> None:
        self._opener = opener
        self._writes = writes
        self._queue: Queue = SimpleQueue() if queue is None else queue
        self._connection: sqlite3.Connection | None = None
        self._reading: asyncio.Future[object] | None = None
        self._stopped = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(
        self, work: Callable[[sqlite3.Connection], T], timeout: float, *, truncate: bool = False
    ) -> T:
        """The result of ``work``, run in a transaction.  Raises StoreError, StoreTimeout.

        With ``truncate`` the write-ahead log is emptied before the answer, unless another process
        reads all the while.

        A caller that is cancelled or out of time leaves its job behind: it is skipped if it has not
        begun; if it has, reading is broken off, and writing takes effect as a whole or not at all.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        self._queue.put(Job(work, loop, future, truncate))
        try:
            async with Limit(timeout):
                return cast(T, await future)
        except TimeoutError as error:
            raise StoreTimeout(f"SQLite took longer than {timeout:g} s") from error

    def stop(self) -> None:
        """Let the thread end once it has done what waits."""
        self._queue.put(None)

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    # In the thread

    def _run(self) -> None:
        while not self._stopped:
            self._round()  # its results must not stay referenced while the thread waits
        self._disconnect()

    def _round(self) -> None:
        batch = [job for job in self._take() if not job.future.cancelled()]
        if batch:
            _deliver(batch, self._perform(batch))

    def _take(self) -> Iterator[Job]:
        """Wait for a job; a writer also takes what waits behind it."""
        job = self._queue.get()
        for _ in range(MAX_BATCH - 1 if self._writes else 0):
            if job is None:
                break
            yield job
            try:
                job = self._queue.get_nowait()
            except Empty:
                return
        if job is None:
            self._stopped = True
        else:
            yield job

    def _perform(self, batch: list[Job]) -> list[object]:
        try:
            with self._transaction() as connection:
                results = [self._attempt(connection, job) for job in batch]
            if any(job.truncate for job in batch):
                self._empty_log(connection)
            return results
        except (sqlite3.Error, OSError, StoreError) as error:
            self._disconnect()
            return [as_store_error(error)] * len(batch)

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Empty the write-ahead log, unless a reader stays in it; either way all is committed."""
        patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        connection.execute(f"PRAGMA busy_timeout = {TRUNCATE_MS}").fetchone()
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {patience}").fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._opener.check()
        if self._connection is None:
            self._connection = self._opener.connect()
            if not self._writes:
                self._connection.set_progress_handler(self._abandoned, STEPS)
        connection = self._connection
        # A deferred BEGIN that reads and then writes fails at once where another process wrote
        # in between; IMMEDIATE waits for its turn.
        connection.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
        yield connection
        connection.execute("COMMIT")

    def _abandoned(self) -> bool:
        """Does nobody wait for what is being read?  Then SQLite breaks it off."""
        return self._reading is not None and self._reading.cancelled()

    def _attempt(self, connection: sqlite3.Connection, job: Job) -> object:
        """The result of one job, or its exception with its writes undone."""
        self._reading = job.future
        if self._writes:
            connection.execute("SAVEPOINT job")
        try:
            result = job.work(connection)
        # The thread's boundary: whatever a job raises belongs to its caller, not to the thread.
        except Exception as error:  # noqa: BLE001
            if self._writes:
                connection.execute("ROLLBACK TO job")
                connection.execute("RELEASE job")
            return as_store_error(error)
        finally:
            self._reading = None
        if self._writes:
            connection.execute("RELEASE job")
        return result

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def readers(name: str, opener: Opener, count: int) -> list[Worker]:
    """Threads that share what is to be read; any of them takes jobs for all."""
    queue: Queue = SimpleQueue()
    return [Worker(f"{name}-{n}", opener, writes=False, queue=queue) for n in range(count)]


def as_store_error(error: Exception) -> Exception:
    """What callers see of an error.  Those that tell of none of SQLite, file and data are bugs."""
    if isinstance(error, sqlite3.Error) and _is_busy(error):
        return StoreTimeout(f"SQLite: {error}")
    if isinstance(error, sqlite3.Error | OSError | msgspec.MsgspecError):
        return StoreError(f"SQLite: {error}")
    return damage_in(error) or error


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _deliver(batch: list[Job], results: list[object]) -> None:
    answers: defaultdict[asyncio.AbstractEventLoop, list[Answer]] = defaultdict(list)
    for job, result in zip(batch, results, strict=True):
        answers[job.loop].append((job.future, result))
    for loop, settled in answers.items():
        # A closed loop has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, settled)


def _settle(answers: list[Answer]) -> None:
    for future, result in answers:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
