"""What every test gets: an environment in which nobody's settings are set."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MEMORY_PROXY_"):
            monkeypatch.delenv(name)
