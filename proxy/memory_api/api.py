"""The dependencies of the memory API, and the protocols by which it uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakValueDictionary

from proxy.gateway.preview import Preview
from proxy.learning.learned import Learned
from proxy.memory.erasure import steady_now
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey, WorkRequest
from proxy.memory.recording.commit import Count
from proxy.memory.recording.spool import Spool
from proxy.memory_api.erasure.caches import TextCaches
from proxy.memory_api.erasure.eraser import Eraser
from proxy.memory_api.overview.counts import MemoryStore
from proxy.memory_api.overview.shared import Shared
from proxy.memory_api.shapes.overview import Stats
from proxy.memory_api.threads import TenantThreads, Threads
from proxy.recall.recaller import RecallAdmin
from proxy.settings import Settings
from proxy.telemetry import Telemetry
from proxy.tenancy import Tenancy
from proxy.wire.limits import ByteBudgets


class LongTimeoutStores(NamedTuple):
    """The same store, and what is learned in it, with longer timeouts than a chat has.

    For erasing, importing and exporting, which make so many calls that one slow call must not
    end them.
    """

    store: MemoryStore
    learned: Learned


@dataclass(frozen=True)
class Api:
    """Everything that health, metrics and the memory API need.

    ``on_recorded`` is called with each session that was written to, ``on_edited`` with the seqs of
    messages whose text was changed.  ``due_after_import`` returns the background work after an
    import, by the session's user and the time (Unix seconds).  ``counter`` returns the function
    that counts a model's tokens, ``counters`` the table used for each encoding, ``count_text`` the
    tokens of a text.  ``byte_budgets``: those of all requests.  ``failing_sessions`` returns
    the number of sessions that cannot be loaded or replayed in time, ``is_losing`` whether
    exchanges were lost lately.
    """

    settings: Settings
    telemetry: Telemetry
    store: MemoryStore
    spool: Spool
    tenancy: Tenancy
    preview: Preview
    recall_admin: RecallAdmin
    on_recorded: Callable[[SessionKey], None]
    on_edited: Callable[[SessionKey, tuple[int, ...]], None]
    due_after_import: Callable[[str | None, float], tuple[WorkRequest, ...]]
    counter: Callable[[str | None], Count]
    counters: Callable[[], Mapping[str, str]]
    count_text: Callable[[str], int]
    learned: Learned
    long_timeout: LongTimeoutStores
    caches: TextCaches
    byte_budgets: ByteBudgets
    failing_sessions: Callable[[], int] = lambda: 0
    is_losing: Callable[[], bool] = lambda: False

    async def reach(self, tenant: str) -> None:
        """Fail early if the store is away, before longer timeouts are used.  Raises StoreError."""
        await self.store.peek(SessionKey(tenant, ""))

    @cached_property
    def eraser(self) -> Eraser:
        """Shared by all requests, so that nothing is erased twice at the same time."""
        stores = self.long_timeout
        return Eraser(stores.store, self.spool, stores.learned, self.caches, steady_now)

    @cached_property
    def large_fork(self) -> asyncio.Lock:
        """Held while a large session is forked, since all of it is in memory."""
        return asyncio.Lock()

    @cached_property
    def large_imports(self) -> Locks[str]:
        """Per tenant, held while a large conversation is imported, for the same reason."""
        return Locks()

    @cached_property
    def statistics(self) -> WeakValueDictionary[str, Shared[Stats]]:
        """By tenant, while a request waits for them."""
        return WeakValueDictionary()

    @cached_property
    def editing(self) -> TenantThreads:
        return TenantThreads("edit")

    @cached_property
    def searching(self) -> TenantThreads:
        return TenantThreads("search")

    @cached_property
    def reading(self) -> Threads:
        return Threads("import")
