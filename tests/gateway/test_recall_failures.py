"""Whatever goes wrong in recall, the chat goes on; and what was missed is made up for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.store import StoreError, StoreTimeout
from proxy.recall.index import Owner
from proxy.recall.ranking.packing import mark_check
from proxy.stores.open import open_store
from tests.support.rig import Rig, rig
from tests.support.talk.recalling import Person, index, marker, somebody, user_said
from tests.support.waiting import PATIENCE, eventually, felt

LOOKS = ("lookup", "rows", "passages")
"""What a store is asked by recall, and by nothing else that a chat waits for."""

PATIENT = 10.0
SETTINGS: dict[str, object] = {"memory__recall__timeout": PATIENT}


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Rig]:
    """A proxy of the test's own, whose recall has time."""
    async with rig(tmp_path, **SETTINGS) as ready:
        yield ready


def failing(error: Exception) -> Callable[..., Awaitable[Any]]:
    async def fail(*arguments: object, **named: object) -> Any:
        raise error

    return fail


def held(store: Any, name: str, gate: asyncio.Event) -> Callable[..., Awaitable[Any]]:
    """A call that does not answer before the gate is open."""
    real = getattr(store, name)

    async def hold(*arguments: object, **named: object) -> Any:
        await gate.wait()
        return await real(*arguments, **named)

    return hold


async def until_reminded(person: Person, word: str) -> float:
    async def reminded() -> bool:
        return await person.is_reminded_of(word, x_memory_mode="read")

    return await eventually(reminded)


@pytest.mark.parametrize("call", LOOKS)
@pytest.mark.parametrize(
    "error",
    [StoreError("down"), StoreTimeout("slow"), ValueError("a bug"), KeyError(0), RecursionError()],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_in_recall_does_not_fail_the_chat(
    own: Rig, monkeypatch: pytest.MonkeyPatch, call: str, error: Exception
) -> None:
    person, word = somebody(own), marker()
    talk = await person.tells("I had soup.")
    await person.tells(f"My boat is called {word}.")
    with monkeypatch.context() as patch:
        patch.setattr(own.store, call, failing(error), raising=False)
        response = await person.says(talk, f"What about {word}?")
    assert response.headers["x-memory-reason"] == "recall_error"
    assert response.headers["x-memory-status"] == "applied"
    assert response.headers["x-memory-recalled"] == "0"
    sent = own.up.requests[-1].messages
    assert [sent[0], sent[-1]] == [user_said("I had soup."), user_said(f"What about {word}?")]
    exchange = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert exchange.memory.reason == "recall_error"
    assert await person.is_reminded_of(word, talk)


@pytest.mark.parametrize("call", LOOKS)
async def test_a_store_that_hangs_in_recall_costs_its_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    async with rig(tmp_path, store__timeout=20, memory__recall__timeout=0.2) as ready:
        person, word = somebody(ready), marker()
        talk = await person.tells("I had soup.")
        await person.tells(f"My boat is called {word}.")
        gate = asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(ready.store, call, held(ready.store, call, gate), raising=False)
            response, seconds = await felt(person.says(talk, f"What about {word}?"))
            gate.set()
        assert response.headers["x-memory-reason"] == "recall_timeout"
        assert ready.up.requests[-1].messages[0] == user_said("I had soup.")
        assert seconds < PATIENT
        told = response.headers["server-timing"].partition("recall;dur=")[2]
        assert float(told) >= 190


async def test_recall_is_not_asked_where_the_history_could_not_be_loaded(
    own: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, word = somebody(own), marker()
    await person.tells(f"My boat is called {word}.")
    with monkeypatch.context() as patch:
        patch.setattr(own.store, "load", failing(StoreError("down")), raising=False)
        response = await person.says(person.talk(), f"What about {word}?")
    assert response.headers["x-memory-status"] == "degraded"
    assert response.headers["x-memory-recalled"] == "0"


async def test_what_could_not_be_indexed_is_indexed_once_the_store_can(
    own: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, word = somebody(own), marker()
    tried = asyncio.Event()

    async def fail(*arguments: object) -> bool:
        tried.set()
        raise StoreError("full")

    with monkeypatch.context() as patch:
        patch.setattr(own.store, "write", fail, raising=False)
        await person.says(person.talk(), f"My boat is called {word}.")
        await asyncio.wait_for(tried.wait(), PATIENCE)
    assert await until_reminded(person, word) > 0


async def test_where_the_store_takes_nothing_what_is_indexed_is_recalled(
    own: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, word = somebody(own), marker()
    talk = await person.tells(f"My boat is called {word}.")
    with monkeypatch.context() as patch:
        patch.setattr(own.store, "write", failing(StoreError("full")), raising=False)
        await person.says(talk, "I had soup.")
        response = await person.says(person.talk(), f"What about {word}?", x_memory_mode="read")
    assert response.headers["x-memory-recalled"] != "0"
    assert "x-memory-reason" not in response.headers


async def test_what_came_by_way_of_the_spool_is_indexed_too(
    own: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, word = somebody(own), marker()
    talk = person.talk()
    with monkeypatch.context() as patch:
        patch.setattr(own.store, "commit", failing(StoreError("down")))
        await person.says(talk, f"My boat is called {word}.")
    assert await until_reminded(person, word) > 0
    assert await talk.log() == f"My boat is called {word}. Noted."


async def test_what_an_ended_process_had_not_indexed_is_found_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = marker()
    async with rig(tmp_path, **SETTINGS) as first:
        person = somebody(first)
        monkeypatch.setattr(first.store, "write", failing(StoreError("killed")), raising=False)
        await person.says(person.talk(), f"My boat is called {word}.")
    async with rig(tmp_path, **SETTINGS) as second:
        again = Person(second, person.user, {})
        assert not await again.is_reminded_of(word, x_memory_mode="read")
        assert await until_reminded(again, word) > 0


async def test_at_its_end_a_proxy_indexes_what_it_has_recorded(tmp_path: Path) -> None:
    async with rig(tmp_path) as ready:
        person = somebody(ready)
        talk = person.talk()
        for text in ("My boat is red.", "My cat is black."):
            await person.says(talk, text)
        newest = (await talk.history())[-1]
    store = open_store(f"sqlite:///{tmp_path}/memory.db", timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        owner = Owner(talk.key.tenant, user=str(person.user))
        mark = (await store.lookup(owner, (), 0, talk.session)).mark
    finally:
        await store.close()
    assert mark is not None
    assert (mark.seq, mark.check) == (newest.seq, mark_check(newest.card.id))


async def test_two_proxies_on_one_store_recall_what_the_other_recorded(tmp_path: Path) -> None:
    async with rig(tmp_path, **SETTINGS) as one, rig(tmp_path, **SETTINGS) as other:
        here, word = somebody(one), marker()
        there = Person(other, here.user, {})
        talk = here.talk()
        await asyncio.gather(
            here.says(talk, f"My boat is called {word}."), there.says(there.talk(), "I had soup.")
        )
        await asyncio.gather(*(index(each.store.real, talk.key) for each in (one, other)))  # type: ignore[arg-type]
        found = await there.asks(f"What about {word}?")
        assert found["recall"].count(f"My boat is called {word}.") == 1
