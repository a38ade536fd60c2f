"""Export, wipe, import: the same memory, on every store and from one to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import servers
from tests.support.chatting import eventually
from tests.support.living import SETTINGS, exported, imported, live, told, wipe, without_time
from tests.support.rig import Rig, rig


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(scope="module")
def redis_cluster_url() -> Iterator[str]:
    with servers.cluster() as cluster:
        yield cluster.url


@pytest.fixture(params=["memory", "sqlite", "redis", "redis-cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    address: str = request.getfixturevalue(str(request.param).replace("-", "_") + "_url")
    return address


async def says_again(here: Rig, before: dict[str, Any]) -> None:
    """The API says what it said: recall's index follows a moment later."""

    async def same() -> bool:
        return await told(here.client) == before

    try:
        await eventually(same, 10)
    except AssertionError:
        assert await told(here.client) == before
        raise


async def test_an_export_brings_back_all_that_was_wiped(url: str, tmp_path: Path) -> None:
    async with rig(tmp_path, store__url=url, **SETTINGS) as here:
        await live(here)
        before, export = await told(here.client), await exported(here.client)
        await wipe(here.store.real)
        assert (await exported(here.client)).count(b"\n") == 2

        answer = await imported(here.client, export)

        assert answer["sessions"] == 5
        assert answer["warnings"] == []
        await says_again(here, before)
        assert without_time(await exported(here.client)) == without_time(export)
        await wipe(here.store.real)
