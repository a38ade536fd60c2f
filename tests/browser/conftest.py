"""The console in a browser: one Chromium and one proxy a back end for all tests, a tenant each."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from tests.support.browser.browsing import (
    ADMIN,
    Browser,
    Console,
    Look,
    SparePages,
    chromium,
    console,
    own_page,
)
from tests.support.processes import redis as servers
from tests.support.processes.running import PATIENT, Running, running, settings_for
from tests.support.upstream.scripted import ScriptedUpstream

BACK_ENDS = ("sqlite", "redis")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On each back end, but for those that say that no store has a part in what they test.

    The tests on a back end are one group, with a browser and a proxy of its own.
    """
    if "back_end" in metafunc.fixturenames:
        one = metafunc.definition.get_closest_marker("one_back_end")
        names: tuple[str, ...] = BACK_ENDS if one is None else one.args or BACK_ENDS[:1]
        first, *others = map(_grouped, names)
        metafunc.parametrize("back_end", [first, *map(_for_a_release, others)])


def _grouped(back_end: str) -> ParameterSet:
    return pytest.param(back_end, marks=pytest.mark.xdist_group(f"browser, {back_end}"))


def _for_a_release(param: ParameterSet) -> ParameterSet:
    """That the console does the same on the second back end is asked before a release."""
    return pytest.param(*param.values, marks=[*param.marks, pytest.mark.release])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            # Before the one of the mode "auto", whose loop is each test's own.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.browser)
            # A browser on a busy machine may stand still for as long as a test waits for it; what
            # is wrong with the console fails again.
            item.add_marker(pytest.mark.flaky(reruns=int(bool(os.environ.get("CI")))))


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

    async def on(self, back_end: str) -> Running:
        if back_end not in self._running:
            folder = self._folder / back_end
            folder.mkdir()
            settings = settings_for(folder, self._up.url, **self._more, **self._store(back_end))
            self._running[back_end] = await self._opened.enter_async_context(running(settings))
        return self._running[back_end]

    def _store(self, back_end: str) -> dict[str, object]:
        """A Redis is its own, as proxies with other settings would look after its work too; it
        ends after its proxy."""
        if back_end == "sqlite":
            return {}
        return {"store__url": self._opened.enter_context(servers.standalone()).url}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def proxies(
    tmp_path_factory: pytest.TempPathFactory, up: ScriptedUpstream
) -> AsyncIterator[Proxies]:
    async with AsyncExitStack() as opened:
        yield Proxies(tmp_path_factory.mktemp("console"), up, opened)


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(proxies: Proxies, back_end: str) -> Running:
    return await proxies.on(back_end)


@pytest.fixture
def look() -> Look:
    """Overridden by tests that want another browser."""
    return Look()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def spare(browser: Browser) -> SparePages:
    return SparePages(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    browser: Browser, spare: SparePages, proxy: Running, up: ScriptedUpstream, look: Look
) -> AsyncIterator[Console]:
    """The console with nobody signed in; its tenant is nobody else's.

    At the end the browser must not have complained of anything.
    """
    spared = look == Look()
    pages = spare.at(f"{proxy.url}/memory/") if spared else own_page(browser, look)
    async with (
        pages as page,
        console(page, proxy, up, f"sk-{uuid.uuid4().hex}", loaded=spared) as one,
    ):
        yield one
        assert one.complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def inside(visit: Console) -> Console:
    """Signed in, at the list of sessions."""
    await visit.sign_in()
    return visit
