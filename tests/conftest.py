"""What every test gets: an environment in which nobody's settings are set; and what many use."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.support.processes.authorities import trust_nobody
from tests.support.scheduling import ByFile, rank
from tests.support.store.places import Places

trust_nobody()

HERE = Path(__file__).parent

LONG = ("api", "bench", "browser", "clients", "e2e")
"""Folders of programmes that take minutes: a browser, real models, made-up requests, benchmarks."""


# A busy machine is no finding: no example has a time in which it must be done.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What the marks leave out is not read: each process would take ten seconds for it."""
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(HERE):
        return None
    long = collection_path.relative_to(HERE).parts[0] in LONG
    wanted = config.getoption("-m")
    if wanted == "not slow":
        return long or None
    if wanted == "slow" and not long:
        return "mark.slow" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    return ByFile(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _part(item) in LONG:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: rank(_part(item)))


def _part(item: pytest.Item) -> str:
    """The folder in ``tests`` that it is in, or its file."""
    return item.nodeid.split("::")[0].split("/")[1]


def pytest_collection_finish() -> None:
    """All tests and what they import stay to the end: no collection need look at them again.

    It is done behind every proxy of a test, so that what was left open is told of that test.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MEMORY_PROXY_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    """Stores in good health, which tests use one after the other."""
    with ExitStack() as started:
        yield Places(started)
