"""Threads for work that may take long, apart from the pool that everything else shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from proxy.memory.locks import Locks
from proxy.process.threads import thread_pool

T = TypeVar("T")

THREADS = 2
"""Pieces of work that are done at the same time."""


class Threads:
    """A pool, whose threads start with the first piece of work; ``name`` is part of their names."""

    def __init__(self, name: str) -> None:
        self._threads = thread_pool(THREADS, name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class TenantThreads(Threads):
    """A pool that does one piece of a tenant's work at a time, so that a tenant who brings much
    does not keep the others waiting."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._turns: Locks[str] = Locks()

    def turn(self, tenant: str) -> asyncio.Lock:
        """To be held for work of several pieces."""
        return self._turns.of(tenant)

    async def run_for(self, tenant: str, work: Callable[[], T]) -> T:
        async with self.turn(tenant):
            return await self.run(work)
