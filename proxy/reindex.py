"""Making recall's indexes anew from history: after an upgrade, or for what was never indexed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from proxy.chat.message import text_of
from proxy.memory.model import Session, SessionKey
from proxy.recall.history import owner_of
from proxy.recall.index import Owner
from proxy.recall.indexer import Indexer
from proxy.settings import Settings
from proxy.stores import open_store
from proxy.stores.backend import Backend

PATIENCE = 60.0
"""Seconds for one look at the store: nobody waits for an answer here."""

PAGE = 500


async def reindex(
    settings: Settings,
    tenant: str | None,
    user: str | None,
    on_progress: Callable[[int, int], None],
) -> int:
    """Index all sessions, those of a tenant, or those of one user of it; the number of messages.

    ``on_progress`` is told the sessions done and their number.  A running
    proxy may go on: what it indexes meanwhile is not lost.  Raises StoreError.
    """
    limits = settings.store
    store = open_store(
        limits.url,
        timeout=PATIENCE,
        commit_timeout=PATIENCE,
        wait_replicas=limits.wait_replicas,
    )
    try:
        await store.open()
        owners = await _owners(store, tenant, user)
        return await _rebuild(Indexer(store, store, text_of, time.time), owners, on_progress)
    finally:
        await store.close()


async def _owners(store: Backend, tenant: str | None, user: str | None) -> dict[Owner, int]:
    """Every owner, and the number of their sessions."""
    found: dict[Owner, int] = {}
    for one in [tenant] if tenant is not None else await store.tenants():
        async for session in _sessions(store, one, user):
            owner = owner_of(SessionKey(one, session.id), session.user)
            found[owner] = found.get(owner, 0) + 1
    return found


async def _sessions(store: Backend, tenant: str, user: str | None) -> AsyncIterator[Session]:
    after: str | None = None
    while True:
        page = await store.sessions(tenant, user, after, PAGE)
        for session in page.items:
            yield session
        if (after := page.after) is None:
            return


async def _rebuild(
    indexer: Indexer, owners: dict[Owner, int], on_progress: Callable[[int, int], None]
) -> int:
    done = messages = 0
    total = sum(owners.values())
    for owner, sessions in owners.items():
        messages += await indexer.rebuild(owner)
        done += sessions
        on_progress(done, total)
    return messages
