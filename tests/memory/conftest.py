"""A recorder over a store that fails when told to, and a real spool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.recording.listeners import Listeners
from proxy.memory.recording.spool import Spool
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.store.recording import Workbench, recorder_over


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
async def bench(store: FaultyStore, path: Path) -> AsyncIterator[Workbench]:
    """Its spool is open; nothing is replayed unless the test says so."""
    spool = Spool(path, store.name, 1 << 24)
    await asyncio.to_thread(spool.open)
    clock, quarantined, edited = Clock(), list[str](), list[tuple[SessionKey, Sequence[int]]]()
    listeners = Listeners(
        on_quarantine=lambda: quarantined.append("one"),
        on_edited=lambda key, seqs: edited.append((key, seqs)),
    )
    recorder = recorder_over(store, spool, listeners=listeners, clock=clock)
    yield Workbench(store, spool, recorder, clock, quarantined, edited)
    await recorder.close(5)
