"""Threads with a SQLite connection each, and the queue of their jobs.  Knows no chats.

A queue and ``call_soon_threadsafe`` are all there is between the loop and the thread: an executor
costs several times as much per call.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from threading import Lock, Thread
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import msgspec

from proxy.memory.limit import wait_within
from proxy.memory.store import StoreError, StoreFull, StoreInUse, StoreTimeout
from proxy.process.sqlite_file import is_busy, sqlite_name
from proxy.process.sqlite_version import mend_group_concat
from proxy.process.threads import never_preempt
from proxy.stores.common.damage import as_damage
from proxy.stores.sqlite.caches.changes import Changes
from proxy.stores.sqlite.caches.wal_index import WalIndex, release

T = TypeVar("T")
Running: TypeAlias = Coroutine[Any, Any, T]
Answer = tuple["asyncio.Future[object]", object]

STEPS = 10_000
"""SQLite's instructions between two checks whether a read was abandoned: about 1 ms, but seconds if
each instruction reads megabytes, so the read is interrupted too."""

MAX_BATCH = 64
"""Jobs that share a transaction, and so an fsync, at most."""

MAX_LATER_JOBS = 4
"""Jobs of priority "later" in a transaction with others, at most."""

TRUNCATE_MS, TRUNCATE_RETRY_MS = 500, 20
"""Milliseconds that emptying the log waits for readers of other processes: at first, and after a
failure, since a reader that stayed so long will stay longer."""


Priority = Literal["soon", "large", "later"]
"""``large``: slow, so it has a transaction of its own.  ``later``: runs after all others and can be
repeated; a transaction of such jobs alone is not synced, so that a power failure may undo it.  A
later synced transaction never survives without it, as the log is read up to its first gap."""


class Job(msgspec.Struct, frozen=True):
    """A function to run in a worker's thread, and the future of its result.

    ``keeps_caches``: see ``Changes.on_commit``.  ``truncate``: empty the write-ahead log after it,
    which sets ``log_error`` if that fails.
    """

    work: Callable[[Connection], object]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[object]
    priority: Priority = "soon"
    keeps_caches: bool = False
    truncate: bool = False


class Jobs:
    """The queue of jobs: in order, but "later" ones last, and "large" ones alternate with
    others."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[None] = SimpleQueue()
        self._soon: deque[Job] = deque()
        self._later: deque[Job | None] = deque()
        self._large: deque[Job] = deque()
        self._large_next = False
        self._reads: dict[asyncio.Future[object], Connection] = {}
        self._lock = Lock()

    def put(self, job: Job | None) -> None:
        """Add a job; None ends one thread once all waiting jobs are done."""
        if job is None or job.priority == "later":
            self._later.append(job)
        elif job.priority == "large":
            self._large.append(job)
        else:
            self._soon.append(job)
        self._arrived.put(None)

    def take(self, limit: int) -> list[Job | None]:
        """Wait for a job and take up to ``limit`` jobs; None, if among them, is the last."""
        self._arrived.get()
        if self._large and (self._large_next or not self._soon):
            self._large_next = False
            return [self._large.popleft()]
        self._large_next = True
        taken, left = [self._next()], MAX_LATER_JOBS
        while len(taken) < limit and taken[-1] is not None:
            left -= taken[-1].priority == "later"
            if not (self._soon or (left and self._later)):
                break
            try:
                self._arrived.get_nowait()
            except Empty:
                break
            taken.append(self._next())
        return taken

    def begin(self, job: Job, connection: Connection) -> None:
        """Mark a reading job as interruptible until ``end``."""
        with self._lock:
            self._reads[job.future] = connection

    def end(self, job: Job) -> None:
        with self._lock:
            del self._reads[job.future]

    def interrupt(self, future: asyncio.Future[object]) -> None:
        """Interrupt an abandoned job if it is reading."""
        with self._lock:
            if (connection := self._reads.get(future)) is not None:
                connection.interrupt()

    def _next(self) -> Job | None:
        try:
            return self._soon.popleft()
        except IndexError:  # looking first would be too late: another thread may take it
            return self._later.popleft()


class Opener(Protocol):
    """Opens the file and checks it."""

    def connect(self) -> Connection:
        """Raises OSError, sqlite3.Error, StoreError."""
        ...

    def close(self, connection: Connection) -> None:
        """Close the connection, also if it raises sqlite3.Error."""
        ...

    def check(self) -> None:
        """Raise StoreError if the open file is no longer the one at the path."""
        ...

    def index(self) -> WalIndex | None:
        """Acquire the WAL index for one more connection; None if the file has none."""
        ...


