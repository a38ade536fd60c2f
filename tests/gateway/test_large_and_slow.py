"""What is too large or too slow is given up, and nothing that was said is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.rig import CHAT, Rig, rig
from tests.support.talk.harm import began, nothing_was_lost, refusal
from tests.support.talk.words import answer, messages
from tests.support.upstream import raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = json.dumps({"model": "m", "messages": messages("u2")}).encode()


LIMIT = 200_000


@pytest_asyncio.fixture(loop_scope="session")
async def strict(tmp_path: Path) -> AsyncIterator[Rig]:
    """A proxy that takes little, and waits for little."""
    async with rig(tmp_path, server__max_body_bytes=LIMIT, server__body_timeout=0.2) as ready:
        yield ready


async def test_a_body_that_declares_too_much_is_refused_before_it_is_read(strict: Rig) -> None:
    talk = await began(strict)
    fields = {**talk.all_headers, "Content-Length": "100000000"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()))
        answered = await line.answer()
    assert refusal(answered) == (413, "request_too_large")
    assert answered.get("connection") == b"close"
    await nothing_was_lost(talk)


async def test_a_body_of_100_megabytes_is_refused_while_it_comes(strict: Rig) -> None:
    talk = await began(strict)
    async with raw.line(strict.port) as line:
        fields = {**talk.all_headers, "Content-Length": "100000000"}
        await line.send(raw.request("POST", CHAT, fields.items()))
        uploading = asyncio.create_task(_pour(line, b"x" * 100_000, 1000))
        assert refusal(await line.answer()) == (413, "request_too_large")
        await uploading
    await nothing_was_lost(talk)


async def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large(strict: Rig) -> None:
    talk = await began(strict)
    async with raw.line(strict.port) as line:
        fields = {**talk.all_headers, "Transfer-Encoding": "chunked"}
        await line.send(raw.request("POST", CHAT, fields.items()))
        block = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        uploading = asyncio.create_task(_pour(line, block, 1000))
        assert refusal(await line.answer()) == (413, "request_too_large")
        await uploading
    await nothing_was_lost(talk)


async def _pour(line: raw.Line, block: bytes, times: int) -> None:
    try:
        for _ in range(times):
            await line.send(block)
    except ConnectionError:
        pass  # nobody reads what was refused


async def test_a_body_of_exactly_the_limit_is_taken(strict: Rig) -> None:
    talk = await began(strict)
    strict.up.reply(answer("a2"))
    body = GOOD + b" " * (LIMIT - len(GOOD))
    assert (await talk.post(body)).status_code == 200
    assert (await talk.post(body + b" ")).status_code == 413


async def test_without_a_session_a_body_may_be_of_any_size(strict: Rig) -> None:
    strict.up.strict = False
    answered = await raw.ask(strict.port, "POST", CHAT, [], b"x" * (3 * LIMIT))
    assert answered.status == 200
    assert len(strict.up.requests[-1].body) == 3 * LIMIT


async def test_a_body_that_does_not_come_is_given_up(strict: Rig) -> None:
    talk = await began(strict)
    fields = {**talk.all_headers, "Content-Length": "100"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'{"model"')
        answered = await line.answer()
    assert refusal(answered) == (408, "request_timeout")
    assert answered.get("connection") == b"close"
    await nothing_was_lost(talk)


async def test_a_client_that_leaves_within_its_body_leaves_nothing(strict: Rig) -> None:
    talk = await began(strict)
    asked = len(strict.up.requests)
    fields = {**talk.all_headers, "Content-Length": "100"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'{"model"')
    assert len(strict.up.requests) == asked
    await nothing_was_lost(talk)
