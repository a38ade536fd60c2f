"""Without a session everything keeps its pace: nothing is held back, nothing is hoarded."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.rig import CHAT, Rig
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, chat_stream, sse
from tests.support.waiting import PATIENCE, standstill

pytestmark = pytest.mark.asyncio(loop_scope="session")

LARGE = 100_000_000
"""Bytes: more than the system's buffers take of a connection to the proxy and of one behind it."""


@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/audio/speech"])
async def test_each_piece_passes_before_the_next_one_exists(relayed: Rig, path: str) -> None:
    second, end = asyncio.Event(), asyncio.Event()
    first, *rest = chat_stream(["a", "b"])
    relayed.up.always(sse([first, second, rest[0], end, *rest[1:]]))
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", path, [], b"{}"))
        assert (await line.head())[0] == 200
        chunks = line.chunks()
        assert await anext(chunks) == first
        second.set()
        assert await anext(chunks) == rest[0]
        end.set()
        assert b"".join([chunk async for chunk in chunks]) == b"".join(rest[1:])


async def test_headers_pass_before_the_first_byte_of_the_body(relayed: Rig) -> None:
    hold = asyncio.Event()
    relayed.up.always(sse([hold, b"data: [DONE]\n\n"]))
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        status, headers = await line.head()
        assert (status, dict(headers)[b"content-type"]) == (
            200,
            b"text/event-stream; charset=utf-8",
        )
        hold.set()
        assert [chunk async for chunk in line.chunks()] == [b"data: [DONE]\n\n"]


async def test_a_large_upload_streams_and_waits_for_a_slow_upstream(relayed: Rig) -> None:
    sent = 0
    relayed.up.read_gate = asyncio.Event()
    block = b"x" * 100_000
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", "/v1/files", [("Content-Length", str(LARGE))]))

        async def upload() -> None:
            nonlocal sent
            while sent < LARGE:
                await line.send(block)
                sent += len(block)

        uploading = asyncio.create_task(upload())
        stuck = await standstill(lambda: sent)
        assert 0 < stuck < LARGE
        relayed.up.read_gate.set()
        assert (await line.answer()).status == 200
        await uploading
    relayed.up.read_gate = None
    asked = relayed.up.requests[-1]
    assert (len(asked.body), asked.header("content-length")) == (LARGE, str(LARGE))


async def test_a_slow_reader_holds_back_a_large_answer(relayed: Rig) -> None:
    piece = b"y" * 100_000
    relayed.up.always(Script(pieces=[piece] * (LARGE // len(piece))))
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("GET", "/v1/files/f/content"))
        assert (await line.head())[0] == 200
        asked = await relayed.up.wait_for(1)
        assert await standstill(lambda: asked.sent) < LARGE
        assert sum([len(chunk) async for chunk in line.chunks()]) == LARGE


async def test_a_client_that_leaves_takes_its_upstream_request_with_it(relayed: Rig) -> None:
    relayed.up.always(sse(chat_stream(["a"])[:1], hang="body"))
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        await line.head()
    asked = await relayed.up.wait_for(1)
    async with asyncio.timeout(PATIENCE):
        await asked.gone.wait()


async def test_a_client_that_leaves_before_the_answer_takes_its_request_with_it(
    relayed: Rig,
) -> None:
    relayed.up.always(Script(hang="headers"))
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        asked = await relayed.up.wait_for(1)
    async with asyncio.timeout(PATIENCE):
        await asked.gone.wait()


@pytest.mark.parametrize("script", [Script(hang="headers"), sse([b"data: 1\n\n"], hang="body")])
@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
async def test_so_does_one_whose_body_came_in_pieces(
    relayed: Rig, script: Script, path: str
) -> None:
    relayed.up.always(script)
    body = b"{" + b" " * 200_000 + b"}"
    async with raw.line(relayed.port) as line:
        await line.send(raw.request("POST", path, [], body))
        asked = await relayed.up.wait_for(1)
    async with asyncio.timeout(PATIENCE):
        await asked.gone.wait()


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_an_answer_that_breaks_off_is_seen_to_break_off(relayed: Rig, framing: str) -> None:
    kind = (("content-type", "text/event-stream"),)
    broken = Script(headers=kind, pieces=[b"a" * 50, b"b" * 50], framing=framing, cut=70)  # type: ignore[arg-type]
    relayed.up.always(broken)
    answer = await raw.ask(relayed.port, "POST", "/v1/responses", [], b"{}")
    assert (answer.status, answer.whole) == (200, False)
    assert relayed.proxy.server.started


async def test_an_unreachable_upstream_is_said_in_openais_shape(relayed: Rig) -> None:
    relayed.up.always(Script(drop=True))
    answer = await raw.ask(relayed.port, "POST", "/v1/responses", [], b"{}")
    assert (answer.status, answer.get("content-type")) == (502, b"application/json")
    assert json.loads(answer.body)["error"]["code"] == "upstream_unreachable"
