"""Responses that the proxy keeps for an upstream that keeps nothing, by OpenAI's own client."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from openai import BadRequestError, InternalServerError, NotFoundError
from openai.types.responses import Response

from proxy.memory.store import StoreError
from tests.support.rig import Rig, rig
from tests.support.talk.keeping import PROFILE, Keeping, asks
from tests.support.upstream import items
from tests.support.upstream.answers import error_answer, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAME = re.compile(r"resp_[0-9a-f]{32}[\w-]{20}", re.ASCII)


async def test_an_id_alone_is_the_conversation(every: Rig) -> None:
    keeping = Keeping(every)
    async with keeping.client() as client:
        first = await asks(client, "u1")
        second = await asks(client, "u2", first)
        third = await asks(client, "u3", second)
        assert keeping.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"
        assert third.previous_response_id == second.id
        assert third.to_dict()["store"] is True
        assert all(NAME.fullmatch(answer.id) for answer in (first, second, third))
        other = await asks(client, "u4")
    assert keeping.sent == "u4"
    assert other.id[:37] != third.id[:37]


async def test_what_was_answered_is_retrieved(every: Rig) -> None:
    keeping = Keeping(every)
    keeping.upstream.reply(items.thought(), items.said("Yes."), items.calls("f", "{}", "call_1"))
    async with keeping.client() as client:
        answered = await asks(client, "u1", metadata={"a": "b"}, instructions="Be brief.")
        again = await client.responses.retrieve(answered.id)
    assert again == answered
    assert again.metadata == {"a": "b"}


async def test_a_stream_is_kept_under_the_same_name_as_it_says(every: Rig) -> None:
    keeping = Keeping(every)
    async with keeping.client() as client:
        stream = await client.responses.create(model="gpt-5", input="u1", stream=True)
        said = {x.response.id for x in [e async for e in stream] if hasattr(x, "response")}
        (name,) = said
        again = await client.responses.retrieve(name)
        assert again.output_text == "reply 1: u1"
        await asks(client, "u2", name)
    assert keeping.sent == "u1 reply 1: u1 u2"


async def test_its_input_is_paged_and_has_nothing_of_memory_in_it(every: Rig) -> None:
    keeping = Keeping(every)
    said = [{"role": "user", "content": f"u{n}"} for n in range(5)]
    async with keeping.client() as client:
        before = await asks(client, "before")
        answered = await asks(client, said, before)
        assert keeping.sent.startswith("before reply 1: before u0")
        first = await client.responses.input_items.list(answered.id, limit=2, order="asc")
        assert [texts(item) for item in first.data] == ["u0", "u1"] and first.has_more
        rest = [texts(x) async for x in client.responses.input_items.list(answered.id, limit=2)]
        assert rest == ["u4", "u3", "u2", "u1", "u0"]
        behind = await client.responses.input_items.list(
            answered.id, after=first.data[1].id or "", order="asc"
        )
        assert [texts(item) for item in behind.data] == ["u2", "u3", "u4"] and not behind.has_more


def texts(item: object) -> str:
    return "".join(part.text for part in item.content)  # type: ignore[attr-defined]


async def test_a_deleted_response_is_gone_and_what_was_said_is_not(every: Rig) -> None:
    keeping = Keeping(every)
    async with keeping.client() as client:
        first = await asks(client, "u1")
        second = await asks(client, "u2", first)
        await client.responses.delete(first.id)
        for asking in (
            client.responses.retrieve(first.id),
            client.responses.delete(first.id),
            client.responses.input_items.list(first.id),
            asks(client, "u3", first),
        ):
            with pytest.raises(NotFoundError) as refused:
                await asking
            assert refused.value.code == "response_not_found"
        await asks(client, "u3", second)
    assert keeping.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"


async def test_several_go_on_from_one(every: Rig) -> None:
    keeping = Keeping(every)
    async with keeping.client() as client:
        root = await asks(client, "u1")
        left, right = await asks(client, "l1", root), await asks(client, "r1", root)
        await asks(client, "l2", left)
        assert keeping.sent == "u1 reply 1: u1 l1 reply 2: l1 l2"
        await asks(client, "r2", right)
        assert keeping.sent == "u1 reply 1: u1 r1 reply 3: r1 r2"
        assert (await client.responses.retrieve(left.id)).output_text == "reply 2: l1"


async def test_what_is_not_answered_takes_nothing_back(one: Rig) -> None:
    keeping, session = Keeping(one), one.talk().session
    async with keeping.client(X_Session_Id=session) as client:
        root = await asks(client, "u1")
        left = await asks(client, "l1", root)
        await asks(client, "r1", root)
        await client.responses.input_tokens.count(
            model="gpt-5", input="l2", previous_response_id=left.id
        )
        one.up.reply(error_answer(500, "try again"))
        with pytest.raises(InternalServerError):
            await asks(client, "l2", left)
        assert keeping.sent == "u1 reply 1: u1 l1 reply 2: l1 l2"
        assert await keeping.log(session) == "u1 reply 1: u1 r1 reply 3: r1"
        await asks(client, "l2", left)
    assert (await keeping.log(session)).startswith("u1 reply 1: u1 l1 reply 2: l1 l2")


async def test_they_may_do_so_at_the_same_time(every: Rig) -> None:
    keeping = Keeping(every)
    async with keeping.client() as client:
        root = await asks(client, "u1")
        last: list[Response] = [root] * 3
        for turn in range(3):
            last = await asyncio.gather(
                *(asks(client, f"{name}{turn}", last[at]) for at, name in enumerate("abc"))
            )
        for at, name in enumerate("abc"):
            await asks(client, f"{name}-end", last[at])
            said = [word for word in keeping.sent.split() if re.fullmatch(r"[abc](\d|-end)", word)]
            assert {word[0] for word in said} == {name}, keeping.sent
            assert len([word for word in said if word.endswith("-end")]) == 1


async def test_a_result_may_come_late(every: Rig) -> None:
    """It joins the turn of its call, and so stands before what was said since."""
    keeping = Keeping(every)
    keeping.upstream.reply(items.calls("look", "{}", "call_1"))
    result = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    async with keeping.client() as client:
        first = await asks(client, "Look.")
        second = await asks(client, "u2", first)
        third = await asks(client, [result], second)
        fourth = await asks(client, "u4", third)
        assert {"Look.", "u2", "u4", "42"} <= set(keeping.sent.replace(":", " ").split())
        await asks(client, [result, {"role": "user", "content": "u5"}], first)
        assert "u4" not in keeping.sent and "u2" not in keeping.sent
        await asks(client, "u6", fourth)
        assert "u4" in keeping.sent and "u5" not in keeping.sent


@pytest.mark.parametrize(
    ("thought", "kept"),
    [(items.told("Let me look."), True), (items.thought(encrypted=False), False)],
    ids=["told-in-full", "nobody-has-it"],
)
async def test_a_thought_goes_back_with_its_call_as_far_as_it_was_told(
    every: Rig, thought: items.Json, kept: bool
) -> None:
    keeping = Keeping(every)
    call = items.calls("look", "{}", "call_1")
    sent = [call, items.result(call, "42")]
    whole = [thought, *sent] if kept else sent
    async with keeping.client(X_Session_Id=every.talk().session) as client:
        keeping.upstream.reply(thought, call)
        first = await asks(client, "u1")
        await asks(client, sent[1:], first)
        assert every.up.requests[-1].json["input"][1:] == whole
        await asks(client, [{"role": "user", "content": "u1"}, items.named(thought), *sent])
        assert every.up.requests[-1].json["input"][1:] == whole


async def test_only_what_is_made_in_the_background_is_cancelled_or_streamed_again(
    one: Rig,
) -> None:
    keeping = Keeping(one)
    async with keeping.client() as client:
        answered = await asks(client, "u1")
        for asking in (
            client.responses.cancel(answered.id),
            client.responses.retrieve(answered.id, stream=True),
            asks(client, "u2", background=True),
        ):
            with pytest.raises(BadRequestError) as refused:
                await asking
            assert refused.value.code == "not_in_background"


async def test_an_answer_that_is_not_to_be_stored_is_the_upstreams_alone(one: Rig) -> None:
    keeping = Keeping(one)
    async with keeping.client() as client:
        answered = await asks(client, "u1", store=False)
        assert answered.id == "resp_1"
        for name in ("resp_1", "resp_2"):
            with pytest.raises(NotFoundError):
                await client.responses.retrieve(name)
            with pytest.raises(NotFoundError):
                await asks(client, "u2", name)
    assert not one.store.commits


async def test_a_session_and_its_ids_mean_each_other(every: Rig) -> None:
    keeping, session = Keeping(every), every.talk().session
    async with keeping.client(X_Session_Id=session) as client, keeping.client() as bare:
        first = await asks(client, "u1")
        await asks(client, "u2")
        assert keeping.sent == "u1 reply 1: u1 u2"
        assert (await bare.responses.retrieve(first.id)).output_text == "reply 1: u1"
        await asks(bare, "u3", first)
    assert keeping.sent == "u1 reply 1: u1 u3"
    assert await keeping.log(session) == "u1 reply 1: u1 u3 reply 3: u3"
    assert session not in first.id


async def test_what_was_recalled_is_no_part_of_what_is_kept(tmp_path: Path) -> None:
    recall = {"recall": {"timeout": 5}}
    profiles = {PROFILE: {"emulate_response_state": True, **recall}}
    async with rig(tmp_path, profiles=profiles) as one:
        keeping = Keeping(one)
        async with keeping.client(X_User_Id="kai") as client:
            await asks(client, "My favourite train is the sleeper to Malmö.")
            begun = await client.conversations.create()
            said = "Which train to Malmö is my favourite?"
            keeping.upstream.reply(items.said("That one."))
            answered = await asks(client, said, conversation=begun.id)
            assert b"sleeper" in one.up.requests[-1].body
            inputs = client.responses.input_items.list(answered.id)
            assert [texts(item) async for item in inputs] == [said]
            listed = client.conversations.items.list(begun.id, order="asc")
            assert [texts(item) async for item in listed] == [said, "That one."]
            again = await client.responses.retrieve(answered.id)
            assert "sleeper" not in again.to_json()


async def test_an_answer_that_was_cut_off_is_kept_as_far_as_it_came(one: Rig) -> None:
    keeping = Keeping(one)
    whole = items.response([items.said("A long answer.")])
    one.up.reply(sse(items.events(whole)[:5]))
    async with keeping.client() as client:
        stream = await client.responses.create(model="gpt-5", input="u1", stream=True)
        events = [event async for event in stream]
        name = events[0].response.id  # type: ignore[union-attr]
        again = await client.responses.retrieve(name)
        assert (again.status, again.output_text) == ("incomplete", "A long a")
        await asks(client, "u2", name)
    assert keeping.sent == "u1 A long a u2"


async def test_an_answer_that_came_to_its_limit_is_gone_on_from(every: Rig) -> None:
    keeping = Keeping(every)
    keeping.upstream.reply(items.said("a1", status="incomplete"), **items.AT_ITS_LIMIT)
    keeping.upstream.reply(items.said("a2", status="incomplete"), **items.AT_ITS_LIMIT)
    async with keeping.client() as client:
        first = await asks(client, "u")
        second = await asks(client, "u", first)
        await asks(client, "u", second)
        assert await client.responses.retrieve(second.id) == second
    assert keeping.sent == "u a1 u a2 u"


async def test_a_store_that_is_away_is_no_reason_to_answer_without_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = {PROFILE: {"emulate_response_state": True}}
    async with rig(tmp_path, profiles=profiles, store__timeout=0.5) as one:
        keeping = Keeping(one)
        async with keeping.client() as client:
            first = await asks(client, "u1")

            async def away(*_: object) -> None:
                raise StoreError("it is away")

            one.up.requests.clear()
            with monkeypatch.context() as patch:
                for name in ("exchange", "items_at", "load"):
                    patch.setattr(one.store, name, away, raising=False)
                for asking in (asks(client, "u2", first), client.responses.retrieve(first.id)):
                    with pytest.raises(InternalServerError) as refused:
                        await asking
                    assert refused.value.code == "memory_unavailable"
            assert not one.up.requests
