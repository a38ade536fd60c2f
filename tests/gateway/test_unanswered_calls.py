"""What is said beside a call that nobody answers is in later prompts, without the call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.messaging import MessagesTalk
from tests.support.upstream import anthropic
from tests.support.upstream.answers import (
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
    tool_call,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = "I shall write the file: chapter one."
HALF, DONE = tool_call("write", '{"text": "Once'), tool_call("write", '{"text": "Once."}')
ASKED, NEXT = ({"role": "user", "content": text} for text in ("Write a book.", "Continue."))
SAID = {"role": "assistant", "content": WORDS}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "written"}
OK = json_answer(chat_completion("ok"))


def calling(call: dict[str, Any], finish: str, *, stream: bool = False) -> Script:
    if stream:
        return sse(chat_stream([WORDS], [call], finish_reason=finish))
    return json_answer(chat_completion(WORDS, tool_calls=[call], finish_reason=finish))


async def cut(rig: Rig) -> Talk:
    """A session whose answer came to its limit inside a call."""
    talk = rig.talk()
    await talk.ask([ASKED], calling(HALF, "length"))
    return talk


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    ("call", "finish"), [(HALF, "length"), (DONE, "tool_calls")], ids=["half", "done"]
)
async def test_the_words_stay_whatever_the_answer_ended_with(
    every: Rig, call: dict[str, Any], finish: str, stream: bool
) -> None:
    talk = every.talk()
    more = {"stream": True} if stream else {}
    await talk.ask([ASKED], calling(call, finish, stream=stream), **more)
    answer = await talk.ask([NEXT], OK)
    assert every.up.requests[-1].messages == [ASKED, SAID, NEXT]
    cards = [message.card for message in await talk.history()]
    assert 0 < cards[1].side_text_tokens < cards[1].tokens
    assert int(answer.headers["x-memory-tokens"]) == cards[0].tokens + cards[1].side_text_tokens


async def test_a_call_that_is_not_sent_takes_no_room_in_a_window(every: Rig) -> None:
    talk = every.talk()
    large = tool_call("write", json.dumps({"text": "Once more. " * 200}))
    await talk.ask([ASKED], calling(large, "tool_calls"))
    answer = await talk.ask([NEXT], OK, x_memory_max_tokens="60")
    assert every.up.requests[-1].messages == [ASKED, SAID, NEXT]
    assert "x-memory-reason" not in answer.headers
    await talk.ask([RESULT], OK, x_memory_max_tokens="60")
    assert every.up.requests[-1].messages[:2] == [ASKED, {**SAID, "tool_calls": [large]}]


async def test_words_of_messages_stay_that_stop_in_a_call(every: Rig) -> None:
    talk = MessagesTalk.on(every)
    said = (anthropic.text(WORDS), anthropic.tool_use("write", {"text": "Once."}))
    whole = anthropic.message_stream(anthropic.message(*said, stop_reason="max_tokens"))
    *begun, _, _, ended, end = whole  # without the last of its input, and that it is all
    every.up.reply(sse([*begun, ended, end]))
    await talk.ask([ASKED], stream=True)
    await talk.ask([NEXT], anthropic.answered(anthropic.text("ok")))
    assert every.up.requests[-1].messages == [ASKED, SAID, NEXT]


async def test_who_answers_the_call_all_the_same_finds_it(one: Rig) -> None:
    talk = await cut(one)
    await talk.ask([NEXT], OK)
    await talk.ask([RESULT], OK)
    sent = one.up.requests[-1].messages
    assert sent[-3:] == [ASKED, {**SAID, "tool_calls": [HALF]}, RESULT]


async def test_who_resends_the_call_is_the_same_client(one: Rig) -> None:
    talk = await cut(one)
    one.up.strict = False
    sent: list[dict[str, Any]] = [ASKED, {**SAID, "tool_calls": [HALF]}, NEXT]
    await talk.ask(sent, OK)
    assert one.up.requests[-1].messages == sent
    assert len(await talk.bodies()) == 4


async def test_the_words_of_a_call_that_the_client_tells_stay_too(one: Rig) -> None:
    talk = one.talk()
    one.up.strict = False
    await talk.ask([ASKED, {**SAID, "tool_calls": [DONE]}, NEXT], OK)
    one.up.strict = True
    await talk.ask([NEXT], OK)
    assert one.up.requests[-1].messages[:3] == [ASKED, SAID, NEXT]


async def test_words_that_waited_for_the_store_are_counted(one: Rig) -> None:
    talk = one.talk()
    with one.store_away():
        await talk.ask([ASKED], calling(HALF, "length"))
    await eventually(lambda: talk.ends_with(WORDS))
    assert (await talk.history())[1].card.side_text_tokens > 0


async def test_an_answer_that_was_forced_into_a_call_keeps_its_arguments(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([ASKED], calling(DONE, "tool_calls"), tool_choice="required")
    await talk.ask([NEXT], OK)
    told = {"role": "assistant", "content": f"{WORDS}\n{DONE['function']['arguments']}"}
    assert one.up.requests[-1].messages == [ASKED, told, NEXT]


async def test_the_words_of_imported_calls_stay(one: Rig) -> None:
    talk = one.talk()
    said = [ASKED, {**SAID, "tool_calls": [DONE]}]
    path = f"/memory/v1/sessions/{talk.session}/messages"
    await one.client.post(path, content=json.dumps({"messages": said}), headers=talk.all_headers)
    await talk.ask([NEXT], OK)
    assert one.up.requests[-1].messages == [ASKED, SAID, NEXT]
