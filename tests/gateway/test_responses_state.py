"""Who keeps the state: the upstream, the proxy, and clients that name what they do not send."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proxy.memory.model import LoadOptions, SessionKey, Snapshot
from tests.support.rig import Rig, Talk, rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items
from tests.support.upstream.answers import error_answer, json_answer
from tests.support.upstream.responder import Responder
from tests.support.upstream.stateless import StatelessResponder

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def asks(talk: ItemTalk, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """A request and the response to it."""
    answered = await talk.post({"model": "gpt-5", **body}, **headers)
    assert answered.status_code == 200, (answered.text, talk.upstream.refused)
    found: dict[str, Any] = answered.json()
    return found


async def test_items_go_back_as_they_came(one: Rig) -> None:
    talk = ItemTalk.of(one)
    output = [
        items.thought(),
        items.said("Let me see.", phase="commentary"),
        items.calls("look", '{"a": 1.50}', "call_1"),
    ]
    talk.upstream.reply(*output)
    await asks(talk, {"input": "Look."})
    result = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
    await asks(talk, {"input": [result]})
    assert talk.input == [{"role": "user", "content": "Look."}, *output, result]


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
async def test_a_compaction_that_a_client_goes_on_from_stays_in_its_place(
    one: Rig, kind: str
) -> None:
    talk = ItemTalk.of(one)
    before = [{"type": kind, "id": f"cmp_{n}", "encrypted_content": f"all of {n}"} for n in "12"]
    await asks(talk, {"input": [before[0], {"role": "user", "content": "u1"}]})
    await asks(talk, {"input": [before[1], {"role": "user", "content": "u2"}]})
    await asks(talk, {"input": "u3"})
    kept = [item for item in talk.input if "encrypted_content" in item]
    assert (talk.input[0], kept) == (before[0], before)


async def test_nothing_to_add_and_the_request_goes_as_it_came(one: Rig) -> None:
    talk = ItemTalk.of(one)
    body = b'{"model":"gpt-5",  "input":"Hello."}'
    await talk.post(body)
    assert one.up.requests[-1].body == body


async def test_an_upstream_that_keeps_the_conversation_gets_nothing_into_it(one: Rig) -> None:
    talk = ItemTalk.of(one)
    first = await asks(talk, {"input": "One?"})
    body = {"input": "Two?", "previous_response_id": first["id"]}
    await asks(talk, body)
    assert one.up.requests[-1].json == {"model": "gpt-5", **body}
    assert await talk.log() == "One? reply 1: One? Two? reply 2: Two?"


async def test_a_conversation_object_is_the_upstreams_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "One?"})
    body = {"input": [{"role": "user", "content": "Two?"}], "conversation": {"id": "conv_1"}}
    await asks(talk, body)
    assert one.up.requests[-1].json == {"model": "gpt-5", **body}
    assert await talk.log() == "One? reply 1: One? Two? reply 2: Two?"


async def test_what_the_upstream_is_asked_without_words_is_recorded_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    one.up.reply(json_answer(items.response([items.said("a1")])))
    body = {"model": "gpt-5", "conversation": "conv_1"}
    answered = await talk.post(body)
    assert answered.headers["x-memory-status"] == "empty"
    assert (one.up.requests[-1].json, await talk.log()) == (body, "a1")


@pytest.mark.parametrize("nothing", [{}, {"input": None}])
async def test_what_a_stored_prompt_asks_goes_as_it_came_and_is_recorded(
    one: Rig, nothing: dict[str, Any]
) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    one.up.reply(json_answer(items.response([items.said("a2")])))
    body = {"model": "gpt-5", "prompt": {"id": "pmpt_1", "variables": {"x": "y"}}, **nothing}
    answered = await talk.post(body)
    assert answered.headers["x-memory-status"] == "empty"
    assert (one.up.requests[-1].json, await talk.log()) == (body, "u1 reply 1: u1 a2")
    await asks(talk, {"input": "u3"})
    assert talk.sent == "u1 reply 1: u1 a2 u3"


async def test_an_answer_to_a_stored_prompt_may_be_the_first(one: Rig) -> None:
    talk = ItemTalk.of(one)
    one.up.reply(json_answer(items.response([items.said("a1")])))
    await talk.post({"prompt": {"id": "pmpt_1"}})
    await asks(talk, {"prompt": {"id": "pmpt_1"}, "input": "u2"})
    assert (talk.sent, await talk.log()) == ("a1 u2", "a1 u2 reply 1: u2")


async def test_going_on_from_an_earlier_answer_drops_what_followed_it(one: Rig) -> None:
    talk = ItemTalk.of(one)
    first = await asks(talk, {"input": "u1"})
    await asks(talk, {"input": "u2", "previous_response_id": first["id"]})
    await asks(talk, {"input": "u3", "previous_response_id": first["id"]})
    assert await talk.log() == "u1 reply 1: u1 u3 reply 3: u3"


async def test_memory_is_not_stored_upstream_unless_the_client_says_so(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    await asks(talk, {"input": "u2"})
    sent = one.up.requests[-1].json
    assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])
    await asks(talk, {"input": "u3", "store": True, "include": ["file_search_call.results"]})
    sent = one.up.requests[-1].json
    assert (sent["store"], sent["include"]) == (True, ["file_search_call.results"])


async def test_a_model_that_does_not_think_is_not_asked_for_thoughts(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1", "model": "gpt-4.1"})
    await asks(talk, {"input": "u2", "model": "gpt-4.1"})
    assert one.up.requests[-1].json["store"] is False
    assert "include" not in one.up.requests[-1].json


async def test_what_the_upstream_was_told_not_to_store_can_be_gone_on_from(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    assert second["store"] is False
    await asks(talk, {"input": "u3", "previous_response_id": second["id"]})
    assert "previous_response_id" not in one.up.requests[-1].json
    assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"
    assert not talk.upstream.refused


async def test_so_can_one_that_came_to_its_limit(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    talk.upstream.reply(items.said("a2", status="incomplete"), **items.AT_ITS_LIMIT)
    second = await asks(talk, {"input": "u2"})
    await asks(talk, {"input": "u3", "previous_response_id": second["id"]})
    assert talk.sent == "u1 reply 1: u1 u2 a2 u3"
    assert not talk.upstream.refused


@pytest.mark.parametrize("nothing", [{}, {"input": None}])
async def test_so_it_can_without_another_word(one: Rig, nothing: dict[str, Any]) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    await asks(talk, {"previous_response_id": second["id"], **nothing})
    assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2"
    assert await talk.log() == "u1 reply 1: u1 u2 reply 2: u2 reply 3: u2"
    assert not talk.upstream.refused


async def test_so_it_can_with_a_stored_prompt(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    await asks(talk, {"previous_response_id": second["id"], "prompt": {"id": "pmpt_1"}})
    assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2"


async def test_so_can_an_earlier_one(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    await asks(talk, {"input": "u3"})
    await asks(talk, {"input": "u4", "previous_response_id": second["id"]})
    assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2 u4"
    assert await talk.log() == "u1 reply 1: u1 u2 reply 2: u2 u4 reply 4: u4"


async def test_and_one_that_another_has_taken_the_place_of(every: Rig) -> None:
    talk = ItemTalk.of(every)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    ends = {}
    for said in ("u3", "u4"):
        ends[said] = await asks(talk, {"input": said, "previous_response_id": second["id"]})
    for said, end in (("u5", ends["u3"]), ("u6", ends["u4"])):
        await asks(talk, {"input": said, "previous_response_id": end["id"]})
        assert "previous_response_id" not in every.up.requests[-1].json
        answered = end["output"][-1]["content"][0]["text"]
        way = f"u1 reply 1: u1 u2 reply 2: u2 {answered.partition(': ')[2]} {answered} {said}"
        assert talk.sent == way
        assert (await talk.log()).startswith(way)
    assert not talk.upstream.refused


async def test_what_is_not_recorded_has_it_and_takes_nothing_back(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2"})
    third = await asks(talk, {"input": "u3", "previous_response_id": second["id"]})
    await asks(talk, {"input": "u4", "previous_response_id": second["id"]})
    log = await talk.log()
    body = {"model": "gpt-5", "input": "u5", "previous_response_id": third["id"]}
    assert (await talk.post(body, x_memory_mode="read")).status_code == 200
    assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2 u3 reply 3: u3 u5"
    assert await talk.log() == log


async def test_unless_the_upstream_has_it(one: Rig) -> None:
    talk = ItemTalk.of(one)
    first = await asks(talk, {"input": "u1"})
    second = await asks(talk, {"input": "u2", "previous_response_id": first["id"]})
    await asks(talk, {"input": "u3", "previous_response_id": first["id"]})
    body = {"model": "gpt-5", "input": "u4", "previous_response_id": second["id"]}
    await asks(talk, body)
    assert one.up.requests[-1].json == body


async def test_an_answer_that_nobody_knows_is_the_upstreams_affair(one: Rig) -> None:
    talk = ItemTalk.of(one)
    body = {"model": "gpt-5", "input": "u1", "previous_response_id": "resp_nobodys"}
    answered = await talk.post(body)
    assert answered.status_code == 404
    assert one.up.requests[-1].json == body
    assert await talk.log() == ""


@pytest.mark.parametrize("stores", [True, False], ids=["stored", "not-stored"])
async def test_items_that_are_only_named_are_sent(one: Rig, stores: bool) -> None:
    talk = ItemTalk.of(one)
    output = [items.thought(), items.said("Yes.")]
    talk.upstream.reply(*output, store=stores)
    await asks(talk, {"input": "u1"})
    named = [items.named(item) for item in output]
    user = [{"role": "user", "content": [{"type": "input_text", "text": text}]} for text in "12"]
    user[0]["content"] = [{"type": "input_text", "text": "u1"}]
    await asks(talk, {"input": [user[0], *named, user[1]]})
    assert talk.input == [user[0], *output, user[1]]
    assert await talk.log() == "u1 Yes. 2 reply 1: 2"


async def test_a_name_that_nobody_knows_goes_up_as_it_came(one: Rig) -> None:
    talk = ItemTalk.of(one)
    reference = {"type": "item_reference", "id": "msg_nobodys"}
    talk.upstream.stored["msg_nobodys"] = items.said("Somebody's.")
    body = {"model": "gpt-5", "input": [reference, {"role": "user", "content": "u1"}]}
    await talk.post(body)
    assert one.up.requests[-1].json == body


async def test_names_mean_nothing_in_the_session_of_another(one: Rig) -> None:
    talk, other = ItemTalk.of(one), ItemTalk.of(one)
    other.session = talk.session
    output = items.said("A secret.")
    talk.upstream = other.upstream
    talk.upstream.reply(output, store=False)
    first = await asks(talk, {"input": "u1"})
    reference = {"type": "item_reference", "id": output["id"]}
    theirs = {"authorization": "Bearer sk-another"}
    body = {"model": "gpt-5", "input": [reference, {"role": "user", "content": "u2"}]}
    assert (await other.post(body, **theirs)).status_code == 404
    assert b"secret" not in one.up.requests[-1].body
    body = {"model": "gpt-5", "input": "u2", "previous_response_id": first["id"]}
    assert (await other.post(body, **theirs)).status_code == 404
    assert b"secret" not in one.up.requests[-1].body


async def test_an_upstream_without_state_gets_the_conversation(tmp_path: Path) -> None:
    async with rig(tmp_path, memory__emulate_response_state=True) as one:
        talk = ItemTalk.of(one)
        previous = None
        for text in ("u1", "u2", "u3"):
            talk.upstream.conversations.clear()
            body = {"input": text, "previous_response_id": previous}
            previous = (await asks(talk, body))["id"]
            assert one.up.requests[-1].json.get("previous_response_id") is None
        assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"
        assert await talk.log() == f"{talk.sent} reply 3: u3"


async def test_so_it_does_of_what_was_not_to_be_stored(tmp_path: Path) -> None:
    """By the upstream's own names, in the session that the headers name."""
    async with rig(tmp_path, memory__emulate_response_state=True) as one:
        talk = ItemTalk.of(one)
        talk.upstream = StatelessResponder()
        one.up.always(talk.upstream)
        await asks(talk, {"input": "u1"})
        talk.upstream.name = "resp_2"
        second = await asks(talk, {"input": "u2", "store": False})
        assert second["id"] == "resp_2"
        body = {"input": "u3", "previous_response_id": "resp_2", "store": True}
        await asks(talk, body)
        assert talk.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"
        assert not talk.upstream.refused


