"""With a session only what memory must change is changed, and the answer says what it was."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from tests.support.rig import CHAT, KEY, Rig
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, chat_completion, json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")


# The request


async def test_the_proxys_own_headers_end_at_the_proxy(one: Rig) -> None:
    talk = one.talk()
    own: dict[str, Any] = {
        "x_user_id": "ann",
        "x_memory_mode": "on",
        "x_memory_profile": "brief",
        "x_memory_max_tokens": "100",
        "x_memory_history": "auto",
        "x_memory_rewind": "0",
        "x_memory_signature": "t=1,v1=00",
        "x_memory_of_tomorrow": "1",
    }
    await talk.say("u1", "a1", **own, x_other="kept")
    left = [name.decode() for name, _ in one.up.requests[-1].headers]
    assert not [name for name in left if name.startswith(("x-memory", "x-session", "x-user"))]
    assert one.up.requests[-1].header("x-other") == "kept"


@pytest.mark.parametrize("mode", ["on", "read", "off"])
async def test_a_header_that_does_not_exist_is_told_in_every_mode(one: Rig, mode: str) -> None:
    talk = one.talk()
    response = await talk.ask(messages("u1"), x_memory_mode=mode, x_memory_mod="off")
    assert response.headers["x-memory-reason"] == "unknown_header"
    assert response.headers["x-memory-status"] == ("off" if mode == "off" else "empty")
    assert not any(name == b"x-memory-mod" for name, _ in one.up.requests[-1].headers)


async def test_a_header_that_does_not_exist_hides_no_other_reason_and_is_recorded(
    one: Rig,
) -> None:
    talk = one.talk()
    told = (await talk.ask(messages("u1"), x_memory_mod="off")).headers
    path = f"/memory/v1/sessions/{talk.session}/exchanges/{told['x-memory-exchange-id']}"
    memory = (await one.client.get(path, headers=talk.all_headers)).json()["memory"]
    assert memory["reason"] == told["x-memory-reason"] == "unknown_header"
    title = [{"role": "user", "content": "### Task:\nGive this talk a title."}]
    response = await talk.ask(title, x_memory_mod="off")
    assert response.headers["x-memory-reason"] == "side_request"
    assert one.up.requests[-1].header("authorization") == f"Bearer {KEY}"


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/models"])
async def test_they_end_there_on_every_path(one: Rig, path: str) -> None:
    headers = [("X-Session-Id", "s"), ("X-User-Id", "u"), ("X-Memory-Mode", "read")]
    await raw.ask(one.port, "POST", path, headers, b"{}")
    left = [name for name, _ in one.up.requests[-1].headers]
    assert not [name for name in left if name.startswith((b"x-memory", b"x-session", b"x-user"))]


@pytest.mark.parametrize(
    "alias",
    [
        "X-Conversation-Id",
        "X-Thread-Id",
        "X-OpenWebUI-Chat-Id",
        "Helicone-Session-Id",
        "X-Litellm-Session-Id",
        "X-Sm-Conversation-Id",
    ],
)
async def test_aliases_of_the_session_are_read_and_forwarded(one: Rig, alias: str) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    headers = [("Authorization", f"Bearer {KEY}"), (alias, talk.session)]
    body = json.dumps({"model": "m", "messages": messages("u2")}).encode()
    answered = await raw.ask(one.port, "POST", CHAT, headers, body)
    assert answered.get("x-memory-session-id") == talk.session.encode()
    assert talk.sent == "u1 a1 u2"
    assert one.up.requests[-1].header(alias) == talk.session


@pytest.mark.parametrize("alias", ["X-OpenWebUI-User-Id", "Helicone-User-Id", "X-Sm-User-Id"])
async def test_aliases_of_the_user_are_read_and_forwarded(one: Rig, alias: str) -> None:
    talk = one.talk(**{alias: "ann"})
    await talk.say("u1", "a1")
    assert one.up.requests[-1].header(alias) == "ann"
    refused = await one.talk().post(
        {"model": "m", "messages": messages("u2")}, x_session_id=talk.session, x_user_id="bob"
    )
    assert refused.status_code == 403


async def test_the_upstream_is_asked_not_to_compress(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", accept_encoding="gzip, br")
    assert one.up.requests[-1].header_list("accept-encoding") == ["identity"]
    await talk.say("u2", "a2", accept_encoding="gzip, br", x_memory_mode="off")
    assert one.up.requests[-1].header_list("accept-encoding") == ["gzip, br"]


UNTOUCHED = {
    "white-space": b'\n{ "model" : "m" ,\t"messages":[\r\n {"role":"user" ,"content":"u1"} ] }\n ',
    "key-order": b'{"z":1,"messages":[{"content":"u1","role":"user"}],"a":2,"model":"m"}',
    "duplicate-keys": b'{"model":"x","model":"m","messages":[{"role":"user","content":"u1"}]}',
    "escapes": b'{"model":"m","messages":[{"role":"user","content":"\\u0041\\/\\ud83d"}]}',
    "numbers": b'{"model":"m","t":1e999,"n":-0.0,"b":123456789012345678901234567890,'
    b'"messages":[{"role":"user","content":"u1"}]}',
    "utf-8": '{"model":"m","messages":[{"role":"user","content":"é😀\u2028"}]}'.encode(),
    "byte-order-mark": b'\xef\xbb\xbf{"model":"m","messages":[{"role":"user","content":"u1"}]}',
}


@pytest.mark.parametrize("body", UNTOUCHED.values(), ids=UNTOUCHED)
async def test_where_nothing_is_added_the_original_bytes_are_sent(one: Rig, body: bytes) -> None:
    one.up.strict = False
    one.up.always(answer("a1"))
    talk = one.talk()
    response = await talk.post(body)
    assert response.status_code == 200
    assert one.up.requests[-1].body == body
    assert response.headers["x-memory-status"] in ("empty", "off")


FIELDS = [
    b'"model":"m"',
    b'"unknown" : { "b":1 , "a":[1,2 ,3] }',
    b'"temperature":1e999',
    b'"seed":123456789012345678901234567890',
    b'"zero":-0.0',
    b'"half":"\\ud83d"',
    b'"escaped\\u0041":"\\/"',
    '"metadata":{"k":"é\u2028"}'.encode(),
    b'"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]',
]


async def test_only_the_messages_are_replaced(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    mine = b'{ "content" : "u2\\u0041 \\ud83d" , "role":"user", "x":1e999 }'
    body = b'{"first":0 ,' + b" , ".join(FIELDS) + b',"messages" : [ ' + mine + b' ],"last":null}'
    one.up.reply(answer("a2"))
    assert (await talk.post(body)).status_code == 200
    sent = one.up.requests[-1].body
    for field in FIELDS:
        name, _, value = field.partition(b":")
        assert value.strip() in sent, name
    assert mine in sent
    loaded = json.loads(sent)
    assert list(loaded) == list(json.loads(body))
    assert len(loaded["messages"]) == 3
    assert (loaded["first"], loaded["last"]) == (0, None)


async def test_a_digest_of_the_old_body_does_not_travel_with_the_new_one(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    body = json.dumps({"model": "m", "messages": messages("u2")}).encode()
    digests = [("Content-MD5", "x"), ("Digest", "x"), ("Content-Digest", "x")]
    headers = [*talk.all_headers.items(), *digests]
    await raw.ask(one.port, "POST", CHAT, headers, body)
    asked = one.up.requests[-1]
    assert len(asked.messages) == 3
    assert [asked.header(name) for name, _ in digests] == [None, None, None]
    assert asked.header_list("content-length") == [str(len(asked.body))]


async def test_history_is_sent_back_with_the_bytes_it_came_in(one: Rig) -> None:
    talk = one.talk()
    mine = b'{"role" : "user","content":"caf\\u00e9 \\ud83d","name":"ann","odd":1e999}'
    one.up.reply(answer("a1"))
    await talk.post(b'{"model":"m","messages":[' + mine + b"]}")
    await talk.say("u2", "a2")
    assert mine in one.up.requests[-1].body


# The answer


async def test_the_answer_says_what_memory_did(every: Rig) -> None:
    talk = every.talk()
    first = await talk.ask(messages("u1"), answer("a1"))
    assert memory_headers(first.headers) == {
        "x-memory-status": "empty",
        "x-memory-session-id": talk.session,
        "x-memory-messages": "0",
        "x-memory-tokens": "0",
        "x-memory-recalled": "0",
    }
    second = await talk.ask(messages("u2"), answer("a2", stream=True), stream=True)
    told = memory_headers(second.headers)
    tokens = int(told.pop("x-memory-tokens"))
    assert told == {
        "x-memory-status": "applied",
        "x-memory-session-id": talk.session,
        "x-memory-messages": "2",
        "x-memory-recalled": "0",
    }
    assert tokens == sum(message.card.tokens for message in (await talk.history())[:2])
    for response in (first, second):
        exchange = response.headers["x-memory-exchange-id"]
        assert (await talk.exchange(exchange)).memory.status in ("empty", "applied")
        assert re.fullmatch(
            r"memory;dur=\d+\.\d+(, recall;dur=\d+\.\d+)?", response.headers["server-timing"]
        )


def memory_headers(headers: object) -> dict[str, str]:
    """All of them but the exchange's id."""
    found = {k: v for k, v in dict(headers).items() if k.startswith("x-memory-")}  # type: ignore[call-overload]
    found.pop("x-memory-exchange-id")
    return found


