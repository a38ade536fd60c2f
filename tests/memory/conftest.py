"""A recorder over a store that fails when told to, and a real spool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.planner import Planner
from proxy.memory.recording.recorder import Recorder
from proxy.memory.recording.spool import Spool
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.store.recording import COMMIT_TIMEOUT, LOAD_TIMEOUT, Workbench


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
    recorder = Recorder(
        store,
        spool,
        Planner(store),
        lambda model: len,
        LOAD_TIMEOUT,
        lambda: quarantined.append("one"),
        lambda key: None,
        clock,
        commit_timeout=COMMIT_TIMEOUT,
        on_edited=lambda key, seqs: edited.append((key, seqs)),
    )
    yield Workbench(store, spool, recorder, clock, quarantined, edited)
    await recorder.close(5)
