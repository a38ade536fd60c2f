"""Threads for work that may take long: nobody else waits for those that all share meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 2
"""Pieces of it that are done at the same time."""


class Threads:
    """They begin with the first piece of work; ``name`` says of what."""

    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(THREADS, name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
