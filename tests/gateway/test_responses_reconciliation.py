"""Whatever a client resends to the Responses API, each message is stored once and sent once.

And so it is where a conversation goes on in another format than it began in.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk
from tests.support.talk.rows import ROWS, Row
from tests.support.talk.words import exchanges
from tests.support.upstream import items
from tests.support.waiting import eventually

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


Json = dict[str, Any]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def output(call: str, text: str) -> Json:
    return {"type": "function_call_output", "call_id": call, "output": text}


async def sent(
    talk: ItemTalk, asked: list[Json], *answer: Json, stream: bool = False
) -> list[Json]:
    """What the upstream gets of what the client asks, in items."""
    talk.upstream.reply(*answer)
    body = {"model": "gpt-5", "input": asked, "stream": stream}
    assert (await talk.post(body)).status_code == 200
    return talk.input


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("texts", [1, 3], ids=["one-text", "several-texts"])
async def test_answers_between_which_a_client_leaves_out_the_tools_are_sent_once(
    every: Rig, texts: int, stream: bool
) -> None:
    talk = ItemTalk.of(every)
    before = [items.said(f"Let me look {n}.") for n in range(texts)]
    last = [items.said(f"It is {n}.") for n in range(texts)]
    call = items.calls("look", "{}", "c1")
    asked = [user("Look."), *before, call, output("c1", "3")]
    await sent(talk, asked[:1], items.thought(), *before, call, stream=stream)
    assert await sent(talk, asked, *last, stream=stream) == asked
    asked = [user("Look."), *before, *last, user("Thanks.")]
    assert await sent(talk, asked, items.said("Gladly."), stream=stream) == asked
    assert [each["role"] for each in await talk.bodies()][-2:] == ["user", "assistant"]
    assert [each["content"] for each in await talk.bodies()][-2:] == ["Thanks.", "Gladly."]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("words", [1, 2000], ids=["short", "long"])
async def test_answers_without_their_tools_that_come_while_the_store_is_away_are_stored_once(
    every: Rig, words: int, stream: bool
) -> None:
    talk = ItemTalk.of(every)
    before = items.said("Let me go and look. " * words)
    last = [items.said("It is 3. " * words), items.said("No more.")]
    call = items.calls("look", "{}", "c1")
    asked = [user("Look."), before, call, output("c1", "3")]
    await sent(talk, asked[:1], items.thought(), before, call)
    await sent(talk, asked, *last)
    stored = await talk.bodies()
    with every.store_away():
        resent = [user("Look."), before, *last, user("Thanks.")]
        await sent(talk, resent, items.said("Gladly."), stream=stream)
    await eventually(lambda: talk.ends_with("Thanks.", "Gladly."))
    assert (await talk.bodies())[:-2] == stored
    assert not await talk.gone()


async def test_what_a_client_says_for_the_model_is_not_what_the_model_goes_on_with(
    every: Rig,
) -> None:
    talk = ItemTalk.of(every)
    told = {"role": "assistant", "content": "So far they have said hello."}
    call = items.calls("look", "{}", "c1")
    await sent(talk, [told], call)
    asked = [told, call, output("c1", "3")]
    assert await sent(talk, asked, items.said("It is 3.")) == asked
    assert [each["role"] for each in await talk.bodies()] == [
        *("assistant", "assistant", "tool", "assistant")
    ]


async def test_several_texts_of_an_answer_stay_one_message(every: Rig) -> None:
    talk = ItemTalk.of(every)
    answer = [items.thought(), items.said("I look.", phase="commentary"), items.said("It is 3.")]
    await sent(talk, [user("Look.")], *answer)
    asked = [user("Look."), *answer, user("Again.")]
    assert await sent(talk, asked, *answer) == asked
    assert [each["content"] for each in await talk.bodies()] == [
        *("Look.", "I look.\nIt is 3.", "Again.", "I look.\nIt is 3.")
    ]


async def test_what_was_recorded_as_one_message_is_known_as_one(every: Rig) -> None:
    talk = ItemTalk.of(every)
    asked = [user("Look."), items.said("Let me look."), items.said("It is 3."), user("Thanks.")]
    answer = items.said("It is 3.")
    await sent(talk, asked, answer)
    asked += [answer, user("Bye.")]
    assert await sent(talk, asked, items.said("Bye.")) == asked
    assert len(await talk.bodies()) == 6


def repeated(listed: list[Json]) -> bool:
    named = [item["id"] for item in listed if "id" in item]
    return len(set(named)) < len(named)


@pytest.mark.parametrize(
    ("resent", "kept"),
    [
        pytest.param([1, 4], "u c1 t1 c2 t2 y x1 x2 n", id="texts-of-calls"),
        pytest.param([4], "u x1 c1 t1 c2 t2 y x2 n", id="one-of-them"),
        pytest.param([5, 6], "u x1 c1 t1 x2 y c2 t2 n", id="a-call-without-its-text"),
    ],
)
async def test_an_item_that_is_not_recognised_is_sent_once(
    one: Rig, resent: list[int], kept: str
) -> None:
    talk = ItemTalk.of(one)
    x1, x2, y = items.said("Let me look."), items.said("Hm."), items.said("It is 3.")
    c1, c2 = items.calls("look", "{}", "c1"), items.calls("look", "{}", "c2")
    said = [user("Look."), x1, c1, output("c1", "1"), x2, c2, output("c2", "2"), y]
    await sent(talk, said[:1], *said[1:3])
    await sent(talk, said[:4], *said[4:6])
    await sent(talk, said[:7], y)
    got = await sent(talk, [*(said[at] for at in resent), user("Thanks.")], items.said("Gladly."))
    names = ["u", "x1", "c1", "t1", "x2", "c2", "t2", "y", "n"]
    words = dict(zip(names, [*said, user("Thanks.")], strict=True))
    assert got == [words[name] for name in kept.split()]
    assert not repeated(await sent(talk, [user("Bye.")], items.said("Bye.")))


async def test_an_id_that_a_server_gives_to_all_items_names_none(one: Rig) -> None:
    talk = ItemTalk.of(one)
    first, second = items.said("One.", id="msg_0"), items.said("Two.", id="msg_0")
    await sent(talk, [user("1")], first)
    await sent(talk, [user("2")], second)
    got = await sent(talk, [user("2"), second, user("3")], items.said("Three."))
    assert got == [user("1"), first, user("2"), second, user("3")]


async def test_equal_answers_of_a_server_that_gives_one_id_to_all_are_all_sent(one: Rig) -> None:
    talk = ItemTalk.of(one)
    done = items.said("Done.", id="msg_0")
    await sent(talk, [user("1")], done)
    assert await sent(talk, [user("2")], done) == [user("1"), done, user("2")]
    got = await sent(talk, [user("3")], done)
    assert got == [user("1"), done, user("2"), done, user("3")]


async def test_equal_calls_of_a_server_that_gives_one_id_to_all_are_all_sent(one: Rig) -> None:
    talk = ItemTalk.of(one)
    call = items.calls("look", "{}", "c0", id="fc_0")
    rain, sun = items.said("It rains."), items.said("Sun now.")
    said = [user("Now?"), call, output("c0", "rain"), rain]
    said += [user("And now?"), call, output("c0", "sun"), sun]
    await sent(talk, said[:1], call)
    await sent(talk, said[2:3], rain)
    await sent(talk, said[4:5], call)
    assert await sent(talk, said[6:7], sun) == said[:7]
    assert await sent(talk, [user("So?")], items.said("Both.")) == [*said, user("So?")]


async def test_what_was_said_twice_at_once_and_is_told_once_is_not_said_again(one: Rig) -> None:
    """As Semantic Kernel's streams have it without a store."""
    talk = ItemTalk.of(one)
    await talk.say("u1 u1", "a1")
    assert await talk.say("u1 u2 u2", "a2") == "u1 u1 a1 u2 u2"
    assert await talk.say("u1 u2 u3 u3", "a3") == "u1 u1 a1 u2 u2 a2 u3 u3"
