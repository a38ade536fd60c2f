"""A limit of time that forgives what is not the other side's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import TypeVar

from proxy.memory.store import StoreTimeout

T = TypeVar("T")

TIMER_TOLERANCE = 0.02
"""Seconds by which a timer may be late in a process that is not held up itself."""


class TimeLimit:
    """``async with Limit(seconds)``: as ``asyncio.timeout``, raising TimeoutError.

    Where this process was itself held up, an answer may have come meanwhile that nobody has looked
    at yet: what was lost in that way is added, at most once the limit again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._loop = task, asyncio.get_running_loop()
        self._cancelling = task.cancelling()
        self._until = self._loop.time() + self._seconds
        self._timer = self._loop.call_at(self._until, self._due)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        # As asyncio.timeout has it: a cancellation from elsewhere stays one.
        ours = self._over and self._task.uncancel() <= self._cancelling
        if ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _due(self) -> None:
        now = self._loop.time()
        # Even without anything lost once more through the loop: an answer may be in it already.
        self._timer = self._loop.call_at(
            now + _time_lost(now - self._until, self._seconds), self._end
        )

    def _end(self) -> None:
        self._over = True
        self._task.cancel()


async def read_within(looking: Awaitable[T], seconds: float) -> T:
    """What a look at the store finds, under a ``TimeLimit``.  Raises StoreError."""
    try:
        async with TimeLimit(seconds):
            return await looking
    except TimeoutError as error:
        raise StoreTimeout("the store did not answer in time") from error


async def wait_within(future: asyncio.Future[T], seconds: float) -> T:
    """What a future brings, as under a ``TimeLimit``, by one timer and nothing else.

    A future that is out of time has TimeoutError as its exception: whoever would settle it finds it
    done.
    """
    timer = _Timer(future, seconds)
    try:
        return await future
    finally:
        timer.cancel()


class _Timer:
    """Ends the waiting for one future."""

    __slots__ = ("_future", "_handle", "_seconds", "_until")

    def __init__(self, future: asyncio.Future[T], seconds: float) -> None:
        loop = future.get_loop()
        self._future, self._seconds = future, seconds
        self._until = loop.time() + seconds
        self._handle = loop.call_at(self._until, self._due)

    def cancel(self) -> None:
        self._handle.cancel()

    def _due(self) -> None:
        loop = self._future.get_loop()
        now = loop.time()
        self._handle = loop.call_at(now + _time_lost(now - self._until, self._seconds), self._end)

    def _end(self) -> None:
        if not self._future.done():
            self._future.set_exception(TimeoutError())


def _time_lost(late: float, seconds: float) -> float:
    """What is added to a limit of so many ``seconds`` whose timer came ``late``."""
    return min(late, seconds) if late > TIMER_TOLERANCE else 0.0
