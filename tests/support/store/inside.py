"""Looking into a running proxy: what it still holds, and what it has recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import proxy
from proxy.memory.model import SessionKey
from proxy.memory.recording.recorder import Recorder
from proxy.memory.store import Store
from proxy.stores.open import Backend, open_store
from proxy.tenancy import digest_of
from proxy.wire.upstream import Upstream
from tests.support.processes.running import Running
from tests.support.waiting import PATIENCE

TOKEN = "sk-test"
AUTHORIZATION = f"Bearer {TOKEN}"
TENANT = digest_of(TOKEN.encode())
SOURCES = Path(proxy.__file__).parent
PERMANENT = {"spool replay", "tidying", "indexing", "embedding", "background", "lists of models"}
"""Tasks of the proxy that live as long as it does."""


def upstream_of(running: Running) -> Upstream:
    gateway = running.application._gateway
    assert gateway is not None
    return gateway._passthrough._upstream


def recorder_of(running: Running) -> Recorder:
    gateway = running.application._gateway
    assert gateway is not None
    return gateway._conversations._services.recorder


def left_behind(running: Running) -> list[str]:
    """What a proxy holds that it should not when nobody asks: requests, writes, tasks."""
    writing = [task.get_name() for task in recorder_of(running)._tasks]
    found = [f"write {name}" for name in writing if name not in PERMANENT]
    if upstream_of(running).exchanges:
        found.append(f"{upstream_of(running).exchanges} exchanges with the upstream")
    if running.server.server_state.tasks:
        found.append(f"{len(running.server.server_state.tasks)} requests")
    tasks = [task for task in asyncio.all_tasks() if task.get_name() not in PERMANENT]
    return found + sorted(task.get_name() for task in tasks if _is_ours(task))


def _is_ours(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).is_relative_to(SOURCES)


async def nothing_left(running: Running, seconds: float = PATIENCE) -> None:
    """Fails with what is left if that does not go away."""
    deadline = asyncio.get_running_loop().time() + seconds
    while left := left_behind(running):
        assert asyncio.get_running_loop().time() < deadline, left
        await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Recorded:
    """A session's history: (role, content) of each message, and which exchanges are incomplete."""

    said: list[tuple[str, str]]
    exchanges: list[str]
    incomplete: list[bool]
    seqs: list[int]


@asynccontextmanager
async def store_at(url: str) -> AsyncIterator[Backend]:
    store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def recorded(store: Store, session: str, tenant: str = TENANT) -> Recorded:
    key = SessionKey(tenant, session)
    page = await store.messages(key, ("active", "superseded"), 0, 100_000)
    said: list[tuple[str, str]] = []
    for message in page.items:
        body = json.loads(message.wire)
        said.append((body["role"], body.get("content") or ""))
    exchanges = list(dict.fromkeys(message.card.exchange for message in page.items))
    found = [await store.exchange(key, exchange) for exchange in exchanges]
    return Recorded(
        said=said,
        exchanges=exchanges,
        incomplete=[pair[0].incomplete for pair in found if pair is not None],
        seqs=[message.seq for message in page.items],
    )


def contents(said: Sequence[tuple[str, str]], role: str) -> list[str]:
    return [content for who, content in said if who == role]
