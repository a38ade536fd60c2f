"""Looking into a running proxy: what it still holds, and what it has recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from proxy.gateway.tenancy import digest_of
from proxy.memory.model import SessionKey
from proxy.memory.recorder import Recorder
from proxy.memory.store import Store
from proxy.stores import open_store
from proxy.wire.upstream import Upstream
from tests.support.running import Running

TOKEN = "sk-test"
AUTHORIZATION = f"Bearer {TOKEN}"
TENANT = digest_of(TOKEN.encode())
PERMANENT = {"spool replay"}
"""Tasks of the proxy that live as long as it does."""


def upstream_of(proxy: Running) -> Upstream:
    gateway = proxy.application._gateway
    assert gateway is not None
    return gateway._passage._upstream


def recorder_of(proxy: Running) -> Recorder:
    gateway = proxy.application._gateway
    assert gateway is not None
    return gateway._conversations._recorder


def left_behind(proxy: Running, before: set[str]) -> list[str]:
    """What a proxy holds that it should not: writes, exchanges, tasks that were not there."""
    writing = [task.get_name() for task in recorder_of(proxy)._tasks]
    found = [f"write {name}" for name in writing if name not in PERMANENT]
    if upstream_of(proxy).exchanges:
        found.append(f"{upstream_of(proxy).exchanges} exchanges with the upstream")
    if proxy.server.server_state.tasks:
        found.append(f"{len(proxy.server.server_state.tasks)} requests")
    return found + sorted(task_names() - before - PERMANENT)


def task_names() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


async def nothing_left(proxy: Running, before: set[str], seconds: float = 5.0) -> None:
    """Fails with what is left if that does not go away."""
    deadline = asyncio.get_running_loop().time() + seconds
    while left := left_behind(proxy, before):
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
async def store_at(url: str) -> AsyncIterator[Store]:
    store = open_store(url, timeout=10, commit_timeout=10)
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
