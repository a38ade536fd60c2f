"""Exchanges a second of one proxy, with everything written in the background, and with nothing.

People chat at the same time, each in a session of their own, without any rest.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.cost.fill import Step
from bench.cost.suite import opened
from bench.processes import Process
from bench.writing.chats import Chat, chatting, is_degraded
from bench.writing.memory import memory_of
from bench.writing.plan import Plan
from bench.writing.profiles import ALL, configured, roomy
from bench.writing.words import Speaker
from proxy.stores.open import Backend

ON, OFF = "everything", "nothing"
CALLS = "memory_background_calls_total"
LOOK = 0.02
"""Seconds between looks at the queue."""
PATIENCE = 120.0


@dataclass(slots=True)
class Rate:
    """``seconds`` until all were answered, and ``left`` until nothing was due any more.

    ``calls`` of writers, ``cpu`` seconds of the proxy, ``degraded`` answers without memory.
    """

    exchanges: int = 0
    seconds: float = 0.0
    left: float = 0.0
    calls: float = 0.0
    cpu: float = 0.0
    degraded: int = 0

    @property
    def answered(self) -> float:
        """Exchanges a second."""
        return self.exchanges / self.seconds

    @property
    def done(self) -> float:
        """The same with the time that the background then still took."""
        return self.exchanges / (self.seconds + self.left)


@dataclass(slots=True)
class Rates:
    on: Rate
    off: Rate


async def measure(folder: Path, url: str, plan: Plan, step: Step) -> Rates:
    """In rounds, in turns which is first, so that a bad minute falls on both."""
    with (
        processes.upstream(folder, "bench.writing.upstream") as upstream,
        processes.upstream(folder, "bench.writing.upstream") as writers,
    ):
        profiles = roomy(ON, ALL, recall=True), roomy(OFF, {}, recall=True)
        config = configured(folder, writers.url, *profiles)
        with processes.proxy(folder, upstream.url, url, config) as proxy:
            async with opened(url) as store:
                return await _Load(proxy, store, plan).rates(step)


class _Load:
    def __init__(self, proxy: Process, store: Backend, plan: Plan) -> None:
        self._proxy, self._store, self._plan = proxy, store, plan
        self._rates = {ON: Rate(), OFF: Rate()}

    async def rates(self, step: Step) -> Rates:
        for number in range(self._plan.rounds):
            for profile in (ON, OFF) if number % 2 else (OFF, ON):
                await self._round(profile, number, step)
        return Rates(self._rates[ON], self._rates[OFF])

    async def _round(self, profile: str, number: int, step: Step) -> None:
        """All chat at the same time; then what is still to be written is waited for."""
        rate, each = self._rates[profile], self._plan.exchanges // self._plan.people
        async with AsyncExitStack() as opening, memory_of(self._proxy.url) as memory:
            chats = [
                await opening.enter_async_context(self._chatting(profile, f"{number}-{person}"))
                for person in range(self._plan.people)
            ]
            calls, cpu = await memory.metric(CALLS), self._proxy.cpu()
            began = time.perf_counter()
            talks = (_talk(chat, each, at, step) for at, chat in enumerate(chats))
            rate.degraded += sum(await asyncio.gather(*talks))
            answered = time.perf_counter()
            await self._done()
            rate.left += time.perf_counter() - answered
            rate.seconds += answered - began
            rate.exchanges += each * len(chats)
            rate.calls += await memory.metric(CALLS) - calls
            rate.cpu += self._proxy.cpu() - cpu

    def _chatting(self, profile: str, name: str) -> AbstractAsyncContextManager[Chat]:
        return chatting(self._proxy, profile, f"{profile}-{name}", f"rate-{profile}-{name}")

    async def _done(self) -> None:
        """Until nothing is due; what waits for more turns or for quiet is not."""
        deadline = time.monotonic() + PATIENCE
        while await self._store.waiting(time.time(), 1):
            if time.monotonic() > deadline:
                raise RuntimeError(f"work is still due after {PATIENCE:.0f} s")
            await asyncio.sleep(LOOK)


async def _talk(chat: Chat, exchanges: int, seed: int, step: Step) -> int:
    """How many answers went without memory."""
    speaker, degraded = Speaker(seed), 0
    for number in range(exchanges):
        degraded += is_degraded(await chat.say(speaker.turn(number)))
        step(1)
    return degraded
