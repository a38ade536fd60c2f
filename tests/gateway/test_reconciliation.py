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
