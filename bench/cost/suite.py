"""All rows, one after another.  Only one thing is busy at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.progress import Progress

from bench import processes
from bench.cost import added, asking, fill
from bench.cost.added import Pairs
from bench.cost.asking import Asker
from bench.cost.fill import Step
from bench.cost.plan import Plan
from bench.cost.space import used
from bench.cost.text import Talk
from proxy.process.runtime import keep_uncollected, prepare_threads
from proxy.recall.query.words import CUES
from proxy.stores.open import Backend, open_store

SECONDS = 60.0
"""Longer than a store may take for anything here."""


@dataclass(slots=True)
class Costs:
    """What was found out on a store.  Times are seconds, sizes bytes.

    ``query``: one user with all passages; ``write``: indexing a message there; ``index``: room of
    that index; ``rss``: memory of the process that asks.  ``alone`` and ``among``: a user with few
    passages, by itself and among many users.
    """

    store: str
    query: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)
    index: int = 0
    rss: int = 0
    alone: list[float] = field(default_factory=list)
    among: list[float] = field(default_factory=list)
    pairs: Pairs = field(default_factory=Pairs)


async def measure(plan: Plan, folder: Path, progress: Progress) -> list[Costs]:
    """Raises RuntimeError where something is not as it should be."""
    _settle()
    return [await _Bench(plan, folder, progress, store).costs() for store in plan.back_ends]


def _settle() -> None:
    """As a process that serves: what lives to its end is made now, and not looked at again by the
    garbage collector."""
    prepare_threads()
    with keep_uncollected():
        CUES.warm()


class _Bench:
    """All measurements on one kind of store."""

    def __init__(self, plan: Plan, folder: Path, progress: Progress, store: str) -> None:
        self._plan, self._folder, self._progress = plan, folder, progress
        self._name, self._costs, self._talk = store, Costs(store), Talk(seed=1)

    async def costs(self) -> Costs:
        for part in (self._one, self._few, self._chat):
            with self._place(part.__name__) as url:
                await part(url)
        return self._costs

    async def _one(self, url: str) -> None:
        plan, costs = self._plan, self._costs
        async with opened(url) as store:
            step = self._step("history", plan.passages)
            seeded = await fill.history(store, self._talk, "one", plan.passages, step)
            before = used(url)
            await fill.index(store, seeded, self._step("index", plan.passages))
            costs.index = used(url) - before
            (costs.query,) = await self._ask((store, [seeded]))
            costs.rss = psutil.Process().memory_info().rss
            step = self._step("indexing exchanges", plan.exchanges)
            costs.write = await asking.write(store, self._talk, seeded, plan.exchanges, step)

    async def _few(self, url: str) -> None:
        """A user alone and one of many, asking in turns."""
        plan, costs = self._plan, self._costs
        with self._place("_alone") as lonely:
            async with opened(url) as store, opened(lonely) as other:
                step = self._step("one user", plan.each)
                one = await fill.many_users(other, self._talk, 1, plan.each, step)
                step = self._step("many users", plan.users * plan.each)
                many = await fill.many_users(store, self._talk, plan.users, plan.each, step)
                costs.alone, costs.among = await self._ask((other, one), (store, many))

    async def _chat(self, url: str) -> None:
        plan = self._plan
        async with opened(url) as store:
            step = self._step("chat's history", plan.chat)
            user = await fill.history(store, self._talk, "chat", plan.chat, step)
            await fill.index(store, user, self._step("chat's index", plan.chat))
        step = self._step("chatting", plan.pairs + added.WARM_UP)
        self._costs.pairs = await added.measure(
            self._folder, url, self._talk, user, plan.pairs, step
        )

    async def _ask(self, *whom: tuple[Backend, list[fill.Seeded]]) -> list[list[float]]:
        askers = [Asker(store, users, self._talk) for store, users in whom]
        step = self._step("asking", self._plan.asked + asking.WARM_UP)
        await asking.ask(askers, self._plan.asked, step)
        return [asker.times for asker in askers]

    def _step(self, name: str, total: int) -> Step:
        task = self._progress.add_task(f"{self._name}: {name}", total=total)
        return lambda count: self._progress.advance(task, count)

    @contextmanager
    def _place(self, part: str) -> Iterator[str]:
        """A store of its own for each part."""
        folder = self._folder / f"{self._name}{part}"
        folder.mkdir()
        with processes.store(self._name, folder) as url:
            yield url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Backend]:
    """A store as a reader and writer of its own, patient."""
    store = open_store(url, timeout=SECONDS, commit_timeout=SECONDS)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
