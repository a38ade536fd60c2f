"""No client knows that an answer is complete before it is recorded, and nothing else waits."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from tests.support.rig import CHAT, Rig, Talk
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import (
    USAGE,
    Script,
    chat_completion,
    json_answer,
    sse,
)
from tests.support.upstream.spoken import (
    DONE,
    END,
    HELLO,
    SPOKEN,
    USED,
    cuts,
    delta,
    events,
    finish_of,
    whole_call,
)
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def collect(talk: Talk, got: bytearray) -> None:
    """Ask for a stream and gather it as it comes."""
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(talk.rig.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
        async for piece in line.chunks():
            got += piece


@pytest.mark.parametrize("feeding", ["whole", "events", "random"])
async def test_the_client_never_has_the_finish_before_the_commit(one: Rig, feeding: str) -> None:
    stream, talk, got = SPOKEN["usage-behind-the-finish"].stream, one.talk(), bytearray()
    one.up.reply(sse(cuts(stream, feeding, b"\n")))
    release = one.store.hold()
    client = asyncio.create_task(collect(talk, got))
    await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while len(got) < finish_of(stream):  # what was sent before may still be on its way
            await one.client.get("/v1/models")
    await one.client.get("/v1/models")  # the proxy has had every occasion to say more
    assert b'"finish_reason": "stop"}' not in got
    assert stream.startswith(got)
    assert len(await talk.history()) == 0
    release.set()
    await client
    assert got == stream
    assert len(await talk.history()) == 2


async def test_of_a_plain_answer_the_last_byte_waits_for_the_commit(one: Rig) -> None:
    talk = one.talk()
    script = json_answer(chat_completion("hello"))
    whole = b"".join(piece for piece in script.pieces if isinstance(piece, bytes))
    one.up.reply(Script(pieces=[whole[:40], whole[40:]], framing="chunked"))
    release = one.store.hold()
    body = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        assert (await line.head())[0] == 200
        chunks, got = line.chunks(), b""
        while len(got) < len(whole) - 1:
            got += await anext(chunks)
        await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)
        assert got == whole[:-1]
        release.set()
        assert got + b"".join([chunk async for chunk in chunks]) == whole
    assert len(await talk.history()) == 2


async def test_usage_is_recorded_before_the_stream_ends(one: Rig) -> None:
    talk, got, more = one.talk(), bytearray(), asyncio.Event()
    one.up.reply(sse([events(*HELLO, END), more, events(USED) + DONE]))
    release = one.store.hold()
    client = asyncio.create_task(collect(talk, got))
    await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)
    release.set()
    release = one.store.hold()
    more.set()
    await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)  # the second write
    assert b"[DONE]" not in got
    (exchange,) = [commit.exchange.id for commit in one.store.commits]
    assert (await talk.exchange(exchange)).usage is None
    release.set()
    await client
    assert (bytes(got), len(one.store.amendments)) == (events(*HELLO, END, USED) + DONE, 1)
    assert json.loads((await talk.exchange(exchange)).usage or b"") == USAGE


FINISHED = [
    delta(finish="stop", role="assistant", content="Paris is "),
    delta(finish="stop", content="the capital."),
]
"""As some upstreams stream: each chunk is finished."""


@pytest.mark.parametrize("feeding", ["whole", "events", "random"])
async def test_what_comes_behind_a_finish_is_in_the_next_prompt(every: Rig, feeding: str) -> None:
    talk, stream = every.talk(), events(*FINISHED, USED) + DONE
    script = sse(cuts(stream, feeding, b"\n"))
    response = await talk.ask(messages("u1"), script, stream=True)
    assert response.content == stream
    assert len(every.store.commits) == 1 and len(every.store.amendments) <= 1
    await talk.say("u2", "a2")
    assert every.up.requests[-1].messages[1]["content"] == "Paris is the capital."
    usual, once = every.talk(), events(delta(content="Paris is the capital."), END) + DONE
    await usual.ask(messages("u1"), sse([once]), stream=True)
    cards = [(await each.history())[1].card for each in (talk, usual)]
    assert len({(card.digest, card.tokens, card.incomplete) for card in cards}) == 1


async def test_a_call_behind_a_finish_can_be_answered(every: Rig) -> None:
    talk = every.talk()
    called = {"index": 0, **whole_call("c1", "f", "{}")}
    first = delta(finish="tool_calls", role="assistant", content=None)
    stream = events(first, delta(finish="tool_calls", tool_calls=[called])) + DONE
    await talk.ask(messages("u1"), sse([stream]), stream=True)
    result = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    await talk.ask([result], answer("a1"))
    roles = [each["role"] for each in every.up.requests[-1].messages]
    assert roles == ["user", "assistant", "tool"]


async def test_a_slow_commit_delays_only_the_finish(one: Rig) -> None:
    talk, pause, got = one.talk(), 0.05, bytearray()
    before, behind = events(*HELLO, *HELLO[1:] * 10), events(END) + DONE
    one.up.reply(sse([before, behind]))
    release = one.store.hold()
    client = asyncio.create_task(collect(talk, got))
    await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while bytes(got) != before:
            await one.client.get("/v1/models")
    begun = time.perf_counter()
    asyncio.get_running_loop().call_later(pause, release.set)
    await client
    assert time.perf_counter() - begun >= pause
    assert bytes(got) == before + behind


async def test_the_next_request_sees_the_exchange_as_soon_as_the_stream_has_ended(
    every: Rig,
) -> None:
    talk = every.talk()
    for turn in range(1, 6):
        before = " ".join(f"u{n} a{n}" for n in range(1, turn))
        sent = await talk.say(f"u{turn}", f"a{turn}", stream=True)
        assert sent == f"{before} u{turn}".strip()
