"""The console in a browser: one Chromium and one proxy a back end for all tests, a tenant each."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support import servers
from tests.support.browsing import ADMIN, Browser, Console, Look, chromium, console
from tests.support.running import Running, running, settings_for
from tests.support.upstream import ScriptedUpstream

BACK_ENDS = ("sqlite", "redis")
HEAVY = ("test_hostile", "test_scale", "test_screens", "test_sessions")
"""Of the files, those that take half of the time."""

PATIENT = {"store__timeout": 10, "store__commit_timeout": 20, "memory__recall__timeout": 10}
"""Where a browser runs too, a machine is slower than a chat would wait for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In two processes at most, each with a browser: more would take more than two cores have."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            part = "browser, heavy" if item.path.stem in HEAVY else "browser"
            item.add_marker(pytest.mark.xdist_group(part))
            # Before the one of the mode "auto", whose loop is each test's own.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.browser)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        yield upstream


class Proxies:
    """A running proxy on each back end, started when it is first asked for.

    ``more`` are settings beside those of all.
    """

    def __init__(
        self, folder: Path, up: ScriptedUpstream, opened: AsyncExitStack, **more: object
    ) -> None:
        self._folder, self._up, self._opened = folder, up, opened
        self._more = {"server__admin_key": ADMIN, **PATIENT, **more}
        self._running: dict[str, Running] = {}

    async def on(self, url: str) -> Running:
        if url not in self._running:
            folder = self._folder / str(len(self._running))
            folder.mkdir()
            more = {**self._more, **({"store__url": url} if url else {})}
            settings = settings_for(folder, self._up.url, **more)
            self._running[url] = await self._opened.enter_async_context(running(settings))
        return self._running[url]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def proxies(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream
) -> AsyncIterator[Proxies]:
    async with AsyncExitStack() as opened:
        yield Proxies(tmp_path_factory.mktemp("console"), up, opened)


@pytest.fixture(scope="session")
def console_redis() -> Iterator[str]:
    with servers.standalone() as server:
        yield server.url


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    """The name of a back end; tests that use it run on all of them."""
    return str(request.param)


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(request: pytest.FixtureRequest, proxies: Proxies) -> Running:
    """On ``back_end`` where the test asks for it, else on SQLite."""
    named = "back_end" in request.fixturenames
    back_end = request.getfixturevalue("back_end") if named else "sqlite"
    redis = back_end == "redis"
    return await proxies.on(request.getfixturevalue("console_redis") if redis else "")


@pytest.fixture
def look() -> Look:
    """Overridden by tests that want another browser."""
    return Look()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    browser: Browser, proxy: Running, up: ScriptedUpstream, look: Look
) -> AsyncIterator[Console]:
    """The console with nobody signed in; its tenant is nobody else's.

    At the end the browser must not have complained of anything.
    """
    async with console(browser, proxy, up, f"sk-{uuid.uuid4().hex}", look) as one:
        yield one
        assert one.complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def inside(visit: Console) -> Console:
    """Signed in, at the list of sessions."""
    await visit.sign_in()
    return visit
