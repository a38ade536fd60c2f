"""A running proxy with /mcp, on one file and on Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.rig import Rig, rig
from tests.support.store.places import Places

ADMIN = "the-key-of-the-administrator"


@pytest.fixture(params=["sqlite", "redis"])
async def proxy(
    request: pytest.FixtureRequest, places: Places, tmp_path: Path
) -> AsyncIterator[Rig]:
    url = places.of(request.param, tmp_path).url
    async with rig(tmp_path, mcp__enabled=True, store__url=url, server__admin_key=ADMIN) as ready:
        yield ready
