"""Every back end, real: the servers live as long as the test session, each test has its tenant."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from proxy.memory.model import SessionKey
from proxy.stores.open import Backend, open_store
from tests.support.clock import Clock
from tests.support.processes import redis as servers
from tests.support.waiting import PATIENCE

BACK_ENDS = ("memory", "sqlite", "redis", "redis-cluster", "redis-sentinel")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(scope="module")
def machine() -> Iterator[servers.Server]:
    """A server for the tests of one file alone, which may empty it."""
    with servers.standalone() as server:
        yield server


@pytest.fixture
def server(machine: servers.Server) -> servers.Server:
    """A server that is empty."""
    machine.ask("FLUSHALL")
    return machine


@pytest.fixture(scope="session")
def redis_cluster_url() -> Iterator[str]:
    with servers.cluster() as cluster:
        yield cluster.url


@pytest.fixture(scope="session")
def redis_sentinel_url() -> Iterator[str]:
    with servers.guarded() as guarded:
        yield guarded.url


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(name) if "-" in name else ())
        for name in BACK_ENDS
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a back end; tests that use it run on all of them.

    The two that take seconds to start are started in one process each.
    """
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/memory.db"
    address: str = request.getfixturevalue(str(request.param).replace("-", "_") + "_url")
    return address


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(url: str, clock: Clock) -> AsyncIterator[Backend]:
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(store: Backend, url: str, clock: Clock) -> AsyncIterator[Backend]:
    """The store of another process."""
    if url.startswith("memory"):
        yield store  # nobody else can open it
        return
    other = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=clock)
    await other.open()
    yield other
    await other.close()


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def key(tenant: str) -> SessionKey:
    return SessionKey(tenant, "session")
