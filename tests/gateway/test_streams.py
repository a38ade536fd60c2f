"""Streams over the socket: the client gets every byte, history the same as of a plain answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import zlib

import pytest

from tests.support.rig import CHAT, Rig, Talk
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import (
    USAGE,
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
)
from tests.support.upstream.spoken import DONE, END, HELLO, NEWLINES, SPOKEN, Spoken, cuts, events

pytestmark = pytest.mark.asyncio(loop_scope="session")

WAYS = [("whole", "lf"), ("events", "crlf"), ("bytes", "cr"), ("random", "lf")]
EVENTS = (("content-type", "text/event-stream"),)


async def recorded(talk: Talk) -> list[tuple[object, ...]]:
    """What history holds of a session's only exchange, ids and times aside."""
    return [
        (
            m.card.role,
            m.card.digest,
            m.card.tokens,
            m.card.choice,
            m.card.incomplete,
            m.wire,
            m.state,
        )
        for m in await talk.history()
    ]


@pytest.mark.parametrize(("feeding", "newline"), WAYS, ids=["-".join(way) for way in WAYS])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
async def test_a_stream_arrives_whole_and_is_recorded_as_the_plain_answer_would_be(
    one: Rig, spoken: Spoken, feeding: str, newline: str
) -> None:
    end = NEWLINES[newline]
    stream, talk = spoken.with_newline(end), one.talk()
    response = await talk.ask(
        messages("u1"), sse(cuts(stream, feeding, end)), stream=True, n=spoken.n
    )
    assert response.content == stream
    exchange = await talk.exchange(response.headers["x-memory-exchange-id"])
    assert exchange.incomplete is spoken.incomplete
    assert (json.loads(exchange.usage) if exchange.usage else None) == (
        USAGE if spoken.usage else None
    )
    if not spoken.incomplete:
        plain = one.talk()
        await plain.ask(messages("u1"), json_answer(spoken.plain()), n=spoken.n)
        assert await recorded(talk) == await recorded(plain)
        await same_prompt(one, talk, plain)


async def same_prompt(rig: Rig, *talks: Talk) -> None:
    """The next request of each is the same to the upstream, which takes it."""
    prompts = []
    for talk in talks:
        assert (await talk.ask(next_words(await talk.bodies()), answer("a2"))).status_code == 200
        prompts.append(rig.up.requests[-1].body)
    assert len(set(prompts)) == 1


def next_words(log: list[dict[str, object]]) -> list[dict[str, object]]:
    """What a client sends next: results where calls wait for them, else a question."""
    calls = log[-1].get("tool_calls")
    if isinstance(calls, list):
        return [{"role": "tool", "tool_call_id": c["id"], "content": "r"} for c in calls]
    return messages("u2")


@pytest.mark.parametrize("name", [name for name, spoken in SPOKEN.items() if spoken.incomplete])
async def test_of_an_incomplete_answer_only_text_is_ever_sent_back(one: Rig, name: str) -> None:
    talk = one.talk()
    await talk.ask(messages("u1"), sse(cuts(SPOKEN[name].stream, "events", b"\n")), stream=True)
    assert (await talk.ask(messages("u2"), answer("a2"))).status_code == 200
    texts = [choice["message"]["content"] for choice in SPOKEN[name].choices]
    assert talk.sent == " ".join(["u1", *texts, "u2"])


# What upstreams do all the same


