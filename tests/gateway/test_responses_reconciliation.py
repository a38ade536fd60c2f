"""Whatever a client resends to the Responses API, each message is stored once and sent once.

And so it is where a conversation goes on in another format than it began in.
"""

from __future__ import annotations

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk
from tests.support.talk.rows import ROWS, Row
from tests.support.talk.words import exchanges

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def had(talk: Talk, conversation: str) -> None:
    for asked, answered in exchanges(conversation):
        await talk.say(asked, answered)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_each_message_is_sent_once_and_stored_once(
    every: Rig, row: Row, stream: bool
) -> None:
    talk = ItemTalk.of(every)
    await had(talk, row.before)
    assert await talk.say(row.sent, row.said, stream=stream, **row.headers) == row.upstream
    assert await talk.log() == row.log
    assert await talk.gone() == row.gone


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_a_conversation_of_chat_completions_goes_on_in_items(one: Rig, row: Row) -> None:
    chat = one.talk()
    await had(chat, row.before)
    talk = ItemTalk.of(one)
    talk.session = chat.session
    assert await talk.say(row.sent, row.said, stream=False, **row.headers) == row.upstream
    assert await talk.log() == row.log
    assert await talk.gone() == row.gone


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_a_conversation_of_items_goes_on_in_chat_completions(one: Rig, row: Row) -> None:
    talk = ItemTalk.of(one)
    await had(talk, row.before)
    chat = Talk(one, talk.session)
    one.up.always(None)
    assert await chat.say(row.sent, row.said, stream=False, **row.headers) == row.upstream
    assert await chat.log() == row.log
    assert await chat.gone() == row.gone


OF_MESSAGES_ALONE = (
    "later-system-messages-stay-and-are-not-recorded",
    "developer-messages-are-system-ones",
)
"""The Messages API has its system text beside the messages."""


@pytest.mark.parametrize(
    "row", [row for name, row in ROWS.items() if name not in OF_MESSAGES_ALONE]
)
async def test_a_conversation_of_messages_goes_on_in_items(one: Rig, row: Row) -> None:
    anthropic = MessagesTalk.on(one)
    await had(anthropic, row.before)
    talk = ItemTalk.of(one)
    talk.session = anthropic.session
    assert await talk.say(row.sent, row.said, stream=False, **row.headers) == row.upstream
    assert await talk.log() == row.log
    assert await talk.gone() == row.gone
