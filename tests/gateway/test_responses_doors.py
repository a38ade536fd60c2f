"""All that the API has beside creating a response; what is no turn; and agents' own ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rig import CHAT, KEY, Rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items, raw
from tests.support.upstream.answers import json_answer, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOORS = [
    ("GET", "/v1/responses/resp_1"),
    ("GET", "/v1/responses/resp_1?stream=true&starting_after=3"),
    ("DELETE", "/v1/responses/resp_1"),
    ("POST", "/v1/responses/resp_1/cancel"),
    ("GET", "/v1/responses/resp_1/input_items?limit=2"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/conv_1/items"),
    ("POST", "/v1/conversations/conv_1/items"),
]
ODD = b'{ "model":"m",\n "input":  [ {"role":"user","content":"u9"} ] }'


@pytest.mark.parametrize("session", [True, False], ids=["session", "no-session"])
@pytest.mark.parametrize(("method", "path"), DOORS, ids=[f"{m} {p}" for m, p in DOORS])
async def test_they_are_passed_on_as_they_are_and_nothing_is_recorded(
    one: Rig, method: str, path: str, session: bool
) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    said = b'{"object":  "response", "output": []}'
    one.up.reply(json_answer(json.loads(said)))
    headers = [("Authorization", f"Bearer {KEY}")]
    headers += [("X-Session-Id", talk.session)] if session else []
    body = ODD if method == "POST" else b""
    answered = await raw.ask(one.port, method, path, headers, body)
    sent = one.up.requests[-1]
    assert (sent.method, sent.target.decode(), sent.body) == (method, path, body)
    assert answered.get("x-memory-reason") == (b"not_chat" if session else None)
    assert await talk.log() == "u1 a1"


EVENTS = items.events(items.response([items.said("Hello.")]))


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "s", "X-Memory-Mode": "off"}])
async def test_without_memory_every_byte_passes_both_ways(
    one: Rig, headers: dict[str, str]
) -> None:
    one.up.reply(sse(EVENTS))
    answered = await raw.ask(one.port, "POST", "/v1/responses", headers.items(), ODD)
    assert one.up.requests[-1].body == ODD
    assert answered.body == b"".join(EVENTS)


async def test_tokens_are_counted_with_memory_and_nothing_is_recorded(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    counting = ItemTalk(one, talk.session, path="/v1/responses/input_tokens")
    one.up.reply(json_answer({"object": "response.input_tokens", "input_tokens": 11}))
    answered = await counting.post({"model": "gpt-5", "input": "u2"})
    assert answered.json()["input_tokens"] == 11
    assert answered.headers["x-memory-messages"] == "2"
    assert "x-memory-exchange-id" not in answered.headers
    assert counting.sent == "u1 a1 u2"
    assert one.up.requests[-1].json.keys() == {"model", "input"}
    assert await talk.log() == "u1 a1"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=gpt-realtime"])
@pytest.mark.parametrize("session", [True, False])
async def test_a_socket_is_refused_at_once(one: Rig, session: bool, path: str) -> None:
    talk = one.talk()
    wants = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        *(talk.all_headers.items() if session else []),
    ]
    one.up.requests.clear()
    answered = await raw.ask(one.port, "GET", path, wants)
    assert (answered.status, answered.whole) == (426, True)
    error = json.loads(answered.body)["error"]
    assert (error["code"], answered.get("upgrade")) == ("upgrade_refused", b"HTTP/1.1")
    assert not one.up.requests


async def test_a_body_with_an_offer_of_a_socket_is_a_request(one: Rig) -> None:
    offers = [("Upgrade", "websocket"), ("Connection", "Upgrade"), *one.talk().all_headers.items()]
    one.up.reply(json_answer({"object": "response", "output": []}))
    asked = json.dumps({"model": "gpt-5", "input": "u1"}).encode()
    answered = await raw.ask(one.port, "POST", "/v1/responses", offers, asked)
    assert (answered.status, one.up.requests[-1].json["input"]) == (200, "u1")


SIDE: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"x_openai_memgen_request": "true"}, {}),
    ({}, {"client_metadata": {"thread_source": "memory_consolidation"}}),
    ({}, {"client_metadata": {"thread_source": "system"}}),
    ({"x_codex_turn_metadata": '{"thread_source":"system","request_kind":"turn"}'}, {}),
    ({"x_codex_turn_metadata": '{"request_kind":"compaction"}'}, {}),
    ({}, {"client_metadata": {"x-codex-turn-metadata": '{"request_kind":"compaction"}'}}),
]


@pytest.mark.parametrize(("headers", "more"), SIDE, ids=range(len(SIDE)))
async def test_what_codex_does_for_itself_is_no_turn(
    one: Rig, headers: dict[str, str], more: dict[str, Any]
) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    body = {"model": "gpt-5", "input": "Consolidate.", **more}
    answered = await talk.post(body, **headers)
    assert answered.headers["x-memory-reason"] == "side_request"
    assert one.up.requests[-1].json == body
    assert await talk.log() == "u1 a1"


TOLD = '{"thread_source":"user","request_kind":"turn"}'
CODEX: Any = {"client_metadata": {"thread_source": "user", "x-codex-turn-metadata": TOLD}}


async def test_a_person_in_codex_is_one(one: Rig) -> None:
    talk = ItemTalk.of(one)
    headers = {"x_codex_turn_metadata": TOLD}
    await talk.say("u1", "a1", stream=True, **CODEX, **headers)
    assert await talk.log() == "u1 a1"


async def test_codex_sends_all_that_it_wants_to_be_said(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1", stream=True, **CODEX)
    await talk.say("u1 a1 u2", "a2", stream=True, **CODEX)
    assert await talk.log() == "u1 a1 u2 a2"
    assert await talk.say("u1 u9 u3", "a3", stream=True, **CODEX) == "u1 u9 u3"
    assert await talk.log() == "u1 u9 u3 a3"


async def test_metadata_that_nobody_can_read_is_nobodys(one: Rig) -> None:
    talk = ItemTalk.of(one)
    more: Any = {"client_metadata": {"x-codex-turn-metadata": "no JSON"}}
    await talk.say("u1", "a1", stream=True, **more)
    assert await talk.log() == "u1 a1"


async def test_side_requests_are_told_by_instructions_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    body = {"model": "m", "input": "u1", "instructions": "### Task: a title"}
    assert (await talk.post(body)).headers["x-memory-reason"] == "side_request"
    assert await talk.log() == ""


LADDER = [
    ({"X-Session-Id": "a", "Thread-Id": "b", "Session-Id": "c"}, b"a"),
    ({"Session-Id": "c", "Thread-Id": "b"}, b"b"),
    ({"Session-Id": "c"}, b"c"),
    ({"X-Opencode-Session": "d"}, b"d"),
]


@pytest.mark.parametrize(("headers", "session"), LADDER)
@pytest.mark.parametrize("path", ["/v1/responses", CHAT])
async def test_agents_say_which_session_it_is(
    one: Rig, path: str, headers: dict[str, str], session: bytes
) -> None:
    one.up.strict = False
    answered = await raw.ask(one.port, "POST", path, headers.items(), b"{}")
    assert answered.get("x-memory-session-id") == session
    sent = one.up.requests[-1]
    assert sent.header("session-id") == headers.get("Session-Id")