async def test_a_conversation_of_before_a_restart_goes_on(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        talk = ItemTalk.of(one)
        await asks(talk, {"input": "u1"})
        second = await asks(talk, {"input": "u2"})
    async with rig(tmp_path) as again:
        later = ItemTalk(again, talk.session)
        again.up.always(later.upstream)
        await asks(later, {"input": "u3", "previous_response_id": second["id"]})
        assert later.sent == "u1 reply 1: u1 u2 reply 2: u2 u3"


async def test_thoughts_that_nobody_keeps_are_not_sent_again(one: Rig) -> None:
    talk = ItemTalk.of(one)
    answer = items.said("Yes.")
    talk.upstream.reply(items.thought(encrypted=False), answer, store=False)
    await asks(talk, {"input": "u1", "store": False})
    await asks(talk, {"input": "u2"})
    assert talk.input[1:2] == [answer]


async def test_where_they_are_named_they_are_left_out(one: Rig) -> None:
    talk = ItemTalk.of(one)
    thought, call = items.thought(encrypted=False), items.calls("look", "{}", "call_1")
    talk.upstream.reply(thought, call, store=False)
    await asks(talk, {"input": "u1"})
    result = items.result(call, "found")
    await asks(talk, {"input": [items.named(thought), call, result]})
    assert talk.input == [{"role": "user", "content": "u1"}, call, result]
    assert not talk.upstream.refused


async def test_what_is_recalled_may_stand_in_instructions(remembering: Rig) -> None:
    remembering.reset()
    user = {"x_user_id": "kai"}
    before = Talk(remembering, "trains")
    before.headers = {"x-user-id": "kai"}
    await before.ask([{"role": "user", "content": "My favourite train is the sleeper to Malmö."}])
    talk = ItemTalk.of(remembering)
    talk.upstream.conversations["resp_0"] = []
    body = {
        "input": "Which train to Malmö is my favourite?",
        "instructions": "Be brief.",
        "previous_response_id": "resp_0",
    }
    await asks(talk, body, **user)
    assert remembering.up.requests[-1].json == {"model": "gpt-5", **body}
    await asks(talk, body, **user, x_memory_profile="telling")
    sent = remembering.up.requests[-1].json
    assert sent["input"] == body["input"]
    assert sent["instructions"].startswith("Be brief.\n\n<memory")
    assert "sleeper" in sent["instructions"]


async def test_an_upstream_that_is_gone_is_not_asked_for_what_it_has_not(one: Rig) -> None:
    """The responder itself: it refuses what it does not know."""
    refusing = Responder()
    one.up.always(refusing)
    talk = one.talk()
    talk.path = "/v1/responses"
    orphan = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    assert (await talk.post({"model": "m", "input": [orphan]})).status_code == 400
    assert (await talk.post({"model": "m", "input": [items.thought()]})).status_code == 400
    assert len(refusing.refused) == 2


REFUSALS = [
    (404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
    (400, "The encrypted content gAAA could not be verified."),
    (400, "Item 'fc_1' was provided without its required 'reasoning' item: 'rs_1'."),
    (400, "Item 'fc_1' was provided without its required preceding item of type 'reasoning'"),
]


@pytest.mark.parametrize(("status", "said"), REFUSALS)
async def test_thoughts_that_are_refused_are_left_out(one: Rig, status: int, said: str) -> None:
    talk = ItemTalk.of(one)
    answer = items.said("Yes.")
    talk.upstream.reply(items.thought(), answer)
    await asks(talk, {"input": "u1"})
    one.up.reply(error_answer(status, said))
    await asks(talk, {"input": "u2"})
    del answer["id"]
    assert talk.input == [
        {"role": "user", "content": "u1"}, answer, {"role": "user", "content": "u2"}
    ]  # fmt: skip
    assert await talk.log() == "u1 Yes. u2 reply 1: u2"


async def test_so_is_then_what_the_upstream_did_in_thought(one: Rig) -> None:
    talk = ItemTalk.of(one)
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {}}
    shell = {"id": "sh_1", "type": "shell_call", "call_id": "call_1", "action": {"commands": []}}
    output = {"type": "shell_call_output", "call_id": "call_1", "output": []}
    talk.upstream.reply(items.thought(), search, shell)
    await asks(talk, {"input": "u1"})
    talk.upstream.reply(answer := items.said("Yes."))
    await asks(talk, {"input": [output]})
    needs = "Item '{}' was provided without its required 'reasoning' item: 'rs_1'."
    one.up.reply(error_answer(404, "Item with id 'rs_1' not found."))
    one.up.reply(error_answer(400, needs.format("ws_1")))
    await asks(talk, {"input": "u2"})
    del shell["id"]
    assert talk.input == [
        {"role": "user", "content": "u1"}, shell, output, answer, {"role": "user", "content": "u2"}
    ]  # fmt: skip


CALLS = [
    (
        {"type": "computer_call", "id": "cu_1", "call_id": "c1", "actions": []},
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "x"}},
    ),
    (
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ),
]


