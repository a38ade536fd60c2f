"""The same asked for by many at once, which takes long: not made for each of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Made(NamedTuple, Generic[T]):
    """An answer, and when its making ``began``: whatever there was then is in it."""

    question: Hashable
    began: float
    answer: T


class Shared(Generic[T]):
    """Answers are made one at a time.  Who has waited is given the last one, if that is an answer
    to the same question and was begun since they came."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._last: Made[T] | None = None

    async def answer(self, question: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Raises what ``make`` does, for its own alone."""
        came = time.monotonic()
        async with self._turn:
            last = self._last
            if last is None or last.question != question or last.began < came:
                began = time.monotonic()
                last = self._last = Made(question, began, await make())
            return last.answer