class Worker:
    """Runs jobs in order in one thread.  ``writes``: all waiting jobs share a transaction.

    Readers may share their ``jobs``: a free one takes the next.  ``changes`` is notified of writes.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        *,
        writes: bool,
        jobs: Jobs | None = None,
        changes: Changes | None = None,
    ) -> None:
        self._opener = opener
        self._writes = writes
        self._changes = changes or Changes()
        self._index: WalIndex | None = None
        self._jobs = jobs or Jobs()
        self._connection: Connection | None = None
        self._reading: asyncio.Future[object] | None = None
        self._synced = True
        self.log_error: Exception | None = None
        """Why the log could not be emptied when last tried: StoreInUse if somebody reads it."""
        self._stopped = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(
        self,
        work: Callable[[Connection], T],
        timeout: float,
        priority: Priority = "soon",
        *,
        keeps_caches: bool = False,
        truncate: bool = False,
    ) -> T:
        """The result of ``work``; what writes runs in a transaction.  Raises StoreError,
        StoreTimeout.  ``keeps_caches`` and ``truncate``: see Job.

        The job of a caller that is cancelled or timed out is skipped if it has not begun; else
        reading is interrupted, and a write takes effect as a whole or not at all.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        self._jobs.put(Job(work, loop, future, priority, keeps_caches, truncate))
        try:
            return cast(T, await wait_within(future, timeout))
        except TimeoutError as error:
            self._jobs.interrupt(future)
            raise StoreTimeout(f"SQLite took longer than {timeout:g} s") from error
        except asyncio.CancelledError:
            self._jobs.interrupt(future)
            raise

    def stop(self) -> None:
        """End the thread once all waiting jobs are done."""
        self._jobs.put(None)

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    # In the thread

    def _run(self) -> None:
        never_preempt()
        while not self._stopped:
            self._run_batch()  # its results must not stay referenced while the thread waits
        self._disconnect()

    def _run_batch(self) -> None:
        taken = self._jobs.take(MAX_BATCH if self._writes else 1)
        self._stopped = taken[-1] is None
        # A future that is done already was abandoned.
        batch = [job for job in taken if job is not None and not job.future.done()]
        if batch:
            _deliver(batch, self._perform(batch), self._changes.invalidate)

    def _perform(self, batch: list[Job]) -> list[object]:
        try:
            with self._transaction(
                synced=any(job.priority != "later" for job in batch)
            ) as connection:
                results = self._results(connection, batch)
            if self._writes:
                # A failed job that was alone has released the lock in between.
                whole = not any([isinstance(result, Exception) for result in results])
                self._changes.on_commit(
                    keeps_caches=whole and all([job.keeps_caches for job in batch])
                )
            if any(job.truncate for job in batch):
                self._empty_log(connection)
            return results
        except (sqlite3.Error, OSError, StoreError) as error:
            self._disconnect()
            return [as_store_error(error)] * len(batch)

    def _results(self, connection: Connection, batch: list[Job]) -> list[object]:
        """The results of jobs, or their exceptions."""
        if not self._writes:
            return [self._read(connection, job) for job in batch]
        if len(batch) == 1:
            return [self._run_alone(connection, batch[0])]
        try:
            return [job.work(connection) for job in batch]
        # Failures are rare, so no job has a savepoint, which takes two statements: all run again.
        except Exception:  # noqa: BLE001 - raised again by the job itself
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._begin(connection)
            return [self._run_in_savepoint(connection, job) for job in batch]

    def _empty_log(self, connection: Connection) -> None:
        """Empty the write-ahead log if nobody reads it and the file may grow; else all is committed
        as well."""
        patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
        wait = TRUNCATE_RETRY_MS if self.log_error else TRUNCATE_MS
        connection.execute(f"PRAGMA busy_timeout = {wait}").fetchone()
        in_use = StoreInUse("SQLite: somebody reads what the log has of what was removed")
        try:
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.log_error = in_use if busy else None
        except sqlite3.Error as error:
            self.log_error = in_use if is_busy(error) else as_store_error(error)
        connection.execute(f"PRAGMA busy_timeout = {patience}").fetchone()

    @contextmanager
    def _transaction(self, *, synced: bool) -> Iterator[Connection]:
        self._opener.check()
        if self._connection is None:
            self._connection, self._synced = self._opener.connect(), True
            mend_group_concat(self._connection)
            self._index = self._opener.index()
            if not self._writes:
                self._connection.set_progress_handler(self._abandoned, STEPS)
        connection = self._connection
        if not self._writes:
            yield connection  # reads with several statements begin one: see consistent_read
            return
        if synced != self._synced:
            connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._synced = synced
        self._begin(connection)
        yield connection
        connection.execute("COMMIT")

    def _begin(self, connection: Connection) -> None:
        # A deferred BEGIN that reads and then writes fails at once where another process wrote
        # in between; IMMEDIATE waits for its turn.
        connection.execute("BEGIN IMMEDIATE")
        self._changes.on_begin(self._index)

    def _abandoned(self) -> bool:
        """Whether nobody waits for the current read any more; True makes SQLite interrupt it."""
        return self._reading is not None and self._reading.done()

    def _read(self, connection: Connection, job: Job) -> object:
        """The result of a job, or its exception."""
        self._reading = job.future
        self._jobs.begin(job, connection)
        try:
            return job.work(connection)
        # The thread's boundary: whatever a job raises belongs to its caller, not to the thread.
        except Exception as error:  # noqa: BLE001
            return as_store_error(error)
        finally:
            self._jobs.end(job)
            self._reading = None
            # Only now: where an abandoned job ended its transaction itself, SQLite interrupted that
            # too, now and then, and all later reads saw what was stored at the time.
            if connection.in_transaction:
                connection.execute("COMMIT")

    def _run_alone(self, connection: Connection, job: Job) -> object:
        """The result of the one job of a transaction, or its exception with the transaction's
        writes undone."""
        try:
            return job.work(connection)
        except Exception as error:  # noqa: BLE001 - as above
            if connection.in_transaction:  # where the disk is full SQLite has undone it
                connection.execute("ROLLBACK")
            connection.execute("BEGIN")  # there is nothing left to commit
            return as_store_error(error)

    def _run_in_savepoint(self, connection: Connection, job: Job) -> object:
        """The result of one of several jobs, or its exception with its own writes undone."""
        connection.execute("SAVEPOINT job")
        try:
            result = job.work(connection)
        except Exception as error:
            if not connection.in_transaction:  # undone with the writes of the others
                raise
            connection.execute("ROLLBACK TO job")
            result = as_store_error(error)
        connection.execute("RELEASE job")
        return result

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        index, self._index = self._index, None
        if self._writes:
            self._changes.on_disconnect()
        if connection is not None:
            with suppress(sqlite3.Error):
                self._opener.close(connection)
        if index is not None:
            release(index)


