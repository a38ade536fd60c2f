"""Streamed responses: every byte as it came, and recorded before the client can know the end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.rig import Rig
from tests.support.talk.responding import ItemTalk, item_list
from tests.support.talk.words import messages
from tests.support.upstream import items
from tests.support.upstream.answers import json_answer, pieces_of, sse
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKED = {"model": "gpt-5", "input": "u1", "stream": True}
OUTPUT = [
    items.thought(),
    items.said("Hello, 🙂 world."),
    items.calls("look", "{}", "call_1"),
    {"id": "ws_1", "type": "web_search_call", "status": "completed"},
    {"id": "x_1", "type": "of_tomorrow", "what": [1, {"a": None}]},
]


async def native(talk: ItemTalk) -> list[Any]:
    """The items of the last stored message."""
    found: list[Any] = (await talk.bodies())[-1]["native"]["parts"]
    return found


@pytest.mark.parametrize("size", [None, 1, 7, 1000])
async def test_events_pass_byte_for_byte_and_their_output_is_kept(
    one: Rig, size: int | None
) -> None:
    talk = ItemTalk.of(one)
    events = items.events(items.response(OUTPUT))
    raw = b"".join(events)
    one.up.reply(sse(events if size is None else pieces_of(raw, size)))
    answered = await talk.post(ASKED)
    assert answered.content == raw
    assert await native(talk) == OUTPUT
    exchange = await talk.exchange(answered.headers["x-memory-exchange-id"])
    assert (exchange.incomplete, exchange.finish_reason) == (False, "tool_calls")
    assert json.loads(exchange.usage or b"") == items.USAGE


async def test_the_last_event_waits_for_the_commit(one: Rig) -> None:
    talk = ItemTalk.of(one)
    events = items.events(items.response([items.said("Hello.")]))
    one.up.reply(sse(events))
    gate = one.store.hold()
    async with one.client.stream(
        "POST", talk.path, content=json.dumps(ASKED), headers=talk.all_headers
    ) as answered:
        chunks = answered.aiter_bytes()
        seen = b""
        while b"response.output_item.done" not in seen:
            seen += await anext(chunks)
        await one.store.held_back.wait()
        assert b'"type": "response.completed"' not in seen
        gate.set()
        async for chunk in chunks:
            seen += chunk
    assert seen == b"".join(events)
    assert await talk.log() == "u1 Hello."


async def test_of_a_stream_that_ends_early_the_text_is_kept(one: Rig) -> None:
    talk = ItemTalk.of(one)
    events = items.events(items.response([items.thought(), items.said("Half of it.")]))
    cut = next(i for i, event in enumerate(events) if b"output_text.done" in event)
    one.up.reply(sse(events[: cut - 1]))
    answered = await talk.post(ASKED)
    exchange = await talk.exchange(answered.headers["x-memory-exchange-id"])
    assert exchange.incomplete
    assert await talk.log() == "u1 Half of "
    assert not await native(talk)


CUTS = [
    ("u0 a0", 3, 1, ""),  # in a thought
    ("u0 a0", 4, 1, ""),  # behind it
    ("u0 a0", 5, 2, ""),
    ("u0 a0", 7, 2, "Half of "),
    ("", 7, 2, "Half of "),
]


@pytest.mark.parametrize(("before", "events", "begun", "text"), CUTS)
async def test_what_a_client_names_of_a_stream_that_ended_early_is_its_text(
    every: Rig, before: str, events: int, begun: int, text: str
) -> None:
    talk = ItemTalk.of(every)
    if before:
        await talk.say(*before.split())
    output = [items.thought(), items.said("Half of it.")]
    every.up.reply(sse(items.events(items.response(output))[:events]))
    said = item_list(messages(f"{before} u1"))
    await talk.post({**ASKED, "input": said})
    said += [items.named(item) for item in output[:begun]]
    talk.upstream.reply(items.said("a2"))
    await talk.post({**ASKED, "input": [*said, {"role": "user", "content": "u2"}]})
    assert talk.sent.split() == f"{before} u1 {text} u2".split()
    assert (await talk.log()).split() == f"{before} u1 {text} u2 a2".split()
    assert not talk.upstream.refused


async def test_a_call_of_it_that_was_carried_out_is_sent_without_its_thought(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u0", "a0")
    output = [items.thought(), items.calls("look", "{}", "call_1"), items.said("Meanwhile")]
    one.up.reply(sse(items.events(items.response(output))[:7]))
    said = item_list(messages("u0 a0 u1"))
    await talk.post({**ASKED, "input": said})
    result = items.result(output[1], "found")
    await talk.post({**ASKED, "input": [*said, *map(items.named, output[:2]), result]})
    del output[1]["id"]
    assert talk.input == [*said, output[1], result]


async def test_an_output_that_is_not_told_again_at_the_end_is_put_together(one: Rig) -> None:
    talk = ItemTalk.of(one)
    whole = items.response(OUTPUT)
    *events, _ = items.events(whole)
    last = {"type": "response.completed", "response": {**whole, "output": []}}
    one.up.reply(sse([*events, b"data: " + json.dumps(last).encode() + b"\n\n"]))
    await talk.post(ASKED)
    assert await native(talk) == OUTPUT


@pytest.mark.parametrize("stream", [True, False])
async def test_of_an_answer_that_came_to_its_limit_nothing_is_kept_that_is_half(
    one: Rig, stream: bool
) -> None:
    talk = ItemTalk.of(one)
    done = items.calls("look", "{}", "call_1")
    half = items.calls("look", '{"a"', "call_2", status="incomplete")
    cut = items.response(
        [items.thought(), items.said("Half"), items.thought(), done, items.thought(), half],
        **items.AT_ITS_LIMIT,
    )
    one.up.reply(sse(items.events(cut)) if stream else json_answer(cut))
    answered = await talk.post({**ASKED, "stream": stream})
    exchange = await talk.exchange(answered.headers["x-memory-exchange-id"])
    assert (exchange.incomplete, exchange.finish_reason) == (False, "length")
    assert await native(talk) == cut["output"][:4]
    await talk.say("u2", "a2")
    assert talk.input[:2] == [
        {"role": "user", "content": "u1"},
        {"role": "assistant", "content": "Half"},
    ]


@pytest.mark.parametrize("status", ["completed", "incomplete", None])
async def test_who_resends_an_answer_with_the_call_that_it_stopped_in_has_it_once(
    one: Rig, status: str | None
) -> None:
    talk = ItemTalk.of(one)
    output = [items.said("Half"), items.calls("look", "{", "call_1", status=status)]
    one.up.reply(json_answer(items.response(output, **items.AT_ITS_LIMIT)))
    said = [{"role": "user", "content": "u1"}]
    await talk.post({"model": "gpt-5", "input": said})
    one.up.strict = False
    one.up.reply(json_answer(items.response([items.said("a2")])))
    sent = [*said, *output, {"role": "user", "content": "u2"}]
    await talk.post({"model": "gpt-5", "input": sent})
    assert talk.input == sent
    assert [m["content"] for m in await talk.bodies()] == ["u1", "Half", "u2", "a2"]


async def test_parts_that_are_asked_for_with_the_same_words_stay_all(every: Rig) -> None:
    talk = ItemTalk.of(every)
    for part in ("a1", "a2", "a3"):
        cut = items.response([items.said(part, status="incomplete")], **items.AT_ITS_LIMIT)
        every.up.reply(json_answer(cut))
        await talk.post({"model": "gpt-5", "input": "u1"})
    assert talk.sent == "u1 a1 u1 a2 u1"


@pytest.mark.parametrize("named", [False, True], ids=["its-result-alone", "by-id"])
@pytest.mark.parametrize("words", [[], [items.said("Half")]], ids=["alone", "with-words"])
async def test_a_call_that_was_done_before_the_limit_is_answered(
    one: Rig, words: list[Any], named: bool
) -> None:
    talk = ItemTalk.of(one)
    done = items.calls("look", "{}", "call_1")
    half = items.calls("look", '{"a', "call_2", status="incomplete")
    cut = items.response([*words, done, half], **items.AT_ITS_LIMIT, store=False)
    one.up.reply(json_answer(cut))
    asked = {"model": "gpt-5", "store": False}
    await talk.post({**asked, "input": "u1"})
    result = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
    name = {"previous_response_id": cut["id"]} if named else {}
    await talk.post({**asked, "input": [result], **name})
    whole = [{"role": "user", "content": "u1"}, *words, done, result]
    assert talk.input == whole
    await talk.say("u2", "a2", store=False)
    assert talk.input[: len(whole)] == whole


@pytest.mark.parametrize(
    "output", [[items.thought()], [items.calls("look", "{", "call_1", status=None)]]
)
async def test_an_answer_that_is_not_begun_at_the_limit_says_nothing(one: Rig, output: Any) -> None:
    talk = ItemTalk.of(one)
    one.up.reply(json_answer(items.response(output, **items.AT_ITS_LIMIT)))
    await talk.post({"model": "gpt-5", "input": "u1"})
    assert await talk.say("u2", "a2") == "u1 u2"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failed_response_is_no_answer(one: Rig, stream: bool) -> None:
    talk = ItemTalk.of(one)
    failed = items.response([], status="failed", error={"code": "server_error", "message": "x"})
    one.up.reply(sse(items.events(failed)) if stream else json_answer(failed))
    answered = await talk.post({**ASKED, "stream": stream})
    assert (await talk.exchange(answered.headers["x-memory-exchange-id"])).incomplete
    assert await talk.log() == "u1"


async def test_a_client_that_leaves_leaves_what_had_come(one: Rig) -> None:
    talk = ItemTalk.of(one)
    events = items.events(items.response([items.said("Hello there.")]))
    cut = next(i for i, event in enumerate(events) if b"output_text.done" in event)
    one.up.reply(sse([*events[:cut], asyncio.Event()]))
    async with one.client.stream(
        "POST", talk.path, content=json.dumps(ASKED), headers=talk.all_headers
    ) as answered:
        seen = b""
        async for chunk in answered.aiter_bytes():
            seen += chunk
            if b"ere." in seen:
                break
    await (await one.up.wait_for(1)).gone.wait()

    async def recorded() -> bool:
        return bool(one.store.commits)

    await eventually(recorded)
    assert await talk.log() == "u1 Hello there."
    assert one.store.commits[-1].exchange.incomplete


ODD = [
    b"{}",
    b"[]",
    b'"text"',
    b"null",
    b'{"type": 7, "delta": []}',
    b'{"type": "response.output_text.delta", "output_index": "x", "delta": "y"}',
    b'{"type": "response.output_text.delta", "output_index": -1, "delta": "y"}',
    b'{"type": "response.output_text.delta", "output_index": 99999999999, "delta": "y"}',
    b'{"type": "response.output_item.done", "output_index": 0, "item": 5}',
    b'{"type": "response.output_item.done", "output_index": 0, "item": {"type": []}}',
    b'{"type": "response.output_item.added", "output_index": 0, "item": {"id": "m"}}',
    b'{"type": "response.output_item.added", "output_index": [], "item": {"id": "m"}}',
    b'{"type": "response.output_item.added", "output_index": 0, "item": {"id": [5]}}',
    b'{"type": "response.completed", "response": 5}',
    b'{"type": "response.completed", "response": {"output": 5, "usage": [], "id": {}}}',
    b'{"type": "response.completed", "response": {"status": [], "output": [5, [], {}]}}',
    b'{"type": "response.incomplete", "response": {"incomplete_details": {"reason": {}}}}',
    b'{"type": "response.failed"}',
    b'{"type": "error", "code": 5}',
    b'{"type": "response.output_text.delta", "output_index": 0, "delta": "\\ud83d"}',
    b'{"type": "response.completed", "response": {"status": "completed", "output": '
    b'[{"type": "message", "role": "assistant", "content": "\\ud83d"}]}}',
    b'{"type": "response.completed", "response": {"output": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
    b"not JSON: response.completed",
]


@pytest.mark.parametrize("payload", ODD, ids=range(len(ODD)))
async def test_what_no_client_would_understand_passes_too(one: Rig, payload: bytes) -> None:
    talk = ItemTalk.of(one)
    events = [b"data: " + payload + b"\n\n", *items.events(items.response([items.said("Yes.")]))]
    one.up.reply(sse(events))
    assert (await talk.post(ASKED)).content == b"".join(events)
    one.up.reply(json_answer(None))
    one.up.requests.clear()
    await talk.post({**ASKED, "input": "u2"})
    assert len(one.up.requests) == 1


@pytest.mark.parametrize("payload", ODD, ids=range(len(ODD)))
async def test_nor_does_a_plain_answer_have_to_make_sense(one: Rig, payload: bytes) -> None:
    talk = ItemTalk.of(one)
    script = json_answer(None)
    one.up.reply(type(script)(headers=script.headers, pieces=[payload]))
    answered = await talk.post({**ASKED, "stream": False})
    assert (answered.status_code, answered.content) == (200, payload)
