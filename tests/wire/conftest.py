"""The seam's two implementations, side by side."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import Kind, Upstream, open_upstream
from tests.support.upstream.scripted import ScriptedUpstream

Connect = Callable[..., AbstractAsyncContextManager[Upstream]]


@pytest.fixture(params=["direct", "aiohttp", "httpx"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def connect(kind: Kind) -> Connect:
    """A client for a URL, which must have left nothing open when its block ends."""

    @asynccontextmanager
    async def opened(url: str, **options: Any) -> AsyncIterator[Upstream]:
        upstream = open_upstream(kind, UpstreamOptions(url, **options))
        await upstream.open()
        try:
            yield upstream
        finally:
            await upstream.close()
        assert upstream.exchanges == 0

    return opened


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as scripted:
        yield scripted


@pytest.fixture
async def upstream(connect: Connect, up: ScriptedUpstream) -> AsyncIterator[Upstream]:
    async with connect(up.url) as client:
        yield client


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
