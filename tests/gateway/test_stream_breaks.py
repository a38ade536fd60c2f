"""Streams that do not end: what is passed on, and what is remembered of them."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from tests.support.rig import CHAT, Rig
from tests.support.talk.words import messages
from tests.support.upstream import raw
from tests.support.upstream.answers import (
    sse,
)
from tests.support.upstream.spoken import DONE, END, HELLO, SPOKEN, events, finish_of
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("name", ["text", "usage-behind-the-finish"])
async def test_a_break_before_the_finish_is_passed_on_and_nothing_is_recorded(
    one: Rig, name: str
) -> None:
    stream, talk = SPOKEN[name].stream, one.talk()
    one.up.reply(sse([stream], cut=finish_of(stream) - 10))
    with pytest.raises(httpx.RemoteProtocolError):
        await talk.ask(messages("u1"), stream=True)
    assert await talk.history() == []


async def test_a_break_behind_the_finish_leaves_a_complete_record(one: Rig) -> None:
    stream, talk = SPOKEN["usage-behind-the-finish"].stream, one.talk()
    one.up.reply(sse([stream], cut=stream.index(b'"usage"')))
    with pytest.raises(httpx.RemoteProtocolError):
        await talk.ask(messages("u1"), stream=True)
    assert [(m.card.role, m.card.incomplete) for m in await talk.history()] == [
        ("user", False),
        ("assistant", False),
    ]


async def test_what_a_client_that_left_had_received_is_recorded_as_incomplete(every: Rig) -> None:
    talk = every.talk()
    every.up.reply(sse([events(*HELLO)], hang="body"))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(every.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
        await anext(line.chunks())
    await asyncio.wait_for(every.up.requests[-1].gone.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while not await talk.history():
            await asyncio.sleep(0.005)
    assert (await talk.bodies())[1]["content"] == "Hello"
    assert [m.card.incomplete for m in await talk.history()] == [False, True]


async def test_a_client_that_leaves_before_the_first_byte_leaves_nothing(one: Rig) -> None:
    talk, hold = one.talk(), asyncio.Event()
    one.up.reply(sse([hold, events(*HELLO)]))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
    await asyncio.wait_for(one.up.requests[-1].gone.wait(), PATIENCE)
    assert await talk.say("u2", "a2") == "u2"
    assert await talk.log() == "u2 a2"


async def test_a_patient_profile_finishes_the_answer_for_a_client_that_left(one: Rig) -> None:
    talk, hold = one.talk(**{"x-memory-profile": "patient"}), asyncio.Event()
    one.up.reply(sse([events(HELLO[0]), hold, events(*HELLO[1:], END) + DONE]))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
        await anext(line.chunks())
    await one.client.get("/v1/models")
    hold.set()
    await asyncio.wait_for(one.up.requests[0].answered.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while not await talk.history():
            await asyncio.sleep(0.005)
    assert [m.card.incomplete for m in await talk.history()] == [False, False]
    assert (await talk.bodies())[1]["content"] == "Hello"
