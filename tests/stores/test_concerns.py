"""What a store says of itself that endangers memory although it works."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from proxy.memory.store import Store
from proxy.stores.open import Backend, open_store
from tests.support.processes import redis as servers
from tests.support.processes.redis import Server
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with servers.standalone(appendonly="yes") as server:
        yield server


def opened(url: str, wait_replicas: int = 0) -> Store:
    return open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, wait_replicas=wait_replicas)


async def concerns(server: Server, wait_replicas: int = 0) -> list[str]:
    store = opened(server.url, wait_replicas)
    try:
        return list(await store.warnings())
    finally:
        await store.close()


async def test_every_store_answers(store: Backend) -> None:
    assert all(sentence and isinstance(sentence, str) for sentence in await store.warnings())


async def test_a_server_that_keeps_what_it_has_is_no_concern(server: Server) -> None:
    assert await concerns(server) == []


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_may_drop_keys_is_a_concern(server: Server, policy: str) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", policy)
    (concern,) = await concerns(server)
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert policy in concern and "noeviction" in concern


async def test_a_server_that_writes_nothing_down_is_a_concern(server: Server) -> None:
    server.ask("CONFIG", "SET", "appendonly", "no")
    (concern,) = await concerns(server)
    server.ask("CONFIG", "SET", "save", "3600 1")
    assert await concerns(server) == []
    server.ask("CONFIG", "SET", "save", "")
    server.ask("CONFIG", "SET", "appendonly", "yes")
    assert "appendonly" in concern


async def test_replicas_that_are_missing_are_a_concern(server: Server) -> None:
    (concern,) = await concerns(server, wait_replicas=2)
    assert concern.startswith("0 of 2 replicas") and "spool" in concern


@pytest.mark.parametrize(("by", "told"), [(-30, "30 s behind"), (30, "30 s ahead of")])
async def test_a_clock_that_differs_from_the_servers_is_a_concern(
    server: Server, by: float, told: str
) -> None:
    store = open_store(
        server.url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=lambda: time.time() + by
    )
    try:
        (concern,) = await store.warnings()
        assert told in concern and "NTP" in concern
    finally:
        await store.close()


async def test_what_a_user_may_not_ask_is_no_concern(server: Server) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    server.ask("ACL", "SETUSER", "shy", "on", ">word", "~*", "+@all", "-config", "-info")
    store = opened(f"redis://shy:word@{server.address}", wait_replicas=1)
    try:
        assert list(await store.warnings()) == []
    finally:
        await store.close()
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_a_disk_that_is_nearly_full_is_a_concern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(f"sqlite:///{tmp_path}/memory.db")
    assert list(await store.warnings()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2048))
    assert list(await store.warnings()) == ["the disk of the store has 2 KiB left"]
