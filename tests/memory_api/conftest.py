"""A site for the tests of the memory API, on SQLite; what stores do alike is in tests/stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from proxy.settings import Settings
from proxy.stores.open import Backend, open_store
from tests.support.memory_api import ADMIN_KEY, Site, open_site
from tests.support.waiting import PATIENCE

NOBODY = {"url": "http://127.0.0.1:9/v1"}
"""An upstream that is not asked; without TLS, whose certificates take long to load."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Backend]:
    store = open_store(f"sqlite:///{tmp_path}/memory.db", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def settings() -> Settings:
    """Overridden by tests that want others."""
    values = {"server": {"admin_key": ADMIN_KEY}, "store": {"timeout": 5}, "upstream": NOBODY}
    return Settings.model_validate(values)


@pytest.fixture
async def site(settings: Settings, store: Backend, tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(settings, store, tmp_path) as site:
        yield site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """The tenant of the key "alice"."""
    async with site.client("alice") as client:
        yield client