async def test_mode_write_is_empty_and_mode_off_says_off(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    written = await talk.ask(messages("u2"), answer("a2"), x_memory_mode="write")
    assert written.headers["x-memory-status"] == "empty"
    body = b' {"model":"m", "messages":[{"role":"user","content":"u3"}]}'
    off = await talk.post(body, x_memory_mode="off")
    assert off.headers["x-memory-status"] == "off"
    assert off.headers["x-memory-session-id"] == talk.session
    assert one.up.requests[-1].body == body


async def test_the_upstreams_own_headers_stay_beside_them(one: Rig) -> None:
    talk = one.talk()
    extra = (("x-request-id", "req_1"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))
    one.up.reply(json_answer(chat_completion("hi"), headers=extra))
    body = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert answered.get("x-request-id") == b"req_1"
    assert answered.get_all("set-cookie") == [b"a=1", b"b=2"]


async def test_what_an_upstream_says_in_memorys_name_is_not_passed_on(one: Rig) -> None:
    talk = one.talk()
    extra = (("X-Memory-Status", "lies"), ("x-memory-odd", "1"))
    one.up.reply(json_answer(chat_completion("hi"), headers=extra))
    response = await talk.ask(messages("u1"))
    assert response.headers.get_list("x-memory-status") == ["empty"]
    assert "x-memory-odd" not in response.headers


async def test_an_upstreams_server_timing_stays_beside_ours(one: Rig) -> None:
    talk = one.talk()
    one.up.reply(json_answer(chat_completion("hi"), headers=(("server-timing", "llm;dur=3"),)))
    response = await talk.ask(messages("u1"))
    theirs, ours = response.headers.get_list("server-timing")
    assert (theirs, ours.startswith("memory;dur=")) == ("llm;dur=3", True)


async def test_an_upstream_error_says_what_memory_did_too(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    response = await talk.ask(messages("u2"), Script(status=500, pieces=[b"broken"]))
    assert (response.status_code, response.content) == (500, b"broken")
    assert response.headers["x-memory-status"] == "applied"


async def test_a_refusal_of_the_proxys_own_says_so_too(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", x_user_id="ann")
    response = await talk.ask(messages("u2"), x_user_id="bob")
    assert response.status_code == 403
    assert response.headers["x-memory-session-id"] == talk.session
    assert response.headers["x-memory-messages"] == "0"


@pytest.mark.parametrize(
    "wrong",
    [
        {"x_user_id": "a b"},
        {"x_memory_mode": "sometimes"},
        {"x_memory_rewind": "x"},
        {"x_memory_history": "maybe"},
        {"x_memory_max_tokens": "lots"},
        {"x_memory_upstream": "none-such"},
        {"x_memory_profile": "none-such"},
        {"idempotency_key": ""},
        {"api_key": "one", "x_api_key": "another"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_so_does_a_refusal_of_a_header(one: Rig, wrong: dict[str, Any]) -> None:
    talk = one.talk()
    response = await talk.ask(messages("u1"), **wrong)
    assert response.status_code == 400
    assert response.headers["x-memory-session-id"] == talk.session
    assert response.headers["x-memory-status"] == "off"
    assert response.headers["server-timing"].startswith("memory;dur=")


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Session-Id", "a b"), ("X-Memory-Mode", "sometimes")],
        [("X-Session-Id", "s"), ("X-Session-Id", "t"), ("X-Memory-Mode", "sometimes")],
        [("X-Memory-Mode", "sometimes")],
    ],
    ids=["wrong", "two", "none"],
)
async def test_a_refusal_names_no_session_that_is_none(
    one: Rig, headers: list[tuple[str, str]]
) -> None:
    answered = await raw.ask(one.port, "POST", CHAT, headers, b"{}")
    assert (answered.status, answered.get("x-memory-session-id")) == (400, None)


async def test_a_refusal_names_the_session_of_the_path(one: Rig) -> None:
    path = CHAT.replace("/v1", "/s/mine/v1")
    answered = await raw.ask(one.port, "POST", path, [("X-Memory-Mode", "x")], b"{}")
    assert (answered.status, answered.get("x-memory-session-id")) == (400, b"mine")


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "x-unknown"])
async def test_a_body_that_cannot_be_decoded_is_relayed_without_memory(
    one: Rig, coding: str
) -> None:
    one.up.strict = False
    talk = one.talk()
    await talk.say("u1", "a1")
    body = gzip.compress(json.dumps({"model": "m", "messages": messages("u2")}).encode())
    response = await talk.post(body, content_encoding=coding)
    assert one.up.requests[-1].body == body
    assert one.up.requests[-1].header("content-encoding") == coding
    assert response.headers["x-memory-reason"] == "encoded_body"
    assert response.headers["x-memory-status"] == "off"
    assert await talk.log() == "u1 a1"


async def test_other_paths_with_a_session_are_relayed_untouched(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    body = json.dumps({"model": "m", "messages": messages("u2")}).encode()
    for path in ("/v1/rerank", "/v1/completions", "/v1/chat/completions/x", "/v1/embeddings"):
        await raw.ask(one.port, "POST", path, talk.all_headers.items(), body)
        assert one.up.requests[-1].body == body
    assert await talk.log() == "u1 a1"


async def test_hints_against_buffering_go_with_a_stream(one: Rig) -> None:
    response = await one.talk().ask(messages("u1"), answer("a1", stream=True), stream=True)
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-cache"
