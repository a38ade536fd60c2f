"""The proxy on a socket, its scripted upstream, and a look into the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.processes.running import Running, running, settings_for
from tests.support.store.history import Remembered
from tests.support.upstream.scripted import ScriptedUpstream


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
async def proxy(up: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(tmp_path, up.url, store__timeout=5)) as proxy:
        yield proxy


@pytest.fixture
def remembered(proxy: Running) -> Remembered:
    return Remembered(proxy.settings.store.url)
