"""Work that must not block the event loop: in threads, or during the next ``await``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from proxy.process.threads import SharedThreads, shared_pool

T = TypeVar("T")

MIN_THREAD_BYTES = 50_000
"""Bytes above which a thread is worth its overhead."""


class RequestThreads:
    """Runs work on large requests in threads that tenants share.  There are few, which bounds
    memory: a request may take ten times its size.

    The pool is separate from asyncio's default executor, so that many large requests do not delay
    its other users (the spool, for example).  Threads are started on first use.
    """

    def __init__(self) -> None:
        self._threads = SharedThreads(shared_pool("large-requests"))

    async def run(self, tenant: str, size: int, work: Callable[[], T]) -> T:
        """Call ``work``, in a thread if its input is larger than ``MIN_THREAD_BYTES`` (``size``,
        bytes)."""
        if size <= MIN_THREAD_BYTES:
            return work()
        return await self._threads.run(tenant, work)

    async def sum_tokens(
        self, tenant: str, count: Callable[[bytes], int], messages: Sequence[bytes]
    ) -> int:
        """The sum of ``count``, a message's tokens, over ``messages``."""
        size = sum(map(len, messages))
        return await self.run(tenant, size, lambda: sum(map(count, messages)))


def run_soon(work: Callable[[], T]) -> Callable[[], T]:
    """Schedule small work for the next iteration of the event loop; the function returned gives the
    result.

    It does the work itself if the loop has not run it yet, or if it has failed there.
    """
    results: list[T] = []

    def run() -> T:
        if not results:
            results.append(work())
        return results[0]

    asyncio.get_running_loop().call_soon(run)
    return run
