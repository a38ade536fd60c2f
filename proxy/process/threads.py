"""Threads that work for an event loop without taking the processor from it."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress


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
