"""Whatever a client resends, each message is stored once and sent once: all the way, by socket."""

from __future__ import annotations

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.rows import ROWS, Row
from tests.support.talk.words import exchanges

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def had(talk: Talk, conversation: str) -> None:
    """Have a conversation, sending only what is new."""
    for asked, answered in exchanges(conversation):
        await talk.say(asked, answered)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_each_message_is_sent_once_and_stored_once(
    every: Rig, row: Row, stream: bool
) -> None:
    talk = every.talk()
    await had(talk, row.before)
    assert await talk.say(row.sent, row.said, stream=stream, **row.headers) == row.upstream
    assert await talk.log() == row.log
    assert await talk.gone() == row.gone


async def test_a_greeting_before_each_question_supersedes_nothing_once_the_model_says_it_too(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("q1 u1", "a1")
    await talk.say("q1 u2", "q1")
    assert await talk.say("q1 u3", "a3") == "q1 u1 a1 u2 q1 u3"
    assert await talk.say("q1 u4", "a4") == "q1 u1 a1 u2 q1 u3 a3 u4"
    assert await talk.log() == "q1 u1 a1 u2 q1 u3 a3 u4 a4"


@pytest.mark.parametrize("history", ["auto", "full"])
async def test_back_to_an_answer_from_before_the_tools_the_calls_are_superseded(
    every: Rig, history: str
) -> None:
    talk = every.talk()
    await talk.say("u0", "a0")
    await talk.say("u0 a0 u1", "a1")
    await talk.say("u0 a0 u1", "a2(c2)")
    await talk.say("u0 a0 u1 a2(c2) t2:c2", "a3")
    sent = await talk.say("u0 a0 u1 a1 u4", "a4", x_memory_history=history)
    assert sent == "u0 a0 u1 a1 u4"
    assert await talk.log() == "u0 a0 u1 a1 u4 a4"


async def test_back_to_the_shorter_of_two_tool_loops_only_what_it_lacks_is_superseded(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("u1", "a1(c1)")
    await talk.say("u1 a1(c1) t1:c1", "a2")
    await talk.say("u1 a1(c1) t1:c1", "a3(c3)")
    await talk.say("u1 a1(c1) t1:c1 a3(c3) t3:c3", "a4")
    assert await talk.say("u1 a1(c1) t1:c1 a2 u5", "a5") == "u1 a1 t1 a2 u5"
    assert await talk.log() == "u1 a1 t1 a2 u5 a5"


async def test_an_answer_that_is_edited_to_what_was_said_elsewhere_keeps_its_calls(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("u0", "a9")
    await talk.say("u0", "a0", x_stainless_retry_count="1")
    await talk.say("u0 a0 u1", "a1(c1)")
    await talk.say("t1:c1", "a2")
    assert await talk.say("u0 a0 u1 a9 u3", "a3") == "u0 a0 u1 a1 t1 a9 u3"
    assert await talk.log() == "u0 a0 u1 a1 t1 a9 u3 a3"


async def test_a_late_result_behind_a_window_brings_its_call(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1(c1)")
    await talk.say("u2", "a2")
    assert await talk.say("u2 a2 t1:c1", "a3") == "u2 a2 u1 a1 t1"


async def test_from_a_client_that_shows_no_tools_an_edit_and_its_undoing_leave_the_calls(
    every: Rig,
) -> None:
    talk = every.talk()
    await talk.say("u1", "a1(c1)")
    await talk.say("t1:c1", "a2")
    assert await talk.say("u1 a9 u3", "a3") == "u1 a1 t1 a9 u3"
    assert await talk.say("u1 a2 u4", "a4") == "u1 a1 t1 a2 u4"
