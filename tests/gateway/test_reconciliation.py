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
