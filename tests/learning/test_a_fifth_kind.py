"""A kind more is one entry of the list: what it needs beside that is its own."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.chat.message import typed_string_of
from proxy.gateway.context import known_tokens
from proxy.gateway.recording.exchange_recorder import due_after_import
from proxy.learning.job import LearningJob
from proxy.learning.kinds import KINDS, LearningObserver
from proxy.learning.learned import Learned
from proxy.learning.profile.document import Schemas
from proxy.learning.reading import Reader
from proxy.memory.model import Work
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.learning.harness import BACKOFF, ScriptedModel, count
from tests.support.learning.hobbies import HOBBIES, HobbyProfile
from tests.support.memory_api import SESSIONS, open_site, talk

API = "/memory/v1"
KAI = f"{API}/users/kai"
FIVE = (*KINDS, HOBBIES)
WORK = Work(tenant=digest_of(b"alice"), session="s", kind="learning", profile="", due=0.0)


@pytest.fixture
def settings() -> Settings:
    settings = Settings.model_validate({"upstream": {"url": "http://127.0.0.1:9/v1"}})
    return settings.model_copy(update={"memory": HobbyProfile()})


@pytest.fixture
async def client(
    settings: Settings, store: Backend, tmp_path: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """Of a proxy that knows five kinds, whose document speaks of four."""
    async with open_site(settings, store, tmp_path, kinds=FIVE) as site:
        transport = httpx.ASGITransport(site, client=("127.0.0.1", 50000))
        headers = {"authorization": "Bearer alice"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8080", headers=headers
        ) as client:
            yield client


@pytest.fixture
async def told(client: httpx.AsyncClient, settings: Settings, store: Backend) -> None:
    """Something was said, and learned from."""
    body = {"messages": talk("I went sailing again.", "How was it?"), "user": "kai"}
    assert (await client.post(f"{SESSIONS}/s/messages", json=body)).status_code == 200
    schemas = Schemas(settings.schemas)
    learned = Learned(store, schemas, typed_string_of, count, settings.profile, time.time, FIVE)
    model = ScriptedModel(answers=[json.dumps(["sailing"])])
    job = LearningJob(
        Reader(store, typed_string_of, count),
        store,
        store,
        settings.profile,
        time.time,
        BACKOFF,
        learned.extractors(model, LearningObserver()),
        learned.improvers(model, LearningObserver()),
    )
    assert await job.run(WORK) is None
    assert [asked.feature for asked in model.asked] == ["hobbies"]


async def memories(client: httpx.AsyncClient) -> list[Any]:
    found = (await client.get(f"{KAI}/memories", params={"kind": "hobby"})).json()
    return [each["text"] for each in found["data"]]


def test_its_settings_say_when_it_is_due_and_what_it_may_take(settings: Settings) -> None:
    assert [due.kind for due in due_after_import(settings.memory, "kai", 1.0)] == ["learning"]
    assert known_tokens(settings.memory) == 300
    assert settings.memory.writers["hobbies"].enabled


@pytest.mark.usefixtures("told")
async def test_it_is_learned_and_stands_in_prompts(client: httpx.AsyncClient) -> None:
    body = {"messages": talk("What shall I do on Sunday?")}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    said = json.dumps(preview["messages"])
    assert 'kind=\\"hobbies\\"' in said and "They like sailing." in said


@pytest.mark.usefixtures("told")
async def test_it_is_listed_counted_and_searched(client: httpx.AsyncClient) -> None:
    assert await memories(client) == ["They like sailing."]
    one = (await client.get(f"{KAI}/memories/hobby_sailing")).json()
    assert (one["kind"], one["sources"][0]["session_id"]) == ("hobby", "s")
    assert (await client.get(KAI)).json()["memories"]["hobby"] == 1
    body = {"query": "Who likes sailing?", "kinds": ["hobby"]}
    (found,) = (await client.post(f"{KAI}/memories/search", json=body)).json()["data"]
    assert found["text"] == "They like sailing." and found["score"] > 0


@pytest.mark.usefixtures("told")
async def test_only_the_proxy_writes_it(client: httpx.AsyncClient) -> None:
    item = {"namespace": ["users", "kai", "hobbies"], "key": "hobby_theft", "value": {}}
    assert (await client.put(f"{API}/store/items", json=item)).status_code == 409


@pytest.mark.usefixtures("told")
async def test_it_is_exported_erased_and_brought_back(client: httpx.AsyncClient) -> None:
    export = (await client.get(f"{KAI}/export")).content
    receipt = (await client.delete(KAI)).json()
    assert receipt["counts"]["memories"]["hobby"] == 1 and receipt["counts"]["items"] == 0
    assert not await memories(client)
    assert (await client.post(f"{API}/import", content=export)).status_code == 200
    assert await memories(client) == ["They like sailing."]


@pytest.mark.usefixtures("told")
async def test_what_others_made_up_is_not_brought_back(client: httpx.AsyncClient) -> None:
    export = (await client.get(f"{KAI}/export")).content
    await client.delete(KAI)
    forged = export.replace(b'"id":"hobby_sailing"', b'"id":"hobby_theft"')
    assert forged != export
    assert (await client.post(f"{API}/import", content=forged)).status_code == 400


@pytest.mark.usefixtures("told")
async def test_it_is_forgotten_with_its_session_and_deleted_alone(
    client: httpx.AsyncClient,
) -> None:
    would = (await client.post(f"{SESSIONS}/s/forget", json={"dry_run": True})).json()
    assert [(each["kind"], each["action"]) for each in would["data"]] == [("hobby", "deleted")]
    assert (await client.delete(f"{KAI}/memories/hobby_sailing")).status_code == 200
    assert (await client.get(f"{KAI}/memories/hobby_sailing")).status_code == 404
    assert (await client.post(f"{SESSIONS}/s/forget")).json()["data"] == []
