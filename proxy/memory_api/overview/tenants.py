"""Which tenants exist: a misspelt name must not look like a tenant without memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol

from cachetools import LRUCache

from proxy.memory.archive import Archive
from proxy.memory.items import ItemOwner, Items
from proxy.memory.recording.spool import Spool, SpoolError
from proxy.memory.usage import KEPT_DAYS, Meter
from proxy.recall.index import newest_session
from proxy.settings import Settings

MAX_REMEMBERED = 1024
"""Existing tenants that are remembered."""


class TenantStore(Archive, Items, Meter, Protocol):
    """The store, as far as it is searched for a tenant."""


class KnownTenants:
    """Whether a tenant exists.

    A tenant that existed once is remembered while the process lives: one that has just been erased
    is no typo.
    """

    def __init__(self, settings: Settings, store: TenantStore, spool: Spool) -> None:
        self._settings, self._store, self._spool = settings, store, spool
        self._known: LRUCache[str, None] = LRUCache(MAX_REMEMBERED)

    async def exists(self, tenant: str) -> bool:
        """Whether the configuration names this tenant, or anything is stored of it.  Raises
        StoreError."""
        if tenant in self._known or tenant in configured_tenants(self._settings):
            return True
        known = await has_memory(self._store, tenant) or await self._has_other_data(tenant)
        if known:
            self._known[tenant] = None
        return known

    async def _has_other_data(self, tenant: str) -> bool:
        """Whether it has recorded costs, or exchanges in the spool."""
        today = datetime.fromtimestamp(time.time(), UTC).date()
        days = [(today - timedelta(days=day)).isoformat() for day in range(KEPT_DAYS)]
        if await self._store.usage_of_days(tenant, days):
            return True
        with suppress(SpoolError):  # then nothing waits that we could see
            return await asyncio.to_thread(self._spool.has_tenant, tenant)
        return False


def configured_tenants(settings: Settings) -> frozenset[str]:
    """The tenants of the configuration, which exist without any data."""
    mode = settings.tenancy.mode
    if mode == "clients":
        return frozenset(client.name for client in settings.clients)
    return frozenset({"single" if mode == "single" else "anonymous"})


async def has_memory(store: TenantStore, tenant: str) -> bool:
    """Whether a tenant has sessions or items.  Raises StoreError."""
    if await newest_session(store, tenant, None) is not None:
        return True
    if await store.namespaces(ItemOwner(tenant), (), None, 1):
        return True
    return bool(await store.people(tenant))
