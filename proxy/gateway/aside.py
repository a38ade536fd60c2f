"""Work on large requests, beside the event loop.

Threads of its own: the work of many of them at once must not keep what others wait for (the spool,
say) from the threads that all share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 50_000
"""Bytes from which on a thread costs less than it saves."""

THREADS = 2
"""Large requests that are worked on at the same time: each may take ten times its size."""


class Aside:
    """Its threads begin with the first large request."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "large-requests")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """The result of ``work`` on ``size`` bytes: at once, or in a thread where that is a lot."""
        if size <= LARGE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
