"""The SQLite file and its two threads.

One thread writes and one reads: reads do not queue behind commits, and commits that wait together
share one fsync.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from proxy.memory.store import StoreError
from proxy.stores.sqlite_schema import connect
from proxy.stores.sqlite_waste import sweep
from proxy.stores.sqlite_worker import Worker

T = TypeVar("T")

ROOM = 16 * 1024 * 1024
"""Bytes that a disk should have left: a large exchange and the log before it."""


class SQLiteFile:
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
        return f"<{type(self).__name__} [{self._path}, {'open' if self._writer else 'closed'}]>"

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

    async def concerns(self) -> Sequence[str]:
        left = await asyncio.to_thread(_room, self._path.parent)
        if left is None or left >= ROOM:
            return ()
        return (f"the disk of the store has {left // 1024} KiB left",)

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

    async def _erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work``, once nothing of what it removed is in the files any more.

        Commits of others go in between the steps.
        """
        result = await self._write(work, truncate=True)
        while await self._write(sweep, truncate=True):
            pass
        return result


def _room(folder: Path) -> int | None:
    """Bytes that may still be written there; None where that cannot be known."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
