"""All measurements, one after another, each on a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from bench import processes
from bench.cost.fill import Step
from bench.writing import added, rate, spent
from bench.writing.added import Compared
from bench.writing.plan import Plan
from bench.writing.rate import Rates
from bench.writing.spent import Spent


@dataclass(frozen=True, slots=True)
class Results:
    """What was found out on a store: requests ``bare`` of recall, and ``recalling``."""

    store: str
    bare: Compared
    recalling: Compared
    spent: list[Spent]
    rates: Rates


async def measure(plan: Plan, folder: Path, progress: Progress) -> list[Results]:
    """Raises RuntimeError where something is not as it should be."""
    return [await _Bench(plan, folder, progress, store).results() for store in plan.back_ends]


class _Bench:
    """All measurements on one kind of store."""

    def __init__(self, plan: Plan, folder: Path, progress: Progress, store: str) -> None:
        self._plan, self._folder, self._progress, self._name = plan, folder, progress, store

    async def results(self) -> Results:
        plan = self._plan
        return Results(
            self._name,
            await self._compared("requests", recall=False, each=True),
            await self._compared("requests with recall", recall=True, each=False),
            await self._spent(),
            await self._rates(2 * plan.rounds * plan.exchanges),
        )

    async def _compared(self, name: str, *, recall: bool, each: bool) -> Compared:
        plan, profiles = self._plan, added.profiles(recall=recall, each=each)
        with self._place(name) as (folder, url):
            step = self._step(name, len(profiles) * (plan.history + plan.compared))
            return await added.measure(folder, url, profiles, plan, step)

    async def _spent(self) -> list[Spent]:
        with self._place("spent") as (folder, url):
            step = self._step("calls and tokens", len(spent.ROWS) * self._plan.turns)
            return await spent.measure(folder, url, self._plan.turns, step)

    async def _rates(self, exchanges: int) -> Rates:
        with self._place("rate") as (folder, url):
            step = self._step("exchanges a second", exchanges)
            return await rate.measure(folder, url, self._plan, step)

    def _step(self, name: str, total: int) -> Step:
        task = self._progress.add_task(f"{self._name}: {name}", total=total)
        return lambda count: self._progress.advance(task, count)

    @contextmanager
    def _place(self, part: str) -> Iterator[tuple[Path, str]]:
        """A folder, and a store in it."""
        folder = self._folder / f"{self._name} {part}".replace(" ", "-")
        folder.mkdir()
        with processes.store(self._name, folder) as url:
            yield folder, url