def consistent_read(connection: Connection, work: Callable[[Connection], T]) -> T:
    """The result of ``work``, all of whose statements read the same snapshot.

    A single statement needs no transaction: BEGIN and COMMIT each release the GIL and wait for it.
    ``Worker`` ends the transaction.
    """
    if not connection.in_transaction:
        connection.execute("BEGIN")
    return work(connection)


def readers(name: str, opener: Opener, count: int) -> list[Worker]:
    """Reading threads that share a queue of jobs."""
    jobs = Jobs()
    return [Worker(f"{name}-{n}", opener, writes=False, jobs=jobs) for n in range(count)]


def as_store_error(error: Exception) -> Exception:
    """The StoreError for an error of SQLite, the file or the data; other errors, which are bugs, as
    they are."""
    if is_busy(error):
        return StoreTimeout(f"SQLite: {error}")
    if sqlite_name(error) == "SQLITE_FULL":
        return StoreFull(f"SQLite: {error}")
    if isinstance(error, sqlite3.Error | OSError | msgspec.MsgspecError):
        return StoreError(f"SQLite: {error}")
    return as_damage(error) or error


def _deliver(batch: list[Job], results: list[object], on_abandoned: Callable[[], None]) -> None:
    """Set the results of jobs in their loops; ``on_abandoned`` is called for each that nobody waits
    for any more."""
    answers: defaultdict[asyncio.AbstractEventLoop, list[Answer]] = defaultdict(list)
    for job, result in zip(batch, results, strict=True):
        answers[job.loop].append((job.future, result))
    for loop, settled in answers.items():
        # If the loop is closed nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_results, settled, on_abandoned)


def _set_results(answers: list[Answer], on_abandoned: Callable[[], None]) -> None:
    for future, result in answers:
        if future.done():
            on_abandoned()
        elif isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
