"""Real client libraries against the real proxy.

Their environments are hundreds of megabytes, so that they are made only where somebody asks for
these tests: in CI, which has some of them, by `make test-release`, and with `-m clients`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.processes.applications import Applications
from tests.support.processes.running import PATIENT, Running, running, settings_for
from tests.support.store.history import Remembered
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.weatherman import Weatherman

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = os.environ.get("CI") or "clients" in config.getoption("-m")
    for item in items:
        if item.path.is_relative_to(HERE) and not wanted and item.get_closest_marker("clients"):
            item.add_marker(pytest.mark.skip(reason="other people's clients: make test-release"))


@pytest.fixture(scope="session")
def applications(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applications]:
    with ExitStack() as started:
        yield Applications(tmp_path_factory.mktemp("applications"), started)


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        upstream.always(Weatherman())
        yield upstream
        assert not upstream.refused


@pytest.fixture
async def proxy(up: ScriptedUpstream, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(tmp_path, up.url, **PATIENT)) as proxy:
        yield proxy


@pytest.fixture
def remembered(proxy: Running) -> Remembered:
    return Remembered(proxy.settings.store.url)
