"""Waiting for what has no event to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def standstill(number: Callable[[], int], seconds: float = 0.1) -> int:
    """The number once it has not changed for so long: what stopped it is back-pressure.

    Too short a time on a slow machine sees a smaller number, never a larger one.
    """
    before = -1
    while (now := number()) != before:
        before = now
        await asyncio.sleep(seconds)
    return now
