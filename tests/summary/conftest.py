"""Summaries over a file and a server; the contract of stores has its own tests for the others."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proxy.memory.model import SessionKey
from proxy.stores.open import Backend, open_store
from tests.support.clock import Clock
from tests.support.processes import redis as servers
from tests.support.talk.summarising import Workshop
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    file = f"sqlite:///{tmp_path}/memory.db"
    url = file if request.param == "sqlite" else request.getfixturevalue("redis_url")
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def key() -> SessionKey:
    return SessionKey(f"tenant-{uuid.uuid4().hex[:12]}", "session")


@pytest.fixture
def workshop(store: Backend, key: SessionKey) -> Workshop:
    return Workshop(store, key, Clock(), max_input_tokens=200)
