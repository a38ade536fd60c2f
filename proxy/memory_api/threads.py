"""Threads for work that may take long: nobody else waits for those that all share meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proxy.memory.locks import Locks

T = TypeVar("T")

THREADS = 2
"""Pieces of it that are done at the same time."""


class Threads:
    """They begin with the first piece of work; ``name`` says of what."""

    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(THREADS, name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class TenantThreads(Threads):
    """One piece of a tenant's work at a time: nobody waits for all that another has brought."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._turns: Locks[str] = Locks()

    def turn(self, tenant: str) -> asyncio.Lock:
        """To be held for work of several pieces."""
        return self._turns.of(tenant)

    async def run_for(self, tenant: str, work: Callable[[], T]) -> T:
        async with self.turn(tenant):
            return await self.run(work)
