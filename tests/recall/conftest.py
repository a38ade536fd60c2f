"""Recall over SQLite; what stores do alike is in tests/stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.stores.open import open_store
from tests.support.clock import Clock
from tests.support.store.passages import Memory, memory
from tests.support.waiting import PATIENCE


@pytest.fixture
async def remembering(tmp_path: Path) -> AsyncIterator[Memory]:
    """A clock that stands still, an empty store on it, and recall over that."""
    clock = Clock()
    store = open_store(
        f"sqlite:///{tmp_path}/memory.db", timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock
    )
    await store.open()
    yield memory(store, clock)
    await store.close()
