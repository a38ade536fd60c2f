"""Work on a whole store while a proxy may be serving: moving tenants, rebuilding indexes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

from proxy.assembly.resources import spool_of, store_of
from proxy.chat.message import typed_text_of
from proxy.memory.archive import OnProgress, do_nothing
from proxy.memory.model import SessionKey
from proxy.memory_api.overview.tenants import has_memory
from proxy.recall.index import Owner, owner_of, sessions_of
from proxy.recall.indexing.indexer import Indexer
from proxy.settings import Settings
from proxy.stores.open import Backend

STORE_TIMEOUT = 60.0
"""Seconds for one call of the store, longer than for a chat."""


async def reindex(
    settings: Settings, tenant: str | None, user: str | None, on_progress: OnProgress
) -> int:
    """Index all sessions, those of a tenant, or those of one user of it; the number of messages.

    ``on_progress`` is called with the number of sessions done and the total.  What a running proxy
    indexes meanwhile is not lost.  Raises StoreError.
    """
    async with _store(settings) as store:
        owners = await _owners(store, tenant, user)
        return await _rebuild(Indexer(store, store, typed_text_of, time.time), owners, on_progress)


class Moved(NamedTuple):
    """``known``: whether the old tenant had any memory.

    ``stayed``: its sessions whose id the new tenant has already.  ``waiting``: its exchanges in
    this host's spool, which would be replayed for the old tenant; if there are any, nothing moves.
    """

    known: bool
    sessions: int = 0
    stayed: int = 0
    waiting: int = 0


async def move(
    settings: Settings, old: str, new: str, on_progress: OnProgress = do_nothing
) -> Moved:
    """Hand all memory of a tenant to another.  Raises StoreError, SpoolError.

    ``on_progress``: as ``Archive.move`` has it.
    """
    async with _store(settings) as store:
        if waiting := await asyncio.to_thread(_waiting, settings, store.name, old):
            return Moved(known=True, waiting=waiting)
        known = await has_memory(store, old)
        # Also where there is none to be seen: a move that was cut short is done to its end.
        moved = await store.move(old, new, on_progress)
        stayed = [session async for session in sessions_of(store, old, None)]
        return Moved(known, moved, len(stayed))


def _waiting(settings: Settings, store: str, tenant: str) -> int:
    """The number of a tenant's exchanges that wait for the store.  Creates no spool."""
    if not Path(settings.spool.path).exists():
        return 0
    with closing(spool_of(settings, store)) as spool:
        spool.open()
        return spool.count_waiting(tenant)


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[Backend]:
    store = store_of(settings, STORE_TIMEOUT, as_is=True)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


async def _owners(store: Backend, tenant: str | None, user: str | None) -> dict[Owner, int]:
    """All owners of indexes, each with the number of its sessions."""
    found: dict[Owner, int] = {}
    for one in [tenant] if tenant is not None else await store.tenants():
        async for session in sessions_of(store, one, user):
            owner = owner_of(SessionKey(one, session.id), session.user)
            found[owner] = found.get(owner, 0) + 1
    return found


async def _rebuild(indexer: Indexer, owners: dict[Owner, int], on_progress: OnProgress) -> int:
    done = messages = 0
    total = sum(owners.values())
    for owner, sessions in owners.items():
        messages += await indexer.rebuild(owner)
        done += sessions
        on_progress(done, total)
    return messages
