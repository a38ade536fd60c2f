"""Work that holds nobody up: on large requests in threads, and while something is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 50_000
"""Bytes from which on a thread costs less than it saves."""

THREADS = 2
"""Large requests that are worked on at the same time: each may take ten times its size."""


class Aside:
    """For large requests; its threads begin with the first one.

    They are its own: the work of many at once must not keep what others wait for (the spool, say)
    from the threads that all share.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "large-requests")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """The result of ``work`` on ``size`` bytes: at once, or in a thread where that is a lot."""
        if size <= LARGE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def total(self, count: Callable[[bytes], int], messages: Sequence[bytes]) -> int:
        """Tokens of all messages, where ``count`` gives those of one."""
        size = sum(map(len, messages))
        return await self.run(size, lambda: sum(map(count, messages)))


def meanwhile(work: Callable[[], T]) -> Callable[[], T]:
    """Do small work as soon as the caller waits for something; what is returned gives its result.

    Where nothing was waited for, or it failed, it is done when that is asked.
    """
    done: list[T] = []

    def once() -> T:
        if not done:
            done.append(work())
        return done[0]

    asyncio.get_running_loop().call_soon(once)
    return once
