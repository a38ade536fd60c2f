"""A store in a SQLite file, and files that cannot grow."""

from __future__ import annotations

import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from proxy.stores.sqlite.store import SQLiteStore
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE


@asynccontextmanager
async def opened(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    """One that is patient, open."""
    store = SQLiteStore(path, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """This process, and those that it starts meanwhile, can write no more into one, as if the disk
    were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
