"""SIGKILL in the middle of an erasure: it can be repeated, and what is left runs out."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.client import client_of
from tests.support.processes.worker import Served, served
from tests.support.store.inside import AUTHORIZATION
from tests.support.store.scanning import found_in_files
from tests.support.talk.chatting import chatting
from tests.support.upstream.scripted import ScriptedUpstream

USER = "kai"
SESSIONS = 60
OFTEN = pytest.mark.release
MARKER = "the-marker-of-kai"
OTHERS = "the-one-of-somebody-else"


async def fill(client: httpx.AsyncClient, user: str, marker: str) -> None:
    """Sessions with a summary each, facts, and items."""
    for number in range(SESSIONS):
        path = f"/memory/v1/sessions/{user}-{number}"
        said = [{"role": "user", "content": f"{marker} {number}"}]
        body = {"messages": [*said, {"role": "assistant", "content": marker}], "user": user}
        await ask(client, "POST", f"{path}/messages", body)
        await ask(client, "PATCH", path, {"title": marker})
    for number in range(20):
        await ask(
            client,
            "PUT",
            "/memory/v1/store/items",
            {"namespace": ["users", user, "n"], "key": str(number), "value": {"said": marker}},
        )


async def ask(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    headers = {"authorization": AUTHORIZATION}
    answer = await client.request(method, path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def killed_while_erasing(program: Served, path: str, seconds: float) -> bool:
    """Whether the receipt was there before."""
    async with client_of(program.url) as client:
        erasing = asyncio.create_task(ask(client, "DELETE", path))
        await asyncio.wait({erasing}, timeout=seconds)
        finished = erasing.done()
        program.kill()
        await asyncio.gather(erasing, return_exceptions=True)
    await asyncio.to_thread(program.bury)
    return finished


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(6, marks=OFTEN)])
async def test_an_erasure_that_was_killed_is_repeated(
    up: ScriptedUpstream, tmp_path: Path, kills: int
) -> None:
    rng, cut_off = random.Random(7), 0
    store = f"sqlite:///{tmp_path}/proxy/memory.db"
    with served(tmp_path / "proxy", up.url, store, workers=1) as program:
        async with client_of(program.url) as client:
            await fill(client, USER, MARKER)
            await fill(client, "eve", OTHERS)
        for _ in range(kills):
            seconds = rng.uniform(0.005, 0.05)
            cut_off += not await killed_while_erasing(program, f"/memory/v1/users/{USER}", seconds)
            await asyncio.to_thread(program.start)
        async with client_of(program.url) as client:
            receipt = await ask(client, "DELETE", f"/memory/v1/users/{USER}")
            assert found_in_files(tmp_path, MARKER) == []
            left = await ask(client, "GET", "/memory/v1/sessions?user=eve&limit=1000")
            assert len(left["data"]) == SESSIONS
            assert {session["title"] for session in left["data"]} == {OTHERS}
        async with chatting(program.url) as chat:
            await chat.say("And afterwards?", "afterwards", x_user_id=USER)
        async with client_of(program.url) as client:
            said = await ask(client, "GET", "/memory/v1/sessions/afterwards/messages")
            assert said["data"][0]["message"]["content"] == "And afterwards?"
        program.kill()
        await asyncio.to_thread(program.bury)
        assert found_in_files(tmp_path, MARKER) == []
        assert receipt["dry_run"] is False and cut_off >= kills // 2
        assert MARKER not in program.errors() and USER not in program.errors()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=OFTEN)])
async def test_an_erasure_of_a_large_session_that_was_killed_is_repeated(
    up: ScriptedUpstream, tmp_path: Path, kills: int
) -> None:
    """Whether or not the session is there still."""
    rng = random.Random(9)
    store = f"sqlite:///{tmp_path}/proxy/memory.db"
    said = [{"role": "user", "content": f"{MARKER} {number} " * 50} for number in range(2000)]
    with served(tmp_path / "proxy", up.url, store, workers=1) as program:
        for number in range(kills):
            path = f"/memory/v1/sessions/large-{number}"
            async with client_of(program.url) as client:
                for _ in range(3):
                    await ask(client, "POST", f"{path}/messages", {"messages": said})
            await killed_while_erasing(program, path, rng.uniform(0.05, 0.4))
            await asyncio.to_thread(program.start)
            async with client_of(program.url) as client:
                headers = {"authorization": AUTHORIZATION}
                answer = await client.delete(path, headers=headers)
                assert answer.status_code in (200, 404), answer.text
                assert found_in_files(tmp_path, MARKER) == []
                assert (await client.delete(path, headers=headers)).status_code == 404