@pytest.mark.parametrize(("call", "output"), CALLS)
async def test_so_is_a_call_that_has_no_place_without_its_id(
    one: Rig, call: dict[str, Any], output: dict[str, Any]
) -> None:
    talk = ItemTalk.of(one)
    talk.upstream.reply(items.thought(), call)
    await asks(talk, {"input": "u1"})
    talk.upstream.reply(answer := items.said("a1"))
    await asks(talk, {"input": [output]})
    needs = f"Item '{call['id']}' was provided without its required 'reasoning' item: 'rs_1'."
    one.up.reply(error_answer(404, "Item with id 'rs_1' not found."), error_answer(400, needs))
    await asks(talk, {"input": "u2"})
    said = [{"role": "user", "content": "u1"}, answer, {"role": "user", "content": "u2"}]
    assert talk.input == said
    assert not talk.upstream.refused


async def test_so_are_names_of_thoughts(one: Rig) -> None:
    talk = ItemTalk.of(one)
    thought, answer = items.thought(), items.said("Yes.")
    sent = [items.named(thought), answer, {"role": "user", "content": "u2"}]
    await asks(talk, {"input": sent})
    del answer["id"]
    assert talk.input == [answer, sent[-1]]
    assert talk.upstream.refused == [f"Item with id '{thought['id']}' not found."]


