"""Where recalled text stands in a prompt, how much of it there is, and what is recorded."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from proxy.stores.open import Backend
from tests.support.rig import Rig
from tests.support.talk.recalling import (
    Json,
    blocks_in,
    index,
    marker,
    somebody,
    user_said,
    with_memories,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


@pytest.fixture
def one(remembering: Rig) -> Rig:
    """A proxy on SQLite that knows these profiles, with nothing scripted."""
    remembering.reset()
    return remembering


# Where


async def test_the_block_stands_before_the_last_user_messages_own_text(one: Rig) -> None:
    person, word = await with_memories(one)
    await person.asks([{"role": "system", "content": "Be brief."}, user_said(f"And {word}?")])
    system, question = one.up.requests[-1].messages
    assert system["content"] == "Be brief."
    assert question["content"].startswith('<memory version="1" kind="recall">\n')
    assert question["content"].endswith(f"\n</memory>\n\nAnd {word}?")
    assert question.keys() == {"role", "content"}


async def test_in_a_list_the_block_is_a_part_of_its_own(one: Rig) -> None:
    person, word = await with_memories(one)
    said = [{"type": "text", "text": f"And {word}?"}, IMAGE]
    await person.asks([user_said(said)])
    (question,) = one.up.requests[-1].messages
    assert question["content"][1:] == said
    assert question["content"][0]["text"].endswith("\n</memory>")


async def test_a_block_may_be_a_message_of_its_own(one: Rig) -> None:
    person, word = await with_memories(one)
    await person.asks(f"And {word}?", x_memory_profile="apart")
    block, question = one.up.requests[-1].messages
    assert (block["role"], question) == ("system", user_said(f"And {word}?"))
    assert "masts" in block["content"]


async def test_wishes_stand_in_a_block_of_their_own_before_the_passages(one: Rig) -> None:
    person, word = await with_memories(one)
    await person.tells("Always answer in French.")
    found = await person.asks(f"And {word}?")
    assert list(found) == ["wishes", "recall"]
    assert found["wishes"] == "- Always answer in French."


async def test_all_before_the_last_user_message_stays_as_it_was(one: Rig) -> None:
    """What an upstream has cached is what the window showed the time before."""
    person, word = await with_memories(one)
    talk = person.talk()
    sent: list[list[Json]] = []
    for thing in ("masts", "anchors", "flags", "lamps"):
        await person.asks(f"What {thing} has {word}?", talk)
        sent.append(one.up.requests[-1].messages)
    for before, after in zip(sent, sent[1:], strict=False):
        assert before[:-1] == after[: len(before) - 1]
        assert not blocks_in(after[:-1])


async def test_the_window_starts_where_it_would_without_recall(one: Rig) -> None:
    """Also where it overflows: its room is the same, whatever recall takes of its own."""
    starts: dict[bool, list[int]] = {}
    recalled = 0
    word = marker()
    for remembers in (True, False):
        person = somebody(one, **{"x-memory-profile": "narrow"})
        if remembers:
            await person.tells(f"My boat {word} has masts and sails.")
        talk = person.talk()
        starts[remembers] = []
        for n in range(12):
            found = await person.asks(f"Does {word} have {n} masts? " + "soup " * 40, talk)
            recalled += remembers and bool(found)
            session = await one.store.real.session(talk.key)
            assert session is not None
            starts[remembers].append(session.window_start)
    assert starts[True] == starts[False]
    assert starts[True][-1] > 1 and recalled > 1


# What is said about it


async def test_the_answers_headers_and_the_record_say_what_was_recalled(every: Rig) -> None:
    person, word = await with_memories(every)
    talk = person.talk()
    response = await person.says(talk, f"And {word}?")
    headers = response.headers
    assert headers["x-memory-status"] == "applied"
    assert headers["x-memory-messages"] == "0"
    exchange = await talk.exchange(headers["x-memory-exchange-id"])
    recorded = exchange.memory.all_recalled()
    assert len(recorded) == int(headers["x-memory-recalled"]) > 2
    assert exchange.memory.tokens == int(headers["x-memory-tokens"]) > 50
    assert re.fullmatch(r"memory;dur=[\d.]+, recall;dur=[\d.]+", headers["server-timing"])
    assert word.encode() not in bytes(exchange.memory.recalled)


@pytest.mark.parametrize(
    ("mode", "recalls", "records"), [("read", True, False), ("write", False, True)]
)
async def test_modes_say_whether_to_recall_and_whether_to_record(
    one: Rig, mode: str, recalls: bool, records: bool
) -> None:
    person, word = await with_memories(one)
    talk = person.talk()
    response = await person.says(talk, f"And {word}?", x_memory_mode=mode)
    assert (response.headers["x-memory-recalled"] != "0") is recalls
    assert bool(await talk.history()) is records
    assert ("recall;dur" in response.headers["server-timing"]) is recalls


@pytest.mark.parametrize("how", [{"x_memory_mode": "off"}, {"x_memory_profile": "forgets"}])
async def test_where_recall_is_off_the_original_bytes_are_sent(one: Rig, how: Any) -> None:
    person, word = await with_memories(one)
    body = b' {"model":"m", "messages":[ {"role":"user","content":"And %b?"} ] }' % word.encode()
    response = await person.talk().post(body, **how)
    assert one.up.requests[-1].body == body
    assert response.headers["x-memory-recalled"] == "0"
    assert "recall;dur" not in response.headers.get("server-timing", "")


async def test_where_nothing_is_recalled_the_original_bytes_are_sent(one: Rig) -> None:
    person, _ = await with_memories(one)
    body = b' {"model":"m", "messages":[ {"role":"user","content":"thanks!\\u0021"} ] }'
    response = await person.talk().post(body)
    assert one.up.requests[-1].body == body
    assert response.headers["x-memory-status"] == "empty"


async def test_all_but_the_question_keeps_its_bytes(one: Rig) -> None:
    person, word = await with_memories(one)
    first = b'{"role" : "user","content":"caf\\u00e9 \\ud83d","x":1e999}'
    body = b'{"seed":1e999 ,"messages":[ %b ,{"role":"user","content":"What of %b?"}],"model":"m"}'
    await person.talk().post(body % (first, word.encode()))
    sent = one.up.requests[-1].body
    assert sent.startswith(b'{"seed":1e999,"messages":[' + first + b",")
    assert blocks_in(json.loads(sent)["messages"])


@pytest.mark.parametrize(
    ("roles", "says"), [("listener", False), ("", True)], ids=["user-alone", "both"]
)
async def test_a_profile_says_whose_words_are_recalled(one: Rig, roles: str, says: bool) -> None:
    person, word = somebody(one), marker()
    await person.tells(f"Tell me of {word}.", reply=f"A boat is {word}.")
    chosen: dict[str, Any] = {"x_memory_profile": roles} if roles else {}
    found = (await person.asks(f"And {word}?", **chosen))["recall"]
    assert f"user: Tell me of {word}." in found
    assert (f"assistant: A boat is {word}." in found) is says


async def test_a_profile_may_keep_to_the_session(one: Rig) -> None:
    person, here, there = somebody(one, **{"x-memory-profile": "homely"}), marker(), marker()
    await person.tells(f"My boat is called {there}.")
    talk = await person.tells(f"My cat is called {here}.", "I had soup.", "And bread.")
    assert await person.is_reminded_of(here, talk)
    assert not await person.is_reminded_of(there, talk)


# What is recorded


async def test_what_is_recorded_is_what_the_client_sent(every: Rig) -> None:
    person, word = await with_memories(every)
    talk = person.talk()
    await person.asks(f"And {word}?", talk)
    assert [m["content"] for m in await talk.bodies()] == [f"And {word}?", "Noted."]


@pytest.mark.parametrize("profile", ["", "apart"])
@pytest.mark.parametrize("parts", [False, True], ids=["string", "parts"])
async def test_a_block_that_a_client_sends_back_is_no_part_of_what_it_said(
    one: Rig, parts: bool, profile: str
) -> None:
    chosen = {"x-memory-profile": profile} if profile else {}
    person, word = await with_memories(one, **chosen)
    talk = person.talk()
    asked = f"And {word}?"
    content = [{"type": "text", "text": asked}] if parts else asked
    await person.asks([user_said(content)], talk)
    resent = [*one.up.requests[-1].messages, {"role": "assistant", "content": "Noted."}]
    await person.says(talk, [*resent, user_said("More?")])
    assert [m["content"] for m in await talk.bodies()] == [content, "Noted.", "More?", "Noted."]
    store: Backend = one.store.real  # type: ignore[assignment]
    await index(store, talk.key)
    assert not any(b"<memory" in message.wire for message in await talk.history())
