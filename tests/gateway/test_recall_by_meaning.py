"""Recall by meaning through the running proxy, with a scripted /embeddings beside the upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.rig import rig
from tests.support.store.meanings import meaning
from tests.support.talk.recalling import Person, somebody
from tests.support.upstream.answers import DROPPED, SILENT, Script, error_answer, json_answer
from tests.support.upstream.scripted import Request, ScriptedUpstream
from tests.support.waiting import eventually

VESSEL = "My dinghy is scarlet."
ASKED = "Which boat is red?"
IN_WORDS = "My dinghy?"


def embedded(request: Request) -> Script:
    assert request.path == "/v1/embeddings"
    data = [{"index": n, "embedding": meaning(x)} for n, x in enumerate(request.json["input"])]
    return json_answer({"object": "list", "data": data})


@asynccontextmanager
async def proxy(
    folder: Path, model: ScriptedUpstream, name: str = "meanings", **more: object
) -> AsyncIterator[Person]:
    """Somebody who talks to a proxy with that model."""
    url = f"sqlite:///{folder}/memory.db"
    settings = {"model": name, "url": model.url, "api_key": "sk-embeddings", "timeout": 5.0}
    recall = {"embeddings": settings | more, "timeout": 10.0, "min_score": 0.0}
    async with rig(folder, store__url=url, memory__recall=recall) as found:
        yield somebody(found)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as model:
        model.always(embedded)
        yield model


async def recalls(person: Person, text: str = ASKED) -> bool:
    return VESSEL in (await person.asks(text, x_memory_mode="read")).get("recall", "")


async def by_meaning(person: Person) -> None:
    """Until the vectors are there, which are made in the background."""

    async def found() -> bool:
        return await recalls(person)

    await eventually(found)


async def test_what_says_it_in_other_words_is_recalled(
    tmp_path: Path, model: ScriptedUpstream
) -> None:
    async with proxy(tmp_path, model) as person:
        await person.tells(VESSEL, "I had soup.")
        await by_meaning(person)
    keys = {dict(request.headers).get(b"Authorization") for request in model.requests}
    assert keys == {b"Bearer sk-embeddings"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(error_answer(401, "no"), id="refused"),
        pytest.param(error_answer(500, "oops"), id="broken"),
        pytest.param(json_answer({"data": []}), id="wrong-count"),
        pytest.param(DROPPED, id="dropped"),
        pytest.param(SILENT, id="silent"),
    ],
)
async def test_words_are_enough_while_the_model_does_not_work(
    tmp_path: Path, model: ScriptedUpstream, answer: Script
) -> None:
    model.always(answer)
    async with proxy(tmp_path, model, timeout=0.05) as person:
        await person.tells(VESSEL, "I had soup.")
        for _ in range(3):
            assert await recalls(person, IN_WORDS)


async def test_a_new_process_makes_what_is_missing(tmp_path: Path, model: ScriptedUpstream) -> None:
    model.always(error_answer(400, "not yet"))
    async with proxy(tmp_path, model) as person:
        await person.tells(VESSEL, "I had soup.")
        assert not await recalls(person)
        headers, user = person.headers, person.user
    model.always(embedded)
    async with proxy(tmp_path, model) as again:
        same = Person(again.rig, user, headers)
        await by_meaning(same)


async def test_another_model_begins_anew_by_itself(tmp_path: Path, model: ScriptedUpstream) -> None:
    async with proxy(tmp_path, model) as person:
        await person.tells(VESSEL, "I had soup.")
        await by_meaning(person)
        headers, user = person.headers, person.user
    model.requests.clear()
    async with proxy(tmp_path, model, "another") as again:
        await by_meaning(Person(again.rig, user, headers))
    asked: list[dict[str, Any]] = [request.json for request in model.requests]
    assert {each["model"] for each in asked} == {"another"}
    assert VESSEL in [text for each in asked for text in each["input"]]


async def test_a_deleted_session_is_not_recalled_by_its_vectors(
    tmp_path: Path, model: ScriptedUpstream
) -> None:
    async with proxy(tmp_path, model) as person:
        talk = await person.tells(VESSEL)
        await person.tells("I had soup.", "It rained.")
        await by_meaning(person)
        await person.rig.store.delete(talk.key)
        assert not await recalls(person)