@pytest.mark.parametrize("feeding", ["whole", "bytes", "random"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip"])
async def test_a_stream_compressed_against_our_wish_is_read_and_recorded(
    one: Rig, coding: str, feeding: str
) -> None:
    stream, talk = SPOKEN["text"].stream, one.talk()
    packed = zlib.compress(stream) if coding == "deflate" else gzip.compress(stream)
    one.up.reply(sse(cuts(packed, feeding, b"\n"), headers=(*EVENTS, ("content-encoding", coding))))
    response = await talk.ask(messages("u1"), stream=True)
    assert response.content == stream
    assert "content-encoding" not in response.headers
    assert (await talk.bodies())[1]["content"] == "Hello"


async def test_a_compressed_stream_is_not_held_back_until_its_end(one: Rig) -> None:
    packer, hold, talk = zlib.compressobj(wbits=31), asyncio.Event(), one.talk()
    first = packer.compress(events(*HELLO)) + packer.flush(zlib.Z_SYNC_FLUSH)
    rest = packer.compress(events(END) + DONE) + packer.flush()
    one.up.reply(sse([first, hold, rest], headers=(*EVENTS, ("content-encoding", "gzip"))))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
        chunks, got = line.chunks(), b""
        while len(got) < len(events(*HELLO)):
            got += await anext(chunks)
        hold.set()
        got += b"".join([chunk async for chunk in chunks])
    assert got == events(*HELLO, END) + DONE


async def test_a_plain_answer_compressed_against_our_wish_is_recorded(one: Rig) -> None:
    talk = one.talk()
    packed = gzip.compress(json.dumps(chat_completion("hello")).encode())
    one.up.reply(Script(headers=(("content-encoding", "gzip"),), pieces=[packed]))
    response = await talk.ask(messages("u1"))
    assert response.json()["choices"][0]["message"]["content"] == "hello"
    assert (await talk.bodies())[1]["content"] == "hello"


@pytest.mark.parametrize("coding", ["none", "utf-8", ""])
async def test_an_answer_whose_coding_is_no_coding_is_recorded(one: Rig, coding: str) -> None:
    stream, talk = SPOKEN["text"].stream, one.talk()
    one.up.reply(sse([stream], headers=(*EVENTS, ("content-encoding", coding))))
    response = await talk.ask(messages("u1"), stream=True)
    assert (response.content, response.headers["content-encoding"]) == (stream, coding)
    assert (await talk.bodies())[1]["content"] == "Hello"


async def test_what_cannot_be_read_is_passed_on_unread_and_not_recorded(one: Rig) -> None:
    talk = one.talk()
    packed = random.Random(3).randbytes(500)
    one.up.reply(Script(headers=(*EVENTS, ("content-encoding", "x-own")), pieces=[packed]))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert (answered.body, answered.get("content-encoding")) == (packed, b"x-own")
    assert answered.get("x-memory-reason") == b"encoded_body"
    assert answered.get("x-memory-exchange-id") is None
    assert await talk.history() == []


async def test_a_plain_answer_to_a_request_for_a_stream_is_recorded(one: Rig) -> None:
    talk = one.talk()
    response = await talk.ask(messages("u1"), answer("a1"), stream=True)
    assert response.headers["content-type"] == "application/json"
    assert await talk.log() == "u1 a1"


async def test_a_stream_that_answers_a_plain_request_is_recorded(one: Rig) -> None:
    talk = one.talk()
    script = sse(chat_stream(["a1-one"]), headers=(("content-type", "TEXT/Event-Stream;x=y"),))
    await talk.ask(messages("u1"), script)
    assert await talk.log() == "u1 a1"


async def test_the_content_type_of_a_stream_need_not_be_json(one: Rig) -> None:
    talk = one.talk()
    body = json.dumps(chat_completion("a1-one")).encode()
    await talk.ask(messages("u1"), Script(headers=(("content-type", "text/plain"),), pieces=[body]))
    assert await talk.log() == "u1 a1"


TYPES = [
    (),
    (("content-type", "text/plain; charset=utf-8"),),
    (("content-type", "application/json"),),
]
"""As upstreams send streams that do not say so."""


@pytest.mark.parametrize("headers", TYPES)
@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
async def test_a_stream_is_recorded_whatever_its_type_says(
    one: Rig, feeding: str, headers: tuple[tuple[str, str], ...]
) -> None:
    stream, usual, talk = events(*HELLO, END) + DONE, one.talk(), one.talk()
    await usual.ask(messages("u1"), sse([stream]), stream=True)
    script = sse(cuts(stream, feeding, b"\n"), headers=headers)
    response = await talk.ask(messages("u1"), script, stream=True)
    assert response.content == stream
    assert await recorded(talk) == await recorded(usual) != []


@pytest.mark.parametrize("headers", TYPES)
async def test_each_event_of_it_comes_at_once(
    one: Rig, headers: tuple[tuple[str, str], ...]
) -> None:
    talk, more = one.talk(), [asyncio.Event() for _ in HELLO]
    pieces = [events(each) for each in HELLO]
    script = [part for pair in zip(pieces, more, strict=True) for part in pair]
    one.up.reply(sse([*script, events(END) + DONE], headers=headers))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, talk.all_headers.items(), body))
        await line.head()
        chunks = line.chunks()
        for piece, event in zip(pieces, more, strict=True):
            assert await anext(chunks) == piece
            event.set()
        assert b"".join([chunk async for chunk in chunks]) == events(END) + DONE


async def test_json_is_recorded_though_it_says_it_were_a_stream(one: Rig) -> None:
    whole, talk = json.dumps(chat_completion("hello")).encode(), one.talk()
    response = await talk.ask(messages("u1"), sse([whole], headers=EVENTS), stream=True)
    assert response.content == whole
    assert await talk.ends_with("hello")
