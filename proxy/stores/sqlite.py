"""SQLiteStore: all memory in one file, for any number of processes on one host.

One thread writes and one reads: reads do not queue behind commits, and commits that wait together
share one fsync.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from proxy.memory.model import (
    Amendment,
    Ask,
    Commit,
    Exchange,
    Message,
    Outcome,
    Page,
    Session,
    SessionKey,
    Snapshot,
    State,
)
from proxy.memory.store import StoreError
from proxy.stores import sqlite_erase, sqlite_list, sqlite_read, sqlite_write
from proxy.stores.sqlite_schema import connect
from proxy.stores.sqlite_worker import Worker

T = TypeVar("T")


class SQLiteStore:
    """``timeout`` bounds reads, ``commit_timeout`` writes and waiting for other processes (s)."""

    def __init__(
        self,
        path: Path,
        *,
        timeout: float = 0.25,
        commit_timeout: float = 2.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path.absolute()
        self.name = f"sqlite:///{self._path}"
        self._timeout = timeout
        self._commit_timeout = commit_timeout
        self._clock = clock
        self._connecting = Lock()
        self._reader: Worker | None = None
        self._writer: Worker | None = None

    def __repr__(self) -> str:
        return f"<SQLiteStore [{self._path}, {'open' if self._writer else 'closed'}]>"

    async def open(self) -> None:
        """Start the threads.  The file is opened with the first use, and tried anew each time."""
        if self._writer is None:
            self._writer = Worker("sqlite-writer", self._connect, writes=True)
            self._reader = Worker("sqlite-reader", self._connect, writes=False)

    async def ping(self) -> None:
        # A statement that is not read to its end would keep its look at the file open.
        await self._read(lambda c: c.execute("SELECT count(*) FROM sessions").fetchone())
        # Touches a page and thereby the disk, and changes nothing.
        await self._write(lambda c: c.execute("PRAGMA application_id = 0").fetchone())

    async def close(self) -> None:
        workers = [worker for worker in (self._writer, self._reader) if worker]
        self._writer = self._reader = None
        for worker in workers:
            worker.stop()
        for worker in workers:
            await asyncio.to_thread(worker.join, self._commit_timeout * 2)

    def _connect(self) -> sqlite3.Connection:
        # One thread after the other: creating the file must be over before anyone locks it.
        with self._connecting:
            return connect(self._path, self._commit_timeout)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            raise StoreError("the store is not open")
        return await self._reader.run(work, self._timeout)

    async def _write(self, work: Callable[[sqlite3.Connection], T], *, truncate: bool = False) -> T:
        if self._writer is None:
            raise StoreError("the store is not open")
        return await self._writer.run(work, self._commit_timeout, truncate=truncate)

    # Memory

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        now = self._clock()
        return await self._read(lambda connection: sqlite_read.load(connection, key, ask, now))

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        now = self._clock()
        return await self._read(lambda connection: sqlite_read.bodies(connection, key, ids, now))

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        now = self._clock()
        return await self._write(lambda c: sqlite_write.commit(c, key, commit, now))

    async def amend(self, key: SessionKey, amendment: Amendment) -> None:
        now = self._clock()
        await self._write(lambda c: sqlite_write.amend(c, key, amendment, now))

    # Archive

    async def session(self, key: SessionKey) -> Session | None:
        now = self._clock()
        return await self._read(lambda connection: sqlite_list.session(connection, key, now))

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        now = self._clock()
        return await self._read(
            lambda connection: sqlite_list.sessions(connection, tenant, user, after, limit, now)
        )

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        now = self._clock()
        return await self._read(
            lambda connection: sqlite_list.messages(connection, key, states, after, limit, now)
        )

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        now = self._clock()
        return await self._read(lambda c: sqlite_list.exchange(c, key, exchange, now))

    async def delete(self, key: SessionKey) -> bool:
        now = self._clock()
        return await self._write(lambda c: sqlite_erase.delete(c, key, now), truncate=True)

    async def move(self, old: str, new: str) -> int:
        now = self._clock()
        return await self._write(lambda c: sqlite_erase.move(c, old, new, now))
