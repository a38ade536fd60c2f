"""Whatever a body is, the answer is clear or the upstream's, and nothing that was said is lost."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from proxy.chat.models.limits import MAX_NAME
from tests.support.rig import CHAT, Rig
from tests.support.talk.harm import began, nothing_was_lost
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, chat_completion, json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = json.dumps({"model": "m", "messages": messages("u2")}).encode()


DEEP = 10_000
STRANGE = {
    "empty": b"",
    "not-json": b"hello",
    "half-json": b'{"model":"m","messages":[{"role":"us',
    "two-values": GOOD + GOOD,
    "a-list": b"[]",
    "a-string": b'"x"',
    "null": b"null",
    "no-messages": b'{"model":"m"}',
    "messages-null": b'{"model":"m","messages":null}',
    "messages-a-string": b'{"model":"m","messages":"hello"}',
    "messages-an-object": b'{"model":"m","messages":{"role":"user"}}',
    "messages-of-strings": b'{"model":"m","messages":["hello"]}',
    "messages-of-lists": b'{"model":"m","messages":[[]]}',
    "messages-of-null": b'{"model":"m","messages":[null]}',
    "not-utf-8": b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}',
    "utf-16": '{"model":"m","messages":[{"role":"user","content":"x"}]}'.encode("utf-16"),
    "nan": b'{"model":"m","messages":[{"role":"user","content":NaN}]}',
    "deep-list": b'{"model":"m","messages":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep-and-broken": b'{"model":"m","messages":[{"role":"user","content":' + b"[" * DEEP,
    "a-raw-control-character": b'{"model":"m","messages":[{"role":"user","content":"a\x01b"}]}',
}


def asking(content: bytes) -> bytes:
    return b'{"model":"m","messages":[{"role":"user","content":' + content + b"}]}"


def listed(item: bytes, count: int) -> bytes:
    return b"[" + b",".join([item] * count) + b"]"


MANY, MUCH = "too_many_parts", "too_much_text"
HUGE = {
    "messages": (MANY, b'{"messages":' + listed(b'{"role":"user","content":""}', 12_001) + b"}"),
    "empty-messages": (MANY, b'{"messages":' + listed(b"{}", 300_000) + b"}"),
    "parts": (MANY, asking(listed(b"[]", 200_000))),
    "numbers": (MANY, asking(listed(b"1", 300_000))),
    "fields": (MANY, GOOD[:-1] + b',"x":{' + listed(b'"k":1', 300_000)[1:-1] + b"}}"),
    "levels": (MANY, asking(b"[" * 300_000 + b"]" * 300_000)),
    "words": (MUCH, asking(b'"' + b"much to say, " * 700_000 + b'"')),
    "a-word": (MUCH, asking(b'"' + b"x" * 9_000_000 + b'"')),
    "white-space": (MUCH, asking(b" " * 9_000_000 + b'"hello"')),
    "half-pairs": (MUCH, asking(b'"' + rb"\ud83d" * 1_500_000 + b'"')),
}


@pytest.mark.parametrize(("reason", "body"), HUGE.values(), ids=HUGE)
async def test_what_no_model_could_read_is_passed_on_without_memory(
    one: Rig, reason: str, body: bytes
) -> None:
    talk = await began(one)
    verdict = Script(status=400, pieces=[b"as the upstream says"])
    one.up.reply(verdict)
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert (answered.status, answered.body) == (400, b"as the upstream says")
    assert one.up.requests[-1].body == body
    assert answered.get("x-memory-status") == b"off"
    assert answered.get("x-memory-reason") == reason.encode()
    await nothing_was_lost(talk)


LARGE = {
    "messages": b'{"messages":' + listed(b'{"role":"user","content":"x"}', 2_000) + b"}",
    "commas-in-a-text": asking(b'"' + b"a,[{" * 400_000 + b'"'),
    "an-image": asking(
        b'[{"type":"image_url","image_url":{"url":"data:image/png;base64,'
        + b"iVBORw0KGgoA" * 1_000_000
        + b'"}},{"type":"text","text":"what is that?"}]'
    ),
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
async def test_a_large_request_of_an_ordinary_shape_has_memory(one: Rig, body: bytes) -> None:
    talk = await began(one)
    one.up.reply(json_answer(chat_completion("hello")))
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert answered.status == 200
    assert answered.get("x-memory-status") != b"off"
    assert answered.get("x-memory-exchange-id") is not None


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
async def test_a_body_that_is_no_chat_is_the_upstreams_to_judge(one: Rig, body: bytes) -> None:
    talk = await began(one)
    verdict = Script(status=400, pieces=[b"as the upstream says"])
    one.up.reply(verdict)
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert (answered.status, answered.body) == (400, b"as the upstream says")
    assert one.up.requests[-1].body == body
    assert answered.get("x-memory-status") == b"off"
    assert answered.get("x-memory-reason") == b"invalid_body"
    assert answered.get("x-memory-exchange-id") is None
    await nothing_was_lost(talk)


ODD = {
    "no-messages-at-all": b'{"model":"m","messages":[]}',
    "no-role": b'{"model":"m","messages":[{"content":"x"}]}',
    "role-a-number": b'{"model":"m","messages":[{"role":7,"content":"x"}]}',
    "role-unknown": b'{"model":"m","messages":[{"role":"robot","content":"x"}]}',
    "content-a-number": b'{"model":"m","messages":[{"role":"user","content":7}]}',
    "content-an-object": b'{"model":"m","messages":[{"role":"user","content":{"a":1}}]}',
    "content-null": b'{"model":"m","messages":[{"role":"user","content":null}]}',
    "content-of-anything": b'{"model":"m","messages":[{"role":"user","content":[1,null,[],{}]}]}',
    "no-content": b'{"model":"m","messages":[{"role":"user"}]}',
    "empty-objects": b'{"model":"m","messages":[{},{},{}]}',
    "calls-not-a-list": b'{"model":"m","messages":[{"role":"assistant","tool_calls":"x"}]}',
    "calls-of-anything": b'{"model":"m","messages":[{"role":"assistant","tool_calls":[1,{},[]]}]}',
    "a-result-of-nothing": b'{"model":"m","messages":[{"role":"tool","content":"x"}]}',
    "a-result-with-a-number": b'{"model":"m","messages":[{"role":"tool","tool_call_id":7}]}',
    "model-a-number": b'{"model":7,"messages":[{"role":"user","content":"x"}]}',
    "no-model": b'{"messages":[{"role":"user","content":"x"}]}',
    "model-ten-thousand-long": b'{"model":"' + b"m" * 10_000 + b'","messages":[{"role":"user"}]}',
    "n-a-string": b'{"model":"m","n":"x","messages":[{"role":"user","content":"x"}]}',
    "n-negative": b'{"model":"m","n":-3,"messages":[{"role":"user","content":"x"}]}',
    "n-a-billion": b'{"model":"m","n":1000000000,"messages":[{"role":"user","content":"x"}]}',
    "max-tokens-huge": b'{"model":"gpt-4","max_tokens":99999999999999999999999,"messages":'
    b'[{"role":"user","content":"x"}]}',
    "a-number-of-5000-digits": b'{"model":"m","n":'
    + b"9" * 5000
    + b',"messages":[{"role":"user"}]}',
    "messages-twice": b'{"model":"m","messages":[],"messages":[{"role":"user","content":"x"}]}',
    "role-twice": b'{"model":"m","messages":[{"role":"system","role":"user","content":"x"}]}',
    "half-an-emoji": b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}',
    "half-an-emoji-as-role": b'{"model":"m","messages":[{"role":"\\ud83d","content":"x"}]}',
    "half-an-emoji-as-key": b'{"model":"m","\\ud83d":1,"messages":[{"role":"user","content":"x"}]}',
    "half-an-emoji-as-model": b'{"model":"m\\ud83d","messages":[{"role":"user","content":"x"}]}',
    "a-null-character": b'{"model":"m","messages":[{"role":"user","content":"a\\u0000b"}]}',
    "deep-content": b'{"model":"m","messages":[{"role":"user","content":'
    + b"[" * DEEP
    + b"]" * DEEP
    + b"}]}",
    "deep-field": b'{"model":"m","x":'
    + b'{"a":' * DEEP
    + b"1"
    + b"}" * DEEP
    + b',"messages":[{"role":"user","content":"x"}]}',
    "a-thousand-messages": json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "x"}] * 1000}
    ).encode(),
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
async def test_an_odd_chat_that_the_upstream_refuses_leaves_no_trace(
    one: Rig, body: bytes, stream: bool
) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    sent = body.replace(b'{"m', b'{"stream":true,"m', 1) if stream else body
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), sent)
    assert (answered.status, answered.body) == (400, b"no")
    await nothing_was_lost(talk)


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
async def test_an_odd_chat_that_the_upstream_takes_is_sent_whole_and_the_session_lives(
    every: Rig, body: bytes
) -> None:
    talk = await began(every)
    every.up.reply(answer("a2"))
    response = await talk.post(body)
    assert response.status_code == 200
    every.up.reply(answer("a3"))
    assert (await talk.post(GOOD)).status_code == 200
    texts = [json.dumps(m) for m in every.up.requests[-1].messages]
    assert "u1" in texts[0] and "u2" in texts[-1]
    states = [m.state for m in await talk.history()]
    assert "superseded" not in states


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_an_answer_with_half_an_emoji_in_its_names_is_recorded(
    every: Rig, stream: bool
) -> None:
    talk, script = every.talk(), answer("a1", stream=stream)
    odd = [
        piece.replace(b'"scripted-1"', b'"scripted\\ud83d"').replace(b'"stop"', b'"stop\\ud83d"')
        for piece in script.pieces
        if isinstance(piece, bytes)
    ]
    response = await talk.ask(messages("u1"), replace(script, pieces=odd), stream=stream)
    recorded = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert response.status_code == 200 and response.content
    assert (recorded.model, recorded.finish_reason) == ("scripted\ufffd", "stop\ufffd")
    assert await talk.log() == "u1 a1"


async def test_of_a_name_without_end_the_beginning_is_recorded(one: Rig) -> None:
    talk, model = one.talk(), "m" * 1_000_000
    one.up.reply(answer("a1"))
    response = await talk.post(json.dumps({"model": model, "messages": messages("u1")}).encode())
    recorded = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert one.up.requests[-1].json["model"] == model
    assert recorded.requested_model == model[:MAX_NAME]


async def test_an_encoded_body_loses_nothing(one: Rig) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    await talk.post(gzip.compress(GOOD), content_encoding="gzip")
    await nothing_was_lost(talk)


async def test_a_body_that_says_it_is_packed_and_is_not_is_the_upstreams_to_judge(one: Rig) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    response = await talk.post(GOOD, content_encoding="gzip")
    assert (response.status_code, one.up.requests[-1].body) == (400, GOOD)
    await nothing_was_lost(talk)
