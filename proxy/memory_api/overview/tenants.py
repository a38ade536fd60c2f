"""Which tenants there are: a name with a typo must not look like somebody who has nothing."""

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
"""Names that are remembered as those of tenants."""


class TenantStore(Archive, Items, Protocol):
    """What a tenant's memory is looked for in."""


class KnownTenants:
    """Tells tenants from names of nobody.

    What was known once is not looked up again, and stays known for as long as the process lives:
    whoever has just been erased is no typo.
    """

    def __init__(self, settings: Settings, store: TenantStore, meter: Meter, spool: Spool) -> None:
        self._settings, self._store, self._meter, self._spool = settings, store, meter, spool
        self._known: LRUCache[str, None] = LRUCache(MAX_REMEMBERED)

    async def exists(self, tenant: str) -> bool:
        """Does the configuration name this tenant, or is anything kept of it?

        Raises StoreError.
        """
        if tenant in self._known or tenant in configured_tenants(self._settings):
            return True
        known = await has_memory(self._store, tenant) or await self._has_other_data(tenant)
        if known:
            self._known[tenant] = None
        return known

    async def _has_other_data(self, tenant: str) -> bool:
        """What is no memory, or not yet."""
        today = datetime.fromtimestamp(time.time(), UTC).date()
        days = [(today - timedelta(days=day)).isoformat() for day in range(KEPT_DAYS)]
        if await self._meter.spent(tenant, days):
            return True
        with suppress(SpoolError):  # then nothing waits that we could see
            return await asyncio.to_thread(self._spool.has_tenant, tenant)
        return False


def configured_tenants(settings: Settings) -> frozenset[str]:
    """The tenants that exist without having anything: those that the configuration speaks of."""
    mode = settings.tenancy.mode
    if mode == "clients":
        return frozenset(client.name for client in settings.clients)
    return frozenset({"single" if mode == "single" else "anonymous"})


async def has_memory(store: TenantStore, tenant: str) -> bool:
    """Has this tenant sessions, or anything beside them?  Raises StoreError."""
    if await newest_session(store, tenant, None) is not None:
        return True
    if await store.namespaces(ItemOwner(tenant), (), None, 1):
        return True
    return bool(await store.people(tenant))
