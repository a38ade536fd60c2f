"""Work that must not block the event loop: in threads, or during the next ``await``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from proxy.process.threads import thread_pool

T = TypeVar("T")

MIN_THREAD_BYTES = 50_000
"""Bytes above which a thread is worth its overhead."""

MAX_THREADS = 2
"""Limit on concurrent work, which bounds memory: a request may take ten times its size."""


class RequestThreads:
    """Runs work on large requests in threads.

    The pool is separate from asyncio's default executor, so that many large requests do not delay
    its other users (the spool, for example).  Threads are started on first use.
    """

    def __init__(self) -> None:
        self._threads = thread_pool(MAX_THREADS, "large-requests")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Call ``work``, in a thread if its input is larger than ``MIN_THREAD_BYTES`` (``size``,
        bytes)."""
        if size <= MIN_THREAD_BYTES:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def sum_tokens(self, count: Callable[[bytes], int], messages: Sequence[bytes]) -> int:
        """The sum of ``count``, a message's tokens, over ``messages``."""
        size = sum(map(len, messages))
        return await self.run(size, lambda: sum(map(count, messages)))


def run_soon(work: Callable[[], T]) -> Callable[[], T]:
    """Schedule small work for the next iteration of the event loop; the function returned gives the
    result.

    It does the work itself if the loop has not run it yet, or if it has failed there.
    """
    done: list[T] = []

    def once() -> T:
        if not done:
            done.append(work())
        return done[0]

    asyncio.get_running_loop().call_soon(once)
    return once
