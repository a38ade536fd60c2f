"""Exports and imports on a socket: as fast as the other side, and over when it has gone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from proxy.memory.archive import Page, StoredMessage
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from tests.support.rig import Rig, rig
from tests.support.store.inside import AUTHORIZATION, TENANT, nothing_left
from tests.support.talk.foreign import archived, read
from tests.support.talk.living import API, HEADERS, exported
from tests.support.upstream.raw import line
from tests.support.waiting import eventually, standstill

LARGE = 200
"""Sessions of 100 kB each: more than all buffers on the way hold."""


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(tmp_path) as here:
        yield here


class Counted:
    """How often a session has been read."""

    def __init__(self, here: Rig, patch: pytest.MonkeyPatch) -> None:
        self.reads, self._read = 0, here.store.real.lines
        self.fails_after = LARGE * 2
        patch.setattr(here.store.real, "lines", self.lines)

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        self.reads += 1
        if self.reads > self.fails_after:
            raise StoreError("down")
        return await self._read(key, after, limit)


async def fill(here: Rig) -> None:
    text = "x" * 100_000
    lines = (
        json.dumps({"messages": [{"role": "user", "content": f"{n} {text}"}]}) for n in range(LARGE)
    )
    for conversation in read("\n".join(lines).encode(), "chat_jsonl", 10**6, line=10**6):
        one = archived(conversation)
        assert await here.store.real.restore(SessionKey(TENANT, one.session.id), one)


ASKED = (
    f"GET {API}/export HTTP/1.1\r\nhost: localhost\r\nauthorization: {AUTHORIZATION}\r\n\r\n"
).encode()


async def test_a_client_that_does_not_read_stops_the_export_and_one_that_leaves_ends_it(
    here: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(here)
    counted = Counted(here, monkeypatch)
    async with line(here.port) as reading:
        await reading.send(ASKED)
        assert (await reading.head())[0] == 200
        stopped = await standstill(lambda: counted.reads, 0.2)
        assert 0 < stopped < LARGE / 2
    await nothing_left(here.proxy)
    assert counted.reads < LARGE


async def test_a_chat_goes_on_while_an_export_runs(here: Rig) -> None:
    await fill(here)
    async with line(here.port) as reading:
        await reading.send(ASKED)
        assert (await reading.head())[0] == 200
        assert await here.talk().say("u1", "a1") == "u1"
        export = b"".join([chunk async for chunk in reading.chunks()])
    assert export.count(b'{"kind":"session"') in (LARGE, LARGE + 1)
    assert export.endswith(b"}\n") and b'{"kind":"end"' in export


async def test_a_store_that_fails_breaks_the_connection(
    here: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(here)
    Counted(here, monkeypatch).fails_after = 50
    with pytest.raises(httpx.RemoteProtocolError):
        await exported(here.client)
    await nothing_left(here.proxy)


async def test_sessions_that_were_complete_stay_when_the_client_leaves(here: Rig) -> None:
    talk = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
    body = talk + b"\n" + b" " * 100_000 + talk[:20]
    head = (
        f"POST {API}/import?format=chat_jsonl HTTP/1.1\r\nhost: localhost\r\n"
        f"authorization: {AUTHORIZATION}\r\ncontent-length: 1000000\r\n\r\n"
    ).encode()
    async with line(here.port) as writing:
        await writing.send(head + body)

        async def there() -> bool:
            return bool((await here.store.real.sessions(TENANT, None, None, 10)).items)

        await eventually(there)
    await nothing_left(here.proxy)
    assert len((await here.store.real.sessions(TENANT, None, None, 10)).items) == 1


async def test_the_rest_of_a_broken_file_is_let_in_so_that_the_answer_is_read(here: Rig) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'{"messages": 5}\n'
        for _ in range(500):
            yield b"x" * 100_000

    response = await here.client.post(f"{API}/import", content=body(), headers=HEADERS)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("Line 1 has no list of messages.")
