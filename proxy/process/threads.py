"""Threads that work for an event loop without taking the processor from it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

MAX_TENANT_THREADS = 2
"""Threads that one tenant may occupy."""


def never_preempt() -> None:
    """Set the calling thread to wait for the processor when it wakes up, instead of interrupting
    the thread that runs: ``SCHED_BATCH`` of sched(7).

    Without it a store's thread that gets a job interrupts the loop that gave it, only to wait for
    the GIL, which the loop holds; on a shared core that happens ten times a turn, and takes a
    third of the turn's time.  On Linux only, and not where the operator has chosen a policy.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid it, and musl does not have it
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def thread_pool(size: int | None, name: str) -> ThreadPoolExecutor:
    """At most ``size`` such threads, None for as many as asyncio's own pool has; ``name`` is part
    of their names."""
    return ThreadPoolExecutor(size, name, initializer=never_preempt)


def shared_pool(name: str) -> ThreadPoolExecutor:
    """The threads of ``SharedThreads``; ``name`` is part of their names."""
    return thread_pool(MAX_TENANT_THREADS + 1, name)


class SharedThreads:
    """Threads for the work of several tenants, one more than one of them may occupy: whoever brings
    much at once waits for itself, and others find a thread free."""

    def __init__(self, threads: Executor) -> None:
        """``threads``: of ``shared_pool``, or another executor."""
        self._threads = threads
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def shutdown(self) -> None:
        """Drop what has not begun; what has goes on."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, tenant: str, work: Callable[[], T]) -> T:
        """The result of ``work``.  It takes a place of its tenant until it is done, also where the
        caller is cancelled before."""
        loop = asyncio.get_running_loop()
        places = self._places.setdefault(tenant, asyncio.Semaphore(MAX_TENANT_THREADS))
        await places.acquire()
        job = self._threads.submit(work)

        def leave(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(places.release)

        job.add_done_callback(leave)
        return await asyncio.wrap_future(job)
