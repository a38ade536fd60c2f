"""Shares a slow computation among concurrent requests for the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from proxy.memory.store import StoreError

T = TypeVar("T")


class SharedAnswer(NamedTuple, Generic[T]):
    """An answer, or the store's failure, and when its computation ``began`` (monotonic seconds)."""

    question: Hashable
    began: float
    answer: T | StoreError


class Shared(Generic[T]):
    """Computes answers one at a time.  A caller who had to wait shares the last answer if it is to
    the same question and its computation began after the caller arrived."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._last: SharedAnswer[T] | None = None

    async def answer(self, question: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Raises what ``make`` does: a StoreError for all who share the answer, anything else for
        the caller alone whose ``make`` it was."""
        arrived = time.monotonic()
        async with self._turn:
            last = self._last
            if last is None or last.question != question or last.began < arrived:
                began = time.monotonic()
                last = self._last = SharedAnswer(question, began, await _answer_or_failure(make))
            if isinstance(last.answer, StoreError):
                raise last.answer
            return last.answer


async def _answer_or_failure(make: Callable[[], Awaitable[T]]) -> T | StoreError:
    try:
        return await make()
    except StoreError as failure:
        return failure.with_traceback(None)  # which would keep all that was counted
