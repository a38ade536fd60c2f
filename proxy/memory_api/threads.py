"""Thread pools for long work, separate from the default one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from proxy.memory.locks import Locks
from proxy.process.threads import thread_pool

T = TypeVar("T")

THREADS = 2
"""Threads of a pool."""


class Threads:
    """A pool whose threads start on first use; ``name`` is part of their names."""

    def __init__(self, name: str) -> None:
        self._threads = thread_pool(THREADS, name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class TenantThreads(Threads):
    """A pool that runs one call per tenant at a time, so that one tenant cannot occupy it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._turns: Locks[str] = Locks()

    def turn(self, tenant: str) -> asyncio.Lock:
        """The lock to hold for several calls in a row."""
        return self._turns.of(tenant)

    async def run_for(self, tenant: str, work: Callable[[], T]) -> T:
        async with self.turn(tenant):
            return await self.run(work)
