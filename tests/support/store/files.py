"""A store in a SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
