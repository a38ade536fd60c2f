"""Threads of the imports' own: nobody else waits while large files are read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 2
"""Imports that are read at the same time."""


class Reading:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "import")

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
