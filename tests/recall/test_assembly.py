"""Recall as the proxy makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.assembly.recall import recalling_of
from proxy.assembly.resources import open_resources
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreTimeout
from proxy.recall.query.query import RecallQuery
from proxy.telemetry import Telemetry
from tests.support.processes.running import settings_for
from tests.support.store.passages import TENANT, said


async def test_a_chat_does_not_wait_for_what_background_work_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(tmp_path, "http://127.0.0.1:9", store__timeout=30.0)
    async with open_resources(settings, Telemetry()) as resources:
        recall = await recalling_of(resources, delay=None)
        await resources.store.commit(SessionKey(TENANT, "a"), said("x1", "My boat.", user="kai"))
        await recall.indexer.index_session(SessionKey(TENANT, "a"))

        async def read_something_else(*_: object) -> None:
            raise StoreTimeout("its threads are busy")

        for name in ("passages", "lookup", "rows"):
            monkeypatch.setattr(resources.long_timeout_store, name, read_something_else)
        query = RecallQuery(SessionKey(TENANT, "b"), "kai", None, "Which boat?", 500, len)
        found = await recall.recaller.recall(query)
    assert [each.text for each in found.passages] == ["My boat."]
