"""A classroom over every store that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.stores.backend import Backend
from proxy.stores.opening import open_store
from tests.support.clock import Clock
from tests.support.learning import LIVES, MAY, Classroom, Extractor, learning
from tests.support.waiting import PATIENCE


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def room(store: Backend) -> Classroom:
    return Classroom(store, Extractor([LIVES]), Clock(MAY), learning())