async def test_another_refusal_is_the_clients_to_read(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    one.up.reply(error_answer(404, "Item with id 'msg_1' not found."))
    before = len(one.up.requests)
    assert (await talk.post({"model": "gpt-5", "input": "u2"})).status_code == 404
    assert len(one.up.requests) == before + 1


async def test_a_store_that_hangs_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rig(tmp_path, store__timeout=0.3) as one:
        talk = ItemTalk.of(one)
        first = await asks(talk, {"input": "u1"})
        loads = 0

        async def never(*_: object) -> None:
            nonlocal loads
            loads += 1
            await asyncio.Event().wait()

        with monkeypatch.context() as patch:
            patch.setattr(one.store, "load", never, raising=False)
            body = {"input": "u2", "previous_response_id": first["id"]}
            await asks(talk, body)
            assert one.up.requests[-1].json == {"model": "gpt-5", **body}
        assert loads == 1


async def test_the_newest_answer_is_found_without_the_whole_log(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = ItemTalk.of(one)
    for n in range(12):
        last = await asks(talk, {"input": f"u{n}", "store": False})
    asked: list[LoadOptions] = []
    load = one.store.real.load

    async def watched(key: SessionKey, options: LoadOptions) -> Snapshot:
        asked.append(options)
        return await load(key, options)

    with monkeypatch.context() as patch:
        patch.setattr(one.store, "load", watched, raising=False)
        await asks(talk, {"input": "u12", "previous_response_id": last["id"]})
    assert asked and not any(options.whole for options in asked)
    assert len(talk.input) == 25
