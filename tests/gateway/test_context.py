"""A prompt that is too long for the model: memory gives way, the client's own words never do."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from tests.support.rig import CHAT, Rig, Talk
from tests.support.talk.words import answer, messages, text
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, chat_completion, error_answer, json_answer
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOO_LONG = error_answer(
    400, "This model's maximum context length is 100 tokens.", "context_length_exceeded"
)


async def four_turns(talk: Talk) -> None:
    for turn in "1234":
        await talk.say(f"u{turn}", f"a{turn}")


def prompts(rig: Rig, count: int) -> list[int]:
    return [len(request.messages) for request in rig.up.requests[-count:]]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_with_half_the_memory_the_request_is_sent_once_more(every: Rig, stream: bool) -> None:
    talk = every.talk()
    await four_turns(talk)
    every.up.reply(TOO_LONG)
    response = await talk.ask(messages("u5"), answer("a5", stream=stream), stream=stream)
    assert response.status_code == 200
    assert prompts(every, 2) == [9, 5]
    assert talk.sent == "u3 a3 u4 a4 u5"
    assert response.headers["x-memory-status"] == "applied"
    assert response.headers["x-memory-reason"] == "context_trimmed"
    assert response.headers["x-memory-messages"] == "4"
    assert await talk.log() == "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5"


async def test_then_with_none(every: Rig) -> None:
    talk = every.talk()
    await four_turns(talk)
    every.up.reply(TOO_LONG, TOO_LONG)
    response = await talk.ask(messages("u5"), answer("a5"))
    assert response.status_code == 200
    assert prompts(every, 3) == [9, 5, 1]
    assert response.headers["x-memory-status"] == "empty"
    assert response.headers["x-memory-reason"] == "context_trimmed"
    assert response.headers["x-memory-tokens"] == "0"
    assert await talk.say("u6", "a6") == "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6"


async def test_then_the_upstreams_error_is_the_answer(every: Rig) -> None:
    talk = every.talk()
    await four_turns(talk)
    every.up.reply(TOO_LONG, TOO_LONG, TOO_LONG)
    response = await talk.ask(messages("u5"))
    assert response.status_code == 400
    assert response.content == TOO_LONG.pieces[0]
    assert prompts(every, 3) == [9, 5, 1]
    assert await talk.log() == "u1 a1 u2 a2 u3 a3 u4 a4"


async def test_a_request_without_memory_is_not_sent_twice(one: Rig) -> None:
    talk = one.talk()
    one.up.reply(TOO_LONG)
    response = await talk.ask(messages("u1"))
    assert (response.status_code, len(one.up.requests)) == (400, 1)


async def test_other_errors_are_not_sent_twice(one: Rig) -> None:
    talk = one.talk()
    await four_turns(talk)
    asked = len(one.up.requests)
    response = await talk.ask(messages("u5"), error_answer(400, "max_tokens is too large", "x"))
    assert (response.status_code, len(one.up.requests)) == (400, asked + 1)


async def test_a_call_and_its_results_leave_together(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1(c1)")
    await talk.say("t1:c1", "a2")
    await talk.say("u3", "a3")
    one.up.reply(TOO_LONG)
    await talk.ask(messages("u4"), answer("a4"))
    assert talk.sent == "u3 a3 u4"
    assert not one.up.refused


async def test_the_running_tool_loop_is_sent_even_when_memory_must_give_way(one: Rig) -> None:
    talk = one.talk()
    await four_turns(talk)
    await talk.say("u5", "a5(c1)")
    one.up.reply(TOO_LONG, TOO_LONG)
    response = await talk.ask(messages("t1:c1"), answer("a6"))
    assert response.status_code == 200
    assert talk.sent == "u5 a5 t1"
    assert not one.up.refused


async def test_the_remembered_system_message_leaves_last(one: Rig) -> None:
    talk = one.talk()
    await talk.say("s1 u1", "a1")
    one.up.reply(TOO_LONG, TOO_LONG)
    response = await talk.ask(messages("u2"), answer("a2"))
    assert response.status_code == 200
    assert talk.sent == "u2"
    assert await talk.say("u3", "a3") == "s1 u1 a1 u2 a2 u3"


def long_answer(tokens: int) -> Script:
    return json_answer(chat_completion(" ".join([text("a1")] * (tokens // 10))))


async def test_memory_is_fitted_to_a_known_models_window(one: Rig) -> None:
    """gpt-4 takes 8,192 tokens: prompt and answer together."""
    talk = one.talk()
    for _ in range(3):
        await talk.ask(messages("u1"), long_answer(1500))
    request = {"role": "user", "content": "word " * 3000}
    response = await talk.ask([request], answer("a4"), model="gpt-4", max_tokens=2000)
    assert response.headers["x-memory-reason"] == "context_trimmed"
    assert 0 < int(response.headers["x-memory-tokens"]) <= 8192 - 2000 - 3000
    assert one.up.requests[-1].messages[-1] == request
    assert response.headers["x-memory-status"] == "applied"
    whole = await talk.ask(messages("u5"), answer("a5"), model="gpt-4o", x_memory_mode="read")
    assert "x-memory-reason" not in whole.headers


async def test_fitted_memory_is_still_halved_before_it_is_left_out(one: Rig) -> None:
    talk = one.talk()
    for turn in range(1, 7):
        await talk.ask(messages(f"u{turn}"), long_answer(700))
    one.up.reply(TOO_LONG, TOO_LONG)
    request = {"role": "user", "content": "word " * 3000}
    await talk.ask([request], answer("a9"), model="gpt-4", max_tokens=2000)
    fitted, half, none = prompts(one, 3)
    assert 1 == none < half < fitted < 13


async def test_a_packed_error_is_understood_too(one: Rig) -> None:
    talk = one.talk()
    await four_turns(talk)
    body = TOO_LONG.pieces[0]
    assert isinstance(body, bytes)
    packed = (("content-type", "application/json"), ("content-encoding", "gzip"))
    one.up.reply(Script(status=400, headers=packed, pieces=[gzip.compress(body)]))
    response = await talk.ask(messages("u5"), answer("a5"))
    assert response.headers["x-memory-reason"] == "context_trimmed"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_an_error_of_any_length_passes_verbatim(one: Rig, framing: str) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    page = [b"<html>" + b"x" * 99_994, b"y" * 100_000]
    html = (("content-type", "text/html"),)
    one.up.reply(Script(status=403, headers=html, pieces=page, framing=framing))  # type: ignore[arg-type]
    response = await talk.ask(messages("u2"))
    assert (response.status_code, response.content) == (403, b"".join(page))


async def test_a_client_that_leaves_while_an_error_comes_leaves_nothing_open(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    one.up.reply(Script(status=400, pieces=[b'{"error":'], hang="body"))
    body = json.dumps({"model": "m", "messages": messages("u2")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        asked = await one.up.wait_for(2)
    async with asyncio.timeout(PATIENCE):
        await asked.gone.wait()
