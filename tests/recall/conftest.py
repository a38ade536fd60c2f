"""Recall over every store that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.stores.opening import open_store
from tests.support.clock import Clock
from tests.support.passages import Memory, memory
from tests.support.waiting import PATIENCE


@pytest.fixture(params=["memory", "sqlite"])
async def remembering(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    """A clock that stands still, an empty store on it, and recall over that."""
    clock = Clock()
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await store.open()
    yield memory(store, clock)
    await store.close()
