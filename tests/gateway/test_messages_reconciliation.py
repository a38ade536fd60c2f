"""The table of reconciliation over the Messages API, and across both APIs: one log, two views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.messaging import Json, MessagesTalk
from tests.support.talk.rows import ROWS, Row
from tests.support.talk.words import exchanges
from tests.support.upstream import anthropic
from tests.support.upstream.anthropic import text, tool_result, tool_use
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OF_CHAT_ALONE = (
    "later-system-messages-stay-and-are-not-recorded",
    "developer-messages-are-system-ones",
)
"""The Messages API has its system text beside the messages."""

TABLE = {name: row for name, row in ROWS.items() if name not in OF_CHAT_ALONE}
each = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)

Api = Callable[[Rig, str], Talk]


def chat(rig: Rig, session: str) -> Talk:
    return Talk(rig, session)


def messages(rig: Rig, session: str) -> Talk:
    return MessagesTalk.on(rig, session)


# In one row the client sends two messages of the user in a row, and memory adds nothing to them.
async def holds(rig: Rig, row: Row, before: Api, then: Api, *, stream: bool) -> None:
    session = rig.talk().session
    rig.up.merges = row is TABLE["a-call-told-as-text-and-its-turn-over"]
    for asked, answered in exchanges(row.before):
        await before(rig, session).say(asked, answered, stream=stream)
    talk = then(rig, session)
    assert await talk.say(row.sent, row.said, stream=stream, **row.headers) == row.upstream
    assert await talk.log() == row.log
    assert await talk.gone() == row.gone


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@each
async def test_each_message_is_sent_once_and_stored_once(
    every: Rig, row: Row, stream: bool
) -> None:
    await holds(every, row, messages, messages, stream=stream)


@each
async def test_what_chat_completions_began_goes_on_with_messages(one: Rig, row: Row) -> None:
    await holds(one, row, chat, messages, stream=True)


@each
async def test_what_messages_began_goes_on_with_chat_completions(one: Rig, row: Row) -> None:
    await holds(one, row, messages, chat, stream=True)


async def looked(
    talk: MessagesTalk, before: Sequence[Json], last: Sequence[Json], *, stream: bool
) -> None:
    """A turn of two answers, with a call between them."""
    call = tool_use("look", {}, "toolu_1")
    asked: list[Json] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [*before, call]},
        {"role": "user", "content": [tool_result("toolu_1", "3")]},
    ]
    for said, answer in ((asked[:1], [*before, call]), (asked, last)):
        await talk.ask(said, anthropic.answered(*answer, stream=stream), stream=stream)


def without_tools(before: Sequence[Json], last: Sequence[Json]) -> list[Json]:
    """The same, as a client puts it together, and what comes next."""
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [*before, *last]},
        {"role": "user", "content": "Thanks."},
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("texts", [1, 3], ids=["one-text", "several-texts"])
async def test_answers_that_a_client_puts_together_without_the_tools_are_sent_once(
    every: Rig, texts: int, stream: bool
) -> None:
    talk = MessagesTalk.on(every)
    before = [text(f"Let me look {n}.") for n in range(texts)]
    last = [text(f"It is {n}.") for n in range(texts)]
    await looked(talk, before, last, stream=stream)
    resent = without_tools(before, last)
    await talk.ask(resent, anthropic.answered(text("Gladly."), stream=stream), stream=stream)
    assert every.up.requests[-1].messages == resent
    assert [each["content"] for each in await talk.bodies()][-2:] == ["Thanks.", "Gladly."]
    assert not await talk.gone()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("words", [1, 2000], ids=["short", "long"])
async def test_answers_that_a_client_puts_together_while_the_store_is_away_are_stored_once(
    every: Rig, words: int, stream: bool
) -> None:
    talk = MessagesTalk.on(every)
    before = [text("Let me go and look. " * words)]
    last = [text("It is 3. " * words), text("No more.")]
    await looked(talk, before, last, stream=False)
    stored = await talk.bodies()
    resent = without_tools(before, last)
    with every.store_away():
        await talk.ask(resent, anthropic.answered(text("Gladly."), stream=stream), stream=stream)
    await eventually(lambda: talk.ends_with("Thanks.", "Gladly."))
    assert (await talk.bodies())[:-2] == stored
    assert not await talk.gone()


async def test_an_answer_that_is_a_text_may_have_fields_with_types(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    more = {"source": {"type": "page", "of": {"type": "book"}}}
    asked: list[Json] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", **more},
        {"role": "user", "content": "Bye"},
    ]
    response = await talk.ask(asked, anthropic.answered(text("Bye.")))
    assert "x-memory-reason" not in response.headers
    assert one.up.requests[-1].messages == asked
