"""Calls the spool, whose methods block, from the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from proxy.memory.recording.spool import Spool, SpoolError

T = TypeVar("T")

THREADS = 2
"""Used by the spool alone: other work in threads must not delay its writes."""


class SpoolThreads:
    """Runs calls of a spool in threads."""

    def __init__(self, spool: Spool) -> None:
        self._spool, self._closed = spool, False
        self._threads = ThreadPoolExecutor(THREADS, "spool")

    async def __call__(self, work: Callable[..., T], *arguments: object) -> T:
        """The result of a call of the spool.  Raises SpoolError, also once this is closed."""
        if self._closed:
            raise SpoolError("the spool is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *arguments))

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._spool.close)
        await asyncio.to_thread(self._threads.shutdown)
