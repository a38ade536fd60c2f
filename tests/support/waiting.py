"""Waiting for what has no event to wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE = 30.0
"""Seconds until a wait is given up.  Only a failure waits so long; a busy machine may take some."""

POLL = 0.005


async def standstill(number: Callable[[], int], seconds: float = 0.1) -> int:
    """The number once it has not changed for so long: what stopped it is back-pressure.

    Too short a time on a slow machine sees a smaller number, never a larger one.
    """
    before = -1
    while (now := number()) != before:
        before = now
        await asyncio.sleep(seconds)
    return now


async def eventually(true: Callable[[], Awaitable[bool]], seconds: float = PATIENCE) -> float:
    """How long it took to become true; fails after so many seconds."""
    began = time.perf_counter()
    while not await true():
        took = time.perf_counter() - began
        assert took < seconds, f"not so after {seconds:g} s"
        await asyncio.sleep(POLL)
    return time.perf_counter() - began
