"""Recall as the proxy makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from proxy.assembly.recall import recalling_of
from proxy.assembly.resources import open_resources
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreTimeout
from proxy.recall.query.query import RecallQuery
from proxy.stores.open import Backend
from proxy.telemetry import Telemetry
from tests.support.processes.running import settings_for
from tests.support.store.passages import TENANT, said


class BusyStore:
    """A store whose threads read something else once it is ``busy``."""

    def __init__(self, store: Backend) -> None:
        self._store, self.busy = store, False

    def __getattr__(self, name: str) -> Any:
        if self.busy:
            raise StoreTimeout("its threads are busy")
        return getattr(self._store, name)


async def test_a_chat_does_not_wait_for_what_background_work_reads(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "http://127.0.0.1:9", store__timeout=30.0)
    async with open_resources(settings, Telemetry()) as opened:
        busy = BusyStore(opened.long_timeout_store)
        resources = replace(opened, long_timeout_store=cast(Backend, busy))
        recall = await recalling_of(resources, delay=None)
        await resources.store.commit(SessionKey(TENANT, "a"), said("x1", "My boat.", user="kai"))
        await recall.indexer.index_session(SessionKey(TENANT, "a"))
        busy.busy = True
        query = RecallQuery(SessionKey(TENANT, "b"), "kai", None, "Which boat?", 500, len)
        found = await recall.recaller.recall(query)
        busy.busy = False
    assert [each.text for each in found.passages] == ["My boat."]
