"""An upstream, and Redis servers that may be ill-treated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.processes import redis as servers
from tests.support.upstream.scripted import ScriptedUpstream


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as scripted:
        yield scripted


@pytest.fixture
def server() -> Iterator[servers.Server]:
    """One that keeps what it was told over a restart."""
    with servers.standalone(appendonly="yes", appendfsync="always") as made:
        yield made
