"""Turns of sixteen people at once: all in one session, and each in a session of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.plan import AT_ONCE, Plan, Row
from bench.processes import Process
from bench.requests import turn
from bench.wire import connect


@dataclass(slots=True)
class Rate:
    """So many turns took ``seconds``, and ``cpu`` seconds of the process."""

    turns: int
    seconds: float = 0.0
    cpu: float = 0.0
    memory: Counter[str] = field(default_factory=Counter)
    """Answers by their X-Memory-Status."""

    @property
    def a_second(self) -> float:
        return self.turns / self.seconds

    @property
    def cpu_each(self) -> float:
        return self.cpu / self.turns


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What a target did: ``hot`` in one session, ``new`` in as many sessions as turns."""

    row: Row
    hot: Rate
    new: Rate


def crowded(plan: Plan) -> Iterator[Row]:
    """The targets, the memory floor first, as far as there is one."""
    if plan.redis:
        yield Row("memory floor", "redis")
    yield from (Row("proxy", store) for store in plan.back_ends)


async def measure_at_once(plan: Plan, row: Row, target: Process) -> AtOnce:
    """Raises RuntimeError where an answer is not as it should be."""
    await _turns(AT_ONCE, target, (f"warm-{n}" for n in itertools.count()))
    hot = await _turns(plan.hot_turns, target, itertools.repeat("hot"))
    new = await _turns(plan.new_sessions, target, (f"fresh-{n}" for n in itertools.count()))
    return AtOnce(row, hot, new)


async def _turns(count: int, target: Process, sessions: Iterator[str]) -> Rate:
    rate = Rate(count)
    left = itertools.count(count, -1)

    def more() -> bool:
        return next(left) > 0

    cpu, began = target.cpu(), time.perf_counter()
    async with asyncio.TaskGroup() as people:
        for _ in range(AT_ONCE):
            people.create_task(_person(rate, target, sessions, more))
    rate.seconds, rate.cpu = time.perf_counter() - began, target.cpu() - cpu
    return rate


async def _person(
    rate: Rate, target: Process, sessions: Iterator[str], more: Callable[[], bool]
) -> None:
    connection = await connect(target.port)
    try:
        while more():
            answer = await connection.ask(turn(next(sessions)))
            if answer.status != 200:
                raise RuntimeError(f"an answer had status {answer.status}")
            rate.memory[answer.headers.get(b"x-memory-status", b"none").decode()] += 1
    finally:
        connection.close()
