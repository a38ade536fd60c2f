"""A proxy in a thread: what the frameworks call is mostly synchronous, and would stop its loop."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import httpx
import pytest

from proxy.integrations.langgraph import MemoryProxyStore
from tests.support.processes.running import running, settings_for
from tests.support.upstream.scripted import ScriptedUpstream

ADMIN_KEY = "the-administrators-key"
SECONDS = 30

T = TypeVar("T")
Open = Callable[[], MemoryProxyStore]


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    up: ScriptedUpstream


@contextmanager
def looping() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    with looping() as loop:

        def wait(work: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(work, loop).result(SECONDS)

        stack = AsyncExitStack()
        try:
            yield wait(_serve(stack, folder))
        finally:
            wait(stack.aclose())


async def _serve(stack: AsyncExitStack, folder: Path) -> Served:
    up = await stack.enter_async_context(ScriptedUpstream())
    settings = settings_for(folder, up.url, store__url="memory://", server__admin_key=ADMIN_KEY)
    proxy = await stack.enter_async_context(running(settings))
    return Served(proxy.url, up)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("proxy")) as served:
        yield served


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """One client for all that a module opens."""
    with httpx.Client(timeout=10) as client:
        yield client


@pytest.fixture
def key() -> str:
    """Of a tenant that nobody has used."""
    return f"sk-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def open_store(served: Served, http: httpx.Client) -> Open:
    """Stores with nothing in them."""
    return lambda: MemoryProxyStore(served.url, f"sk-{uuid.uuid4().hex}", client=http)


@pytest.fixture
def store(open_store: Open) -> MemoryProxyStore:
    return open_store()
