"""Proxies that many tests share: one for each store, alive for the whole run.

Tests that use them run in the session's event loop and talk in sessions of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.rig import Rig, rig
from tests.support.store.places import IN_GROUPS, Places
from tests.support.talk import recalling

PROFILES = {
    "brief": {"window": "message_window", "max_messages": 2, "evict_to": 1.0},
    "blind": {"window": "none"},
    "forgetful": {"remember_system": False},
    "whole": {"client_history": "full"},
    "piecewise": {"client_history": "delta"},
    "small-media": {"max_inline_media_bytes": 64},
    "short-lived": {"ttl": 1},
    "patient": {"on_disconnect": "drain"},
    "keeping": {"emulate_response_state": True},
}


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gateway-") as path:
        yield Path(path)


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=IN_GROUPS,
)
async def on_every_store(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Rig]:
    place = folder / str(request.param)
    place.mkdir()
    with ExitStack() as started:
        url = Places(started).of(str(request.param), place).url
        async with rig(place, store__url=url, profiles=PROFILES) as ready:
            yield ready


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def on_sqlite(folder: Path) -> AsyncIterator[Rig]:
    place = folder / "shared"
    place.mkdir()
    async with rig(place, profiles=PROFILES) as ready:
        yield ready


@pytest.fixture
def every(on_every_store: Rig) -> Rig:
    """A proxy on each of the stores in turn, with nothing scripted."""
    on_every_store.reset()
    return on_every_store


@pytest.fixture
def one(on_sqlite: Rig) -> Rig:
    """A proxy on SQLite, with nothing scripted."""
    on_sqlite.reset()
    return on_sqlite


@pytest_asyncio.fixture(
    scope="session", loop_scope="session", params=["direct", "aiohttp", "httpx"]
)
async def relaying(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Rig]:
    """A proxy with each of the upstream's clients."""
    async with rig(folder / f"by-{request.param}", upstream__client=request.param) as ready:
        yield ready


@pytest.fixture
def relayed(relaying: Rig) -> Rig:
    """A proxy whose upstream takes anything: what comes is what the test is about."""
    relaying.reset()
    relaying.up.strict = False
    return relaying


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remembering(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """A proxy with the profiles of recall and time enough for it on a busy machine."""
    folder: Path = tmp_path_factory.mktemp("remembering")
    async with rig(folder, profiles=recalling.PROFILES, memory__recall__timeout=5) as ready:
        yield ready
