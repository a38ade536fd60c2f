"""A harness over SQLite; what stores do alike is in tests/stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.stores.open import Backend, open_store
from tests.support.clock import Clock
from tests.support.learning.harness import LIVES, MAY, Harness, ScriptedModel, learning
from tests.support.waiting import PATIENCE


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Backend]:
    store = open_store(f"sqlite:///{tmp_path}/memory.db", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def harness(store: Backend) -> Harness:
    return Harness(store, ScriptedModel([LIVES]), Clock(MAY), learning())
