"""Timeouts that do not count time in which this process itself was held up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import TypeVar

from proxy.memory.store import StoreTimeout

T = TypeVar("T")

TIMER_TOLERANCE = 0.02
"""Seconds by which a timer may be late before the process counts as held up."""


class TimeLimit:
    """``async with TimeLimit(seconds)``: as ``asyncio.timeout``, raising TimeoutError.

    If this process was held up, an answer may have arrived that was not read yet: the time lost is
    added to the limit, at most once the limit itself.
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


async def read_within(read: Awaitable[T], seconds: float) -> T:
    """The result of a read of the store, within a ``TimeLimit``.  Raises StoreError."""
    try:
        async with TimeLimit(seconds):
            return await read
    except TimeoutError as error:
        raise StoreTimeout("the store did not answer in time") from error


async def wait_within(future: asyncio.Future[T], seconds: float) -> T:
    """The result of a future, as within a ``TimeLimit`` but cheaper: with one timer and no task.

    On timeout TimeoutError is set as the future's exception.
    """
    timer = _Timer(future, seconds)
    try:
        return await future
    finally:
        timer.cancel()


class _Timer:
    """Sets TimeoutError on a future that is not done in time."""

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
    """The seconds to add to a limit of ``seconds`` if its timer was ``late`` by so many."""
    return min(late, seconds) if late > TIMER_TOLERANCE else 0.0
