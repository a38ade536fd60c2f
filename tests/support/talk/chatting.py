"""Chats as an application has them, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from proxy.memory.store import Store
from tests.support.client import client_of
from tests.support.processes.running import Running
from tests.support.processes.worker import Served
from tests.support.store.inside import AUTHORIZATION, Recorded, recorded
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE, eventually, felt


def asked(text: str, *, stream: bool = False) -> dict[str, Any]:
    said = [{"role": "user", "content": text}]
    return {"model": "scripted-1", "stream": stream, "messages": said}


@dataclass
class Chat:
    """Talks to one URL, and notes how many seconds the last answer was waited for."""

    client: httpx.AsyncClient
    seconds: float = 0.0

    async def say(self, text: str, session: str = "s", **headers: str) -> httpx.Response:
        fields = {"x-session-id": session, "authorization": AUTHORIZATION}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.client.post(
            "/v1/chat/completions", json=asked(text, stream=True), headers=fields
        )
        response, self.seconds = await felt(answer)
        return response


@asynccontextmanager
async def chatting(url: str) -> AsyncIterator[Chat]:
    async with client_of(url) as client:
        yield Chat(client)


@asynccontextmanager
async def chatting_with_each(program: Served, workers: int = 2) -> AsyncIterator[list[Chat]]:
    """Chats on connections that stay, of which every worker has some.

    Which worker takes a connection is the kernel's choice.  Many come at once, as those that come
    alone may all find the same one, or the one that started first: a worker has its counters long
    before it takes connections where the machine is busy.
    """
    program.wait_for_workers(workers)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        async with AsyncExitStack() as opened:
            chats = [await opened.enter_async_context(chatting(program.url)) for _ in range(8)]
            if all(await _greeted(chats, program)):
                yield chats
                return
    raise AssertionError("one worker takes all connections")


async def _greeted(chats: Sequence[Chat], program: Served) -> list[int]:
    """How many connections each worker took."""
    name = "memory_requests_total"
    before = program.counted(name)

    async def counted() -> bool:
        """A request is counted behind its answer."""
        return sum(program.counted(name)) == sum(before) + len(chats)

    await asyncio.gather(*(chat.client.get("/healthz") for chat in chats))
    await eventually(counted)
    return [now - then for now, then in zip(program.counted(name), before, strict=True)]


def memory_of(response: httpx.Response) -> tuple[int, str, str | None]:
    """Status of the answer, of memory, and the reason."""
    assert response.status_code != 200 or response.text.endswith("data: [DONE]\n\n")
    headers = response.headers
    return response.status_code, headers["x-memory-status"], headers.get("x-memory-reason")


def seen_by(up: ScriptedUpstream) -> list[str]:
    """The user messages of the newest request, oldest first."""
    messages = up.requests[-1].messages
    return [message["content"] for message in messages if message["role"] == "user"]


def metric(running: Running, name: str) -> float:
    """The sum of a metric over its labels."""
    lines = running.application._telemetry.render().decode().splitlines()
    samples = [line for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
    assert samples or any(line.startswith(f"# TYPE {name} ") for line in lines), name
    return sum(float(line.rpartition(" ")[2]) for line in samples)


async def history_with(
    store: Store, count: int, seconds: float = PATIENCE, session: str = "s"
) -> Recorded:
    """A session's history once so many exchanges are in it."""
    found = Recorded([], [], [], [])

    async def enough() -> bool:
        nonlocal found
        found = await recorded(store, session)
        return len(found.exchanges) >= count

    await eventually(enough, seconds)
    return found
