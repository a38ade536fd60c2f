"""Jobs that do as they are told, and runners that run them on a queue."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from proxy.background.runner import Backoff, Runner
from proxy.memory.model import Kind, SessionKey, Work, WorkRequest
from proxy.memory.store import Queue
from tests.support.virtual import clock

KEY = SessionKey("tenant", "session")
FIRST, MAX_PAUSE = 5.0, 600.0

Result = float | None | BaseException


class ScriptedJob:
    """Takes ``seconds`` and ends with the next of ``results``, None once there are no more.

    ``known``: the tenants whose credential is there; None: all.  ``ran`` are the work and the time
    of each run, as it began.
    """

    def __init__(self, *results: Result, seconds: float = 0.0) -> None:
        self.results: deque[Result] = deque(results)
        self.seconds = seconds
        self.known: set[str] | None = None
        self.ran: list[tuple[Work, float]] = []
        self.finished = 0
        self.cancelled = 0
        self.running: Counter[str] = Counter()
        self.most_running: Counter[str] = Counter()
        self.most_at_once = 0

    @property
    def times(self) -> list[float]:
        return [when for _, when in self.ran]

    @property
    def waits(self) -> list[float]:
        """Seconds between the runs."""
        return [later - before for before, later in zip(self.times, self.times[1:], strict=False)]

    @property
    def tenants(self) -> list[str]:
        return [work.tenant for work, _ in self.ran]

    def is_ready(self, work: Work) -> bool:
        return self.known is None or work.tenant in self.known

    async def run(self, work: Work) -> float | None:
        self.ran.append((work, clock()))
        self.running[work.tenant] += 1
        self.most_running |= self.running
        self.most_at_once = max(self.most_at_once, self.running.total())
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running[work.tenant] -= 1
        result = self.results.popleft() if self.results else None
        if isinstance(result, BaseException):
            raise result
        self.finished += 1
        return result


class Distant:
    """A queue behind a network: each call takes a moment before and after; ``cut`` it hangs."""

    def __init__(self, queue: Queue, delay: Callable[[], float] = lambda: 0.0) -> None:
        self.queue, self._delay = queue, delay
        self.failure: Exception | None = None
        self.cut = False
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        async def called(*args: Any, **more: Any) -> Any:
            self.calls[name] += 1
            await self._travel()
            answer = await getattr(self.queue, name)(*args, **more)
            await self._travel()
            return answer

        return called

    async def _travel(self) -> None:
        if self.failure is not None:
            raise self.failure
        await asyncio.sleep(self._delay())
        if self.cut:
            await asyncio.Event().wait()


class Bench:
    """A runner, its job of the kinds "summary" and "rebuild", and what became of each run.

    ``wall`` is the runner's clock.
    """

    def __init__(
        self,
        queue: Any,
        job: ScriptedJob,
        concurrency: int = 4,
        chance: Callable[[], float] = lambda: 0.0,
        wall: Callable[[], float] = clock,
    ) -> None:
        self.ended: list[str] = []
        jobs: Mapping[Kind, ScriptedJob] = {"summary": job, "rebuild": job}
        backoff = Backoff(FIRST, MAX_PAUSE)
        self.runner = Runner(queue, jobs, concurrency, backoff, wall, self._note, chance)

    def _note(self, kind: Kind, outcome: str) -> None:
        self.ended.append(outcome)

    @asynccontextmanager
    async def open(self, closing: float = 0.0) -> AsyncIterator[Runner]:
        self.runner.open()
        try:
            yield self.runner
        finally:
            await self.runner.close(closing)


async def ask(queue: Queue, key: SessionKey = KEY, at: float = 0.0, kind: Kind = "summary") -> None:
    """Ask for a summary, or for other work, due ``at`` (0: now)."""
    await queue.enqueue(key, WorkRequest(kind=kind, profile="", due_at=at or clock()))


async def left(queue: Queue) -> list[Work]:
    """All work that the queue has."""
    return list(await queue.waiting(clock() + 1e9, 10_000))
