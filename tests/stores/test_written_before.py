"""What an earlier release has written opens, and all of it is read as it was then."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.recording.spool import Spool
from proxy.settings import Settings
from proxy.stores.open import open_store
from tests.support.clock import Clock
from tests.support.faulty import FaultyStore
from tests.support.memory_api import open_site
from tests.support.processes import redis as servers
from tests.support.store import written
from tests.support.store.recording import recorder_over
from tests.support.waiting import PATIENCE

DATA = Path(__file__).parent / "data"
STORE = "sqlite:///before"
"""Which store the spool is for."""


def unpacked(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.gz").read_bytes())


def expected(part: str) -> Any:
    return json.loads(unpacked("expected.json"))[part]


async def seen(url: str, *, anew: bool = False) -> Any:
    """All that is read there, with ``anew`` after all of it has been written."""
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=Clock())
    await store.open()
    try:
        if anew:
            await written.write(store)
        return await written.read(store)
    finally:
        await store.close()


async def test_a_sqlite_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(unpacked("memory.db"))
    assert await seen(f"sqlite:///{path}") == expected("store")


async def test_the_keys_of_a_redis_server_are_read() -> None:
    with servers.standalone() as server:
        put_back(server)
        assert await seen(server.url) == expected("store")
        server.ask("FLUSHALL")
        assert await seen(server.url, anew=True) == expected("store")


def put_back(server: servers.Server) -> None:
    with server.client() as client:
        for left, *command in json.loads(unpacked("redis.json")):
            name, *arguments = (part.encode("latin-1") for part in command)
            client.execute_command(name, *arguments)
            if left:
                client.pexpire(arguments[0], left)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/new.db"])
async def test_what_is_written_today_reads_the_same(url: str, tmp_path: Path) -> None:
    assert await seen(url.format(tmp_path), anew=True) == expected("store")


async def test_a_spool_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    path.write_bytes(unpacked("spool.db"))
    store, spool = FaultyStore(), Spool(path, STORE, 1 << 24)
    spool.open()
    recorder = recorder_over(store, spool, load_timeout=PATIENCE)
    await recorder.replay()
    assert spool.depth() == (0, 1)
    assert await written.replayed(store) == expected("spool")
    await recorder.close(PATIENCE)


async def test_what_was_learned_is_told_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(unpacked("learned.db"))
    store = open_store(f"sqlite:///{path}", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    async with open_site(Settings(), store, tmp_path) as site, site.client("ada") as client:
        for url, answer in json.loads(unpacked("learned.json")).items():
            assert as_then((await client.get(url)).json(), answer) == answer, url
    await store.close()


def as_then(told: Any, before: Any) -> Any:
    """What is told, without fields that are new since and have no value."""
    match told, before:
        case dict(), dict():
            return {
                name: as_then(value, before.get(name))
                for name, value in told.items()
                if name in before or value is not None
            }
        case list(), list() if len(told) == len(before):
            return [as_then(*each) for each in zip(told, before, strict=True)]
    return told
