"""Whether others have their turn while something goes on in the same loop."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Neighbour:
    """Counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    async def __aenter__(self) -> Neighbour:
        self._task = asyncio.create_task(self._live())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._task.cancel()

    async def _live(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)
