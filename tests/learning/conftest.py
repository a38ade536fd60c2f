"""A classroom over a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from proxy.stores import open_store
from proxy.stores.backend import Backend
from tests.support.clock import Clock
from tests.support.learning import LIVES, MAY, Classroom, Extractor, learning


@pytest.fixture
async def store() -> AsyncIterator[Backend]:
    store = open_store("memory://", timeout=5, commit_timeout=30)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def room(store: Backend) -> Classroom:
    return Classroom(store, Extractor([LIVES]), Clock(MAY), learning())
