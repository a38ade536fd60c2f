"""Asking a spool, whose calls block, from the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from proxy.memory.recording.spool import Spool, SpoolError

T = TypeVar("T")

THREADS = 2
"""For the spool alone: others' work in threads must not delay what has to be durable."""


class Aside:
    """Does in threads what a spool does."""

    def __init__(self, spool: Spool) -> None:
        self._spool, self._closed = spool, False
        self._threads = ThreadPoolExecutor(THREADS, "spool")

    async def __call__(self, work: Callable[..., T], *arguments: object) -> T:
        """The result of something that the spool does.  Raises SpoolError, also once this is
        closed."""
        if self._closed:
            raise SpoolError("the spool is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *arguments))

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._spool.close)
        await asyncio.to_thread(self._threads.shutdown)
