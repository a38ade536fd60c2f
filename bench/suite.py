"""All rows, one after another.  Only one thing is busy at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import processes
from bench.apis import ApiCost, costs, measure_apis, seeds
from bench.at_once import AtOnce, crowded, measure_at_once
from bench.indexed import indexed
from bench.plan import BackEnd, Level, Plan, Row, Target, rows
from bench.processes import Process
from bench.requests import Requests, session_names
from bench.seed import seed, seed_floor
from bench.single import Single, measure_pairs
from bench.streams import Open, measure_streams
from bench.wire import connect

Step = Callable[[str], None]
"""Told what has been done, once for each of ``steps(plan)``."""
WARM_UP = 5


Stores = Mapping[tuple[Target, BackEnd], str]
"""The URL of what a target keeps memory in."""


@dataclass(slots=True)
class AtLevel:
    level: Level
    direct: Open
    through: Open


@dataclass(slots=True)
class Result:
    """All that was found out about a row; ``idle_rss`` is bytes before any stream was open."""

    row: Row
    single: Single = field(default_factory=Single)
    levels: list[AtLevel] = field(default_factory=list)
    idle_rss: int = 0

    @property
    def stream_rss(self) -> float:
        """Bytes of memory an open stream takes, at the highest level."""
        top = self.levels[-1]
        return (top.through.rss - self.idle_rss) / top.level.streams


@dataclass(frozen=True, slots=True)
class Measured:
    """One request after another and streams, by row; each API; and sixteen people at once."""

    rows: list[Result]
    apis: list[ApiCost]
    at_once: list[AtOnce]


def steps(plan: Plan) -> int:
    everything, at_once = len(list(rows(plan))), len(list(crowded(plan)))
    apis = plan.rounds * len(costs(plan))
    index = len(plan.back_ends)
    return at_once + index + plan.rounds * everything + everything + apis + at_once


async def measure(plan: Plan, folder: Path, step: Step) -> Measured:
    """Raises RuntimeError where an answer is not as it should be."""
    results = [Result(row) for row in rows(plan)]
    with ExitStack() as running:
        upstream = running.enter_context(processes.upstream(folder))
        stores = running.enter_context(_stores(plan, folder))
        for (target, kind), url in stores.items():
            seeding = seed_floor if target == "memory floor" else seed
            await seeding(url, list(_seeds(plan, target, kind)))
            step(f"seeded {kind}")
        bench = _Bench(plan, folder, upstream, stores)
        await bench.single(results, step)
        await bench.streams(results, step)
        return Measured(results, await bench.apis(step), await bench.at_once(step))


@contextmanager
def _stores(plan: Plan, folder: Path) -> Iterator[Stores]:
    stores: dict[tuple[Target, BackEnd], str]
    stores = {("proxy", "sqlite"): f"sqlite:///{folder}/memory.db"}
    with ExitStack() as running:
        if plan.redis:
            stores["proxy", "redis"] = running.enter_context(processes.redis(folder))
            in_memory = processes.redis(folder, durable=False)
            stores["memory floor", "redis"] = running.enter_context(in_memory)
        yield stores


def _seeds(plan: Plan, target: Target, store: BackEnd) -> Iterator[tuple[str, int]]:
    for row in rows(plan):
        if (row.target, row.store) == (target, store) and row.size:
            yield from ((name, row.size) for name in session_names(plan, row))
    if (target, store) == ("proxy", "sqlite"):
        yield from seeds(plan)


class _Bench:
    """What all measurements share."""

    def __init__(self, plan: Plan, folder: Path, upstream: Process, stores: Stores) -> None:
        self._plan, self._folder = plan, folder
        self._upstream, self._stores = upstream, stores
        self._requests = {row: Requests(plan, row) for row in rows(plan)}

    async def single(self, results: list[Result], step: Step) -> None:
        """Rounds over all rows, so that a bad minute falls on all of them."""
        with ExitStack() as running:
            targets = self._shared(running)
            for kind in self._plan.back_ends:
                names = (name for name, _ in _seeds(self._plan, "proxy", kind))
                await indexed(targets["proxy", kind], names)
                step(f"indexed {kind}")
            for turn in range(self._plan.rounds):
                at = turn % len(results)
                for result in (*results[at:], *results[:at]):
                    row, request = result.row, self._requests[result.row].plain
                    target = targets[(row.target, row.store)]
                    await measure_pairs(result.single, self._upstream, target, self._plan, request)
                    step(result.row.name)

    def _shared(self, running: ExitStack) -> dict[tuple[str, str | None], Process]:
        """One process for all rows that differ in nothing but the session."""
        kinds = {(row.target, row.store): row for row in rows(self._plan)}
        return {kind: running.enter_context(self._target(row)) for kind, row in kinds.items()}

    def _target(self, row: Row) -> AbstractContextManager[Process]:
        if row.target == "floor":
            return processes.floor(self._folder, self._upstream.url)
        store = self._stores[row.target, row.store or "sqlite"]
        if row.target == "memory floor":
            return processes.memory_floor(self._folder, self._upstream.url, store)
        return processes.proxy(self._folder, self._upstream.url, store)

    async def streams(self, results: list[Result], step: Step) -> None:
        """A fresh process for each row: memory once used is not given back."""
        for result in results:
            with self._target(result.row) as target:
                await self._levels(result, target)
            step(result.row.name)

    async def apis(self, step: Step) -> list[ApiCost]:
        with self._target(Row("proxy", "sqlite")) as target:
            return await measure_apis(self._plan, self._upstream, target, step)

    async def at_once(self, step: Step) -> list[AtOnce]:
        found = []
        for row in crowded(self._plan):
            with self._target(row) as target:
                found.append(await measure_at_once(self._plan, row, target))
            step("sixteen at once")
        return found

    async def _levels(self, result: Result, target: Process) -> None:
        requests = self._requests[result.row]
        await _warm_up(target, requests)
        result.idle_rss = target.rss()
        for level in self._plan.levels:

            def request(level: Level = level) -> bytes:
                return requests.stream(level)

            direct = await measure_streams(level, self._upstream, self._upstream, request)
            through = await measure_streams(level, self._upstream, target, request)
            result.levels.append(AtLevel(level, direct, through))


async def _warm_up(target: Process, requests: Requests) -> None:
    connection = await connect(target.port)
    try:
        for _ in range(WARM_UP):
            await connection.ask(requests.plain())
    finally:
        connection.close()
