"""An event loop whose time passes by itself: a wait of an hour ends as soon as all others wait too.

For code that waits for nothing but timers and its own tasks; sockets have no place in it, and what
is meant for a thread is done at once.  Runs are exact and repeat.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BEGAN = 1_700_000_000.0
"""The Unix time at which every run begins: a Tuesday, 22:13:20 UTC."""


class _Selector(selectors.DefaultSelector):
    """Moves the time on instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "all wait, and for no time"
        self.now += max(timeout, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._time = _Selector()
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        async def at_once() -> T:
            return func(*args)

        return self.create_task(at_once())


def virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run this to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def clock() -> float:
    """Unix seconds in the running loop."""
    return BEGAN + asyncio.get_running_loop().time()
