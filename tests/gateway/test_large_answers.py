"""Answers that are too much to be read are passed on whole, and recorded as far as they can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.large_answers import MAX_VALUES
from tests.support.rig import Rig, Talk
from tests.support.talk.words import messages
from tests.support.upstream.answers import Script, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

MANY: list[object] = [[] for _ in range(MAX_VALUES)]
TOO_LARGE = "answer_too_large"


def event(finish: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


async def reason(talk: Talk, id: str) -> str | None:
    return (await talk.exchange(id)).memory.reason


async def test_an_event_of_too_many_values_is_passed_on_and_left_out(one: Rig) -> None:
    talk = one.talk()
    said = [event(content="Hel"), event(x=MANY), event(content="lo"), event("stop", y=MANY)]
    response = await talk.ask(messages("u1"), sse([*said, b"data: [DONE]\n\n"]), stream=True)
    assert response.content == b"".join(said) + b"data: [DONE]\n\n"
    assert (await talk.bodies())[1]["content"] == "Hello"
    exchange = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert (exchange.memory.reason, exchange.incomplete) == (TOO_LARGE, False)
    assert len((await talk.history())[1].wire) < 1000


async def test_a_plain_answer_of_too_many_values_is_recorded_without_them(one: Rig) -> None:
    talk = one.talk()
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "logprobs": MANY}
    body = json.dumps({"choices": [{**choice, "finish_reason": "stop"}]}).encode()
    response = await talk.ask(messages("u1"), Script(pieces=[body]))
    assert response.content == body
    assert (await talk.bodies())[1]["content"] == "Hello"
    assert await reason(talk, response.headers["x-memory-exchange-id"]) == TOO_LARGE


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_plain_answer_beyond_what_is_kept_is_passed_on_whole(
    one: Rig, framing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.gateway.recording.tap.MAX_PLAIN", 1000)
    monkeypatch.setattr("proxy.gateway.conversation.MAX_PLAIN", 1000)
    talk, body = one.talk(), b"[" + b" " * 5000 + b"]"
    script = Script(pieces=[body], framing=framing)  # type: ignore[arg-type]
    response = await talk.ask(messages("u1"), script)
    assert response.content == body
    told = response.headers.get("x-memory-reason")
    assert told == (TOO_LARGE if framing == "length" else None), "as far as known by then"
    exchange = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert (exchange.memory.reason, exchange.incomplete) == (TOO_LARGE, True)
    assert await talk.log() == "u1"
