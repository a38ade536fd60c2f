"""How much one worker carries: people who ask without a rest, and what that takes."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import redis.asyncio as redis

from bench.processes import Process, proxy, store, upstream
from bench.wire import Answer, connect

TALK = (
    "I would like to go to the mountains in autumn, for a week or so, and take the train there.",
    "Which of the huts that we spoke about can be reached without a car, and when do they close?",
    "My sister comes along; she eats no meat and does not like to get up before eight.",
    "What did we say about the plans, and what is left to be done?",
)
"""Said in turn: with the answer some forty tokens an exchange."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``people`` at once for ``seconds``; ``streams`` are only held open."""

    people: tuple[int, ...] = (1, 16, 64)
    seconds: float = 20.0
    streams: int = 200
    redis: bool = True

    @property
    def stores(self) -> tuple[str, ...]:
        return ("sqlite", "redis") if self.redis else ("sqlite",)


QUICK = Plan(people=(16,), seconds=8.0, streams=100)


@dataclass(slots=True)
class Load:
    """What so many people at once got, and what it took.  Sizes are bytes, times seconds.

    ``recorded`` counts exchanges, those of warming up included; ``disk`` is what all of them take,
    ``held`` what they take of Redis' memory.
    """

    name: str
    people: int
    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    without_memory: int = 0
    cpu: float = 0.0
    resident: int = 0
    recorded: int = 0
    disk: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """All loads, and the descriptors that an open stream takes."""

    loads: list[Load]
    descriptors: float


async def measure(plan: Plan, folder: Path, step: Callable[[str], None]) -> Capacity:
    loads: list[Load] = []
    with upstream(folder) as answering:
        for kind in plan.stores:
            for people in plan.people:
                step(f"{people} people, {kind}")
                place = folder / f"{kind}-{people}"
                place.mkdir()
                load = Load(kind, people)
                with store(kind, place) as url:
                    before = await _held(url)
                    with proxy(place, answering.url, url) as served:
                        await _load(load, plan.seconds, served)
                    load.held = await _held(url) - before
                    load.disk = _size(place)  # once its log is written back
                loads.append(load)
        step(f"{plan.streams} streams")
        place = folder / "streams"
        place.mkdir()
        with proxy(place, answering.url, f"sqlite:///{place}/memory.db") as served:
            descriptors = await _descriptors(plan.streams, served, answering)
    return Capacity(loads, descriptors)


async def _load(load: Load, seconds: float, served: Process) -> None:
    warm = Load("", 0)
    await _talk("warm", warm, time.monotonic() + 1, served.port)
    cpu, began = served.cpu(), time.monotonic()
    async with asyncio.TaskGroup() as talking:
        for number in range(load.people):
            talking.create_task(_talk(f"p{number}", load, began + seconds, served.port))
    load.seconds, load.cpu = time.monotonic() - began, served.cpu() - cpu
    load.resident, load.recorded = served.rss(), len(warm.took) + len(load.took)


async def _talk(name: str, load: Load, until: float, port: int) -> None:
    """One person, who asks again as soon as there is an answer; a new session every 40 turns."""
    connection = await connect(port)
    for turn in itertools.count():
        if time.monotonic() >= until:
            break
        asked = _request(name, f"{name}-{turn // 40}", TALK[turn % len(TALK)])
        answer = await connection.ask(asked)
        load.took.append(answer.total)
        load.without_memory += answer.headers.get(b"x-memory-status") == b"degraded"
    connection.close()


def _request(user: str, session: str, text: str, extra: str = "", *, stream: bool = False) -> bytes:
    message = {"role": "user", "content": text}
    body = json.dumps({"model": "mock", "stream": stream, "messages": [message]})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"x-session-id: {session}\r\nx-user-id: {user}\r\ncontent-length: {len(body)}\r\n{extra}"
    )
    return f"{head}\r\n{body}".encode()


async def _descriptors(streams: int, served: Process, answering: Process) -> float:
    """What the proxy has open for each of so many streams that are open at once."""
    process = psutil.Process(served.pid)
    before, begun, all_begun = process.num_fds(), 0, asyncio.Event()

    def heard(answer: Answer, new: int) -> None:
        nonlocal begun
        if answer.events == new:
            begun += 1
        if begun == streams:
            all_begun.set()

    opened = [await connect(served.port, heard) for _ in range(streams)]
    extra = "x-bench-chunks: 2\r\nx-bench-interval: 0.01\r\n"
    asked = [
        asyncio.create_task(each.ask(_request("p", f"s{at}", TALK[0], extra, stream=True)))
        for at, each in enumerate(opened)
    ]
    await asyncio.wait_for(all_begun.wait(), 30)
    held = process.num_fds() - before
    go = await connect(answering.port)
    await go.ask(b"GET /go HTTP/1.1\r\nhost: bench\r\n\r\n")
    await asyncio.gather(*asked)
    for each in (*opened, go):
        each.close()
    return float(held / streams)


async def _held(url: str) -> int:
    """Bytes that Redis has in memory; 0 of SQLite, which keeps none."""
    if not url.startswith("redis"):
        return 0
    async with redis.from_url(url) as store:
        return int((await store.info("memory"))["used_memory"])


def _size(folder: Path) -> int:
    """Bytes that the store's and the spool's files take, not those of logs."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".log"]
    return sum(file.stat().st_blocks * 512 for file in files)


def report(capacity: Capacity) -> str:
    head = (
        "| people at once | exchanges / s | ms, p50 | ms, p99 | without memory | CPU ms / exchange "
        "| MB resident | kB of disk / exchange | kB in Redis / exchange |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    note = f"An open stream takes {capacity.descriptors:.1f} descriptors.\n\n{_machine()}"
    return head + "".join(map(_row, capacity.loads)) + f"\n{note}"


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; one worker; load client, mocked upstream and store on the "
        "same machine.\n"
    )


def _row(load: Load) -> str:
    count = len(load.took)
    cells = (
        f"{load.people}, {'SQLite' if load.name == 'sqlite' else 'Redis'}",
        f"{count / load.seconds:,.0f}",
        f"{statistics.median(load.took) * 1000:.1f}",
        f"{statistics.quantiles(load.took, n=100)[98] * 1000:.1f}",
        f"{load.without_memory / count:.1%}",
        f"{load.cpu / count * 1000:.1f}",
        f"{load.resident / 1e6:.0f}",
        f"{load.disk / load.recorded / 1000:.1f}",
        f"{load.held / load.recorded / 1000:.1f}" if load.held else "",
    )
    return f"| {' | '.join(cells)} |\n"
