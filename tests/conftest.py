"""What every test gets: an environment in which nobody's settings are set; and what many use."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.places import Places


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
