"""Going on from an answer by its id, from one in the middle of a turn too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from tests.support.rig import Rig
from tests.support.talk.responding import ItemTalk, item_list, output_of
from tests.support.talk.words import messages
from tests.support.upstream.answers import DROPPED, SILENT, Script, error_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

RETRY = {"x_stainless_retry_count": "1"}

stored_or_not = pytest.mark.parametrize("store", [False, True], ids=["kept here", "kept upstream"])


class Branches:
    """What a client says in a session, each time behind the answer that it names: "a1"."""

    def __init__(self, rig: Rig, *, store: bool) -> None:
        self.talk = ItemTalk.of(rig)
        self._store, self._ids = store, dict[str, str]()

    async def say(self, previous: str, sent: str, said: str, **headers: str) -> None:
        self.talk.upstream.reply(*output_of(said))
        answered = await self.talk.post(self.body(previous, sent), **headers)
        assert answered.status_code == 200, (answered.text, self.talk.upstream.refused)
        self._ids[said.partition("(")[0]] = answered.json()["id"]

    def body(self, previous: str, sent: str) -> dict[str, Any]:
        behind = {"previous_response_id": self._ids[previous]} if previous else {}
        input = item_list(messages(sent))
        return {"model": "gpt-5", "input": input, "store": self._store, **behind}

    def got(self, whole: str) -> bool:
        """Had the upstream this conversation, as far as it is sent one?"""
        return self._store or self.talk.sent == whole

    async def log(self) -> str:
        return await self.talk.log()


async def of_two_rounds(rig: Rig, *, store: bool) -> Branches:
    said = Branches(rig, store=store)
    await said.say("", "u1", "a1(c1)")
    await said.say("a1", "t1:c1", "a2(c2)")
    await said.say("a2", "t2:c2", "a3")
    return said


@stored_or_not
async def test_a_call_is_answered_otherwise(every: Rig, store: bool) -> None:
    said = await of_two_rounds(every, store=store)
    await said.say("a1", "t3:c1", "a4")
    assert said.got("u1 a1 t3")
    assert await said.log() == "u1 a1 t3 a4"
    assert await said.talk.gone() == "t1 a2 t2 a3"


@stored_or_not
async def test_so_it_is_when_the_session_has_gone_on(every: Rig, store: bool) -> None:
    said = await of_two_rounds(every, store=store)
    await said.say("a3", "u2", "a4")
    await said.say("a2", "t3:c2", "a5")
    assert said.got("u1 a1 t1 a2 t3")
    assert await said.log() == "u1 a1 t1 a2 t3 a5"


@stored_or_not
async def test_of_two_at_the_same_time_neither_is_behind_the_other(every: Rig, store: bool) -> None:
    said = Branches(every, store=store)
    await said.say("", "u1", "a1")
    gate, asked = every.store.hold(), []
    for sent, answer in (("u2", "a2"), ("u3", "a3")):
        every.store.held_back.clear()
        asked.append(asyncio.create_task(said.say("a1", sent, answer)))
        await every.store.held_back.wait()
    gate.set()
    await asyncio.gather(*asked)
    assert await said.log() == "u1 a1 u3 a3"
    assert await said.talk.gone() == "u2 a2"
    await said.say("a2", "u4", "a4")
    assert said.got("u1 a1 u2 a2 u4")


@stored_or_not
async def test_something_else_is_said_where_a_call_was_answered(every: Rig, store: bool) -> None:
    said = await of_two_rounds(every, store=store)
    await said.say("a3", "u2", "a4")
    await said.say("a1", "t3:c1 u3", "a5")
    assert said.got("u1 a1 t3 u3")
    assert await said.log() == "u1 a1 t3 u3 a5"


async def test_a_call_that_nobody_answers_then_is_left_out(every: Rig) -> None:
    said = await of_two_rounds(every, store=False)
    await said.say("a2", "u2", "a4")
    assert said.talk.sent == "u1 a1 t1 u2"
    assert await said.log() == "u1 a1 t1 a2 u2 a4"


@stored_or_not
async def test_a_retry_goes_on_from_the_same_answer(every: Rig, store: bool) -> None:
    said = await of_two_rounds(every, store=store)
    await said.say("a1", "t3:c1", "a4")
    await said.say("a1", "t3:c1", "a5", **RETRY)
    assert await said.log() == "u1 a1 t3 a5"


@stored_or_not
async def test_the_same_words_behind_an_answer_repeat_nothing_before_it(
    every: Rig, store: bool
) -> None:
    said = Branches(every, store=store)
    await said.say("", "u", "a1")
    await said.say("a1", "u", "a2", **RETRY)
    assert await said.log() == "u a1 u a2"


@stored_or_not
async def test_one_goes_on_from_what_was_taken_back(every: Rig, store: bool) -> None:
    said = Branches(every, store=store)
    await said.say("", "u1", "a1")
    await said.say("a1", "u2", "a2")
    await said.say("a1", "u3", "a3")
    await said.say("a2", "u4", "a4")
    assert said.got("u1 a1 u2 a2 u4")
    assert await said.log() == "u1 a1 u2 a2 u4 a4"
    assert await said.talk.gone() == "u3 a3"


@stored_or_not
async def test_of_two_at_once_behind_two_branches_the_one_that_is_recorded_last_is_whole(
    every: Rig, store: bool
) -> None:
    said = Branches(every, store=store)
    await said.say("", "u1", "a1")
    await said.say("a1", "u2", "a2")
    await said.say("a1", "u3", "a3")
    every.store.gate = asyncio.Event()
    asked = len(every.up.requests)
    first = asyncio.create_task(said.say("a2", "u4", "a4"))
    await every.up.wait_for(asked + 1)
    second = asyncio.create_task(said.say("a3", "u5", "a5"))
    await every.up.wait_for(asked + 2)
    every.store.gate.set()
    await asyncio.gather(first, second)
    assert await said.log() in ("u1 a1 u2 a2 u4 a4", "u1 a1 u3 a3 u5 a5")


async def test_an_upstream_that_has_the_conversation_is_asked_though_history_cannot_be_read(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Branches(one, store=True)
    await said.say("", "u1", "a1")
    await said.say("a1", "u2", "a2")
    await said.say("a1", "u3", "a3")

    async def never(key: SessionKey, before: int | None, limit: int) -> None:
        raise StoreError("no")

    with monkeypatch.context() as patch:
        patch.setattr(one.store, "exchanges", never, raising=False)
        await said.say("a2", "u4", "a4")
    assert one.up.requests[-1].json["previous_response_id"]
    assert (await said.log()).endswith("u4 a4")


async def test_an_answer_that_is_not_given_takes_nothing_back(one: Rig) -> None:
    said = await of_two_rounds(one, store=False)
    one.up.reply(error_answer(500, "try again"))
    await said.talk.post(said.body("a1", "t3:c1"))
    assert await said.log() == "u1 a1 t1 a2 t2 a3"


async def of_two_branches(rig: Rig, *, store: bool) -> Branches:
    said = Branches(rig, store=store)
    await said.say("", "u1", "a1")
    await said.say("a1", "u2", "a2")
    await said.say("a1", "u3", "a3")
    return said


@stored_or_not
@pytest.mark.parametrize("failing", [error_answer(500, "try again"), DROPPED])
async def test_nor_does_one_that_goes_on_from_what_was_taken_back(
    every: Rig, store: bool, failing: Script
) -> None:
    said = await of_two_branches(every, store=store)
    every.up.reply(failing)
    answered = await said.talk.post(said.body("a2", "u4"))
    assert answered.status_code >= 500
    assert said.got("u1 a1 u2 a2 u4")
    assert await said.log() == "u1 a1 u3 a3"
    assert await said.talk.gone() == "u2 a2"
    await said.say("a2", "u4", "a4")
    assert await said.log() == "u1 a1 u2 a2 u4 a4"


@stored_or_not
async def test_nor_does_a_client_that_leaves_before_the_answer(one: Rig, store: bool) -> None:
    said = await of_two_branches(one, store=store)
    one.up.reply(SILENT)
    asking = asyncio.create_task(said.talk.post(said.body("a2", "u4")))
    asked = await one.up.wait_for(len(one.up.requests) + 1)
    asking.cancel()
    await asked.gone.wait()
    assert await said.log() == "u1 a1 u3 a3"
