"""An answer that a request forced into a call is in the next prompt, in a form that all take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.upstream.answers import (
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
    tool_call,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORCED = {"type": "function", "function": {"name": "Person"}}
ARGUMENTS = '{"name": "Kai"}'
CALL = tool_call("Person", ARGUMENTS, "k1")
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
IN_WORDS = {"role": "assistant", "content": ARGUMENTS}
RESULT = {"role": "tool", "tool_call_id": "k1", "content": "saved"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calling(stream: bool) -> Script:
    if stream:
        return sse(chat_stream([], [CALL], include_usage=True))
    return json_answer(chat_completion(None, tool_calls=[CALL]))


async def extracted(one: Rig, choice: object = FORCED, *, stream: bool = False) -> Talk:
    """A session in which an object has been asked for, by a forced call."""
    talk = one.talk()
    more = {"stream": True} if stream else {}
    answer = await talk.ask([user("I am Kai")], calling(stream), tool_choice=choice, **more)
    assert answer.status_code == 200
    return talk


async def got(talk: Talk, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    await talk.ask(messages, json_answer(chat_completion("ok")))
    assert not talk.rig.up.refused
    found: list[dict[str, Any]] = talk.rig.up.requests[-1].messages
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("choice", [FORCED, "required"], ids=["named", "required"])
async def test_the_next_prompt_has_the_answer_as_text(
    one: Rig, choice: object, stream: bool
) -> None:
    talk = await extracted(one, choice, stream=stream)
    sent = await got(talk, user("who am I?"))
    assert sent == [user("I am Kai"), IN_WORDS, user("who am I?")]
    assert json.loads((await talk.history())[1].wire)["tool_calls"][0]["id"] == "k1"


async def test_what_is_injected_is_counted_as_it_is_sent(one: Rig) -> None:
    talk = await extracted(one)
    answer = await talk.ask([user("who am I?")], json_answer(chat_completion("Kai")))
    cards = [message.card for message in await talk.history()]
    assert 0 < cards[1].call_text_tokens < cards[1].tokens
    assert answer.headers["x-memory-messages"] == "2"
    assert int(answer.headers["x-memory-tokens"]) == cards[0].tokens + cards[1].call_text_tokens


async def test_a_result_that_comes_all_the_same_finds_its_call(one: Rig) -> None:
    talk = await extracted(one)
    assert await got(talk, RESULT) == [user("I am Kai"), CALLING, RESULT]
    answered = {"role": "assistant", "content": "ok"}
    whole = [user("I am Kai"), CALLING, RESULT, answered, user("and?")]
    assert await got(talk, user("and?")) == whole


async def test_a_client_that_resends_the_call_is_the_same_client(one: Rig) -> None:
    talk = await extracted(one)
    one.up.strict = False
    sent = [user("I am Kai"), CALLING, user("who am I?")]
    assert await got(talk, *sent) == sent
    assert await talk.gone() == ""
    assert len(await talk.bodies()) == 4


async def test_a_client_that_shows_the_object_as_text_replaces_the_call(one: Rig) -> None:
    talk = await extracted(one)
    sent = [user("I am Kai"), IN_WORDS, user("who am I?")]
    assert await got(talk, *sent) == sent
    assert (await talk.bodies())[:3] == sent


async def test_a_call_that_nobody_forced_is_left_out(one: Rig) -> None:
    talk = await extracted(one, "auto")
    assert await got(talk, user("who am I?")) == [user("I am Kai"), user("who am I?")]
