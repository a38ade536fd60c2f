"""Waiting for what has no event to wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds until a wait is given up.  Only a failure waits so long; a busy machine may take some."""

POLL = 0.005

NAP = 0.01


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
    """How long it took to become true; fails after so many seconds of polls.

    On a busy machine polls take longer, and what is waited for may too.
    """
    began, polls = time.perf_counter(), 0
    while not await true():
        polls += 1
        took = time.perf_counter() - began
        assert polls * POLL < seconds and took < 10 * seconds, f"not so after {took:g} s"
        await asyncio.sleep(POLL)
    return time.perf_counter() - began


async def felt(work: Awaitable[T]) -> tuple[T, float]:
    """What comes of it, and the seconds of waiting, as naps beside it in the loop count them.

    A busy machine makes the naps longer, and so fewer, where a clock would go on: whoever waits for
    too long is found, and nobody else.
    """
    naps = 0

    async def nap() -> None:
        nonlocal naps
        while True:
            await asyncio.sleep(NAP)
            naps += 1

    napping = asyncio.create_task(nap())
    try:
        return await work, naps * NAP
    finally:
        napping.cancel()
