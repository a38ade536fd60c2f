"""A limit of time that forgives what is not the other side's fault."""

from __future__ import annotations

import asyncio
from types import TracebackType

ON_TIME = 0.02
"""Seconds by which a timer may be late in a process that is not held up itself."""


class Limit:
    """``async with Limit(seconds)``: as ``asyncio.timeout``, raising TimeoutError.

    Where this process was itself held up, an answer may have come meanwhile that nobody has looked
    at yet: what was lost in that way is added, at most once the limit again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + self._seconds
        self._timer = self._loop.call_at(self._until, self._due)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _due(self) -> None:
        now = self._loop.time()
        late = now - self._until
        more = min(late, self._seconds) if late > ON_TIME else 0.0
        self._timeout.reschedule(now + more)
