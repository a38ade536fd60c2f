"""What a process holds at the same time is bounded: the large requests of one tenant wait for each
other, and nobody else's do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.support.rig import CHAT, Rig, Talk, rig
from tests.support.talk.words import answer
from tests.support.upstream import raw
from tests.support.upstream.answers import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")

MIB = 1024 * 1024

LARGE = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "y" * (3 * MIB // 2)}]}
).encode()
"""Of the room of 4 MiB for large ones a tenant has half, which is one of these."""

IMAGE = {"url": "data:image/png;base64," + "A" * (3 * MIB // 2)}
LOOK = json.dumps(
    {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": IMAGE}]}],
    }
).encode()

SMALL = json.dumps({"model": "m", "messages": [{"role": "user", "content": "u1"}]}).encode()


@pytest_asyncio.fixture(loop_scope="session")
async def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr("proxy.wire.limits.WAIT_SECONDS", 0.2)
    async with rig(tmp_path, server__max_held_bytes=8 * MIB) as ready:
        yield ready


def asked_slowly(talk: Talk) -> tuple[asyncio.Task[httpx.Response], asyncio.Event]:
    """A large request whose answer comes once the event is set."""
    release, said = asyncio.Event(), answer("a1")
    talk.rig.up.reply(Script(headers=said.headers, pieces=said.pieces, before=release))
    return asyncio.create_task(talk.post(LARGE)), release


async def test_one_tenants_large_requests_wait_for_each_other_and_nobody_elses(narrow: Rig) -> None:
    first, release = asked_slowly(narrow.talk(authorization="Bearer k"))
    await narrow.up.wait_for(1)
    refused = await narrow.talk(authorization="Bearer k").post(LARGE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert int(refused.headers["retry-after"]) > 0
    narrow.up.always(answer("a"))
    for key, body in [("another", LARGE), ("k", SMALL)]:
        response = await narrow.talk(authorization=f"Bearer {key}").post(body)
        assert (response.status_code, response.headers["x-memory-status"]) == (200, "empty")
    release.set()
    assert (await first).status_code == 200
    assert (await narrow.talk(authorization="Bearer k").post(LARGE)).status_code == 200


async def test_one_that_waits_is_served_when_there_is_room(
    narrow: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.wire.limits.WAIT_SECONDS", 10.0)
    first, release = asked_slowly(narrow.talk())
    await narrow.up.wait_for(1)
    second = asyncio.create_task(narrow.talk().post(LARGE))
    await asyncio.sleep(0.1)
    assert len(narrow.up.requests) == 1
    narrow.up.always(answer("a"))
    release.set()
    assert [(await each).status_code for each in (first, second)] == [200, 200]


async def test_a_picture_takes_no_room_while_the_answer_streams(narrow: Rig) -> None:
    said = answer("a1", stream=True)
    narrow.up.reply(Script(headers=said.headers, pieces=said.pieces[:1], hang="body"))
    talk = narrow.talk()
    async with narrow.client.stream(
        "POST", CHAT, content=LOOK, headers=talk.all_headers | {"content-type": "application/json"}
    ) as streaming:
        assert streaming.status_code == 200
        narrow.up.always(answer("a"))
        assert (await narrow.talk().post(LARGE)).status_code == 200


async def test_who_leaves_while_it_sends_gives_its_room_back(narrow: Rig) -> None:
    talk = narrow.talk()
    for _ in range(3):
        async with raw.line(narrow.port) as line:
            fields = {**talk.all_headers, "Content-Length": str(len(LARGE))}
            await line.send(raw.request("POST", CHAT, fields.items()) + LARGE[: MIB // 2])
            await asyncio.sleep(0.05)
    narrow.up.always(answer("a"))
    assert (await talk.post(LARGE)).status_code == 200


async def test_who_sends_nothing_takes_no_room(narrow: Rig) -> None:
    talk = narrow.talk()
    fields = {**talk.all_headers, "Content-Length": str(len(LARGE))}
    async with raw.line(narrow.port) as line, raw.line(narrow.port) as other:
        for each in (line, other):
            await each.send(raw.request("POST", CHAT, fields.items()))
        narrow.up.always(answer("a"))
        assert (await talk.post(LARGE)).status_code == 200


async def test_a_packed_body_counts_as_what_becomes_of_it(narrow: Rig) -> None:
    first, release = asked_slowly(narrow.talk())
    await narrow.up.wait_for(1)
    refused = await narrow.talk().post(gzip.compress(LARGE), content_encoding="gzip")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    # Where memory adds nothing they go on as they came; this upstream unpacks nothing.
    narrow.up.always(answer("a"))
    await narrow.talk().post(gzip.compress(SMALL), content_encoding="gzip")
    assert len(narrow.up.requests) == 2
    release.set()
    await first
    await narrow.talk().post(gzip.compress(LARGE), content_encoding="gzip")
    assert len(narrow.up.requests) == 3


async def test_what_is_loaded_of_a_session_counts_too(narrow: Rig) -> None:
    talk = narrow.talk()
    narrow.up.always(answer("a"))
    assert (await talk.post(LARGE)).status_code == 200
    first, release = asked_slowly(narrow.talk())
    await narrow.up.wait_for(2)
    assert (await talk.post(SMALL)).status_code == 503
    release.set()
    assert (await first).status_code == 200
    assert (await talk.post(SMALL)).status_code == 200


async def test_what_is_read_of_an_import_and_not_complete_counts(
    narrow: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory_api.transfer.import_route.PART_RESERVE", MIB // 2)
    talk, path = narrow.talk(), "/memory/v1/import"
    said = [f"u{n}" for n in range(40)] + ["y" * 2 * MIB]
    lines = [{"messages": [{"role": "user", "content": each}]} for each in said]
    file = "\n".join(map(json.dumps, lines)).encode()
    first, release = asked_slowly(narrow.talk())
    await narrow.up.wait_for(1)
    refused = await narrow.client.post(path, content=file, headers=talk.all_headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert "40 sessions were imported before that, and stay." in refused.json()["error"]["message"]
    release.set()
    assert (await first).status_code == 200
    whole = await narrow.client.post(path, content=file, headers=talk.all_headers)
    assert (whole.status_code, whole.json()["sessions"]) == (200, 1)
    assert (await narrow.talk().post(LARGE)).status_code == 200


async def test_an_import_takes_room_for_what_has_come_and_not_for_what_it_declares(
    narrow: Rig,
) -> None:
    async with AsyncExitStack() as stack:
        for key in ("k1", "k2"):
            line = await stack.enter_async_context(raw.line(narrow.port))
            fields = {"Authorization": f"Bearer {key}", "Content-Length": str(64 * MIB)}
            await line.send(raw.request("POST", "/memory/v1/import", fields.items()) + b" ")
        await asyncio.sleep(0.05)
        narrow.up.always(answer("a"))
        assert (await narrow.talk(authorization="Bearer k1").post(LARGE)).status_code == 200
        assert (await narrow.talk(authorization="Bearer k3").post(LARGE)).status_code == 200


async def filled(one: Rig) -> tuple[Talk, str]:
    """A session whose messages are a page of 14 MiB, and their path."""
    talk = one.talk()
    one.up.always(answer("a"))
    for _ in range(2):
        said = {"role": "user", "content": "y" * 7 * MIB}
        assert (await talk.post({"model": "m", "messages": [said]})).status_code == 200
    return talk, f"/memory/v1/sessions/{talk.session}/messages"


async def test_answers_of_the_memory_api_that_nobody_takes_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.wire.limits.WAIT_SECONDS", 0.2)
    # Of the room of 64 MiB for answers a tenant has half, which is two of these pages.
    async with rig(tmp_path, server__max_held_bytes=256 * MIB) as wide, AsyncExitStack() as stack:
        talk, path = await filled(wide)
        for _ in range(2):
            line = await stack.enter_async_context(raw.line(wide.port))
            await line.send(raw.request("GET", path, talk.all_headers.items()))
            await asyncio.sleep(0.5)
        refused = await wide.client.get(path, headers=talk.all_headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
        others = {"authorization": "Bearer another"}
        assert (await wide.client.get("/memory/v1/sessions", headers=others)).status_code == 200
        await stack.aclose()
        taken = await wide.client.get(path, headers=talk.all_headers)
        assert (taken.status_code, len(taken.content) > 14 * MIB) == (200, True)


async def test_a_client_that_takes_nothing_of_an_answer_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory_api.endpoint.SEND_SECONDS", 0.3)
    async with rig(tmp_path) as ready, raw.line(ready.port) as line:
        talk, path = await filled(ready)
        await line.send(raw.request("GET", path, talk.all_headers.items()))
        await asyncio.sleep(1.5)
        answered = await line.answer()
        assert (answered.status, answered.whole) == (200, False)
