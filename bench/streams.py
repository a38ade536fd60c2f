"""Many open streams: the time to the first chunk, CPU time a chunk, memory a stream."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench.plan import Level
from bench.processes import Process
from bench.wire import Answer, Connection, connect

OPENED_A_SECOND = 50
"""How fast streams are opened: it is open ones that are measured, not how fast they can come."""
_GO = b"GET /go HTTP/1.1\r\nhost: bench\r\n\r\n"


@dataclass(slots=True)
class Open:
    """What a level took.  Times are seconds, ``rss`` is bytes with all streams open."""

    first: list[float] = field(default_factory=list)
    cpu: float = 0.0
    chunks: int = 0
    rss: int = 0
    memory: Counter[str] = field(default_factory=Counter)

    @property
    def first_p50(self) -> float:
        return median(self.first)

    @property
    def cpu_each(self) -> float:
        return self.cpu / self.chunks


class _Meter:
    """CPU time between the start of all streams and the first one's last chunks."""

    def __init__(self, level: Level, target: Process) -> None:
        self._level, self._target = level, target
        self._opened = asyncio.Event()
        self._waiting = level.streams
        self._counting = False
        self._cpu = 0.0
        self.cpu = 0.0
        self.chunks = 0

    async def all_open(self) -> None:
        await self._opened.wait()

    def start(self) -> None:
        self._counting, self._cpu = True, self._target.cpu()

    def heard(self, answer: Answer, new: int) -> None:
        if answer.events == new:  # its first
            self._waiting -= 1
            if not self._waiting:
                self._opened.set()
        elif self._counting:
            self.chunks += new
            if answer.events >= self._level.chunks - 1:  # before the end, which is another matter
                self._counting = False
                self.cpu = self._target.cpu() - self._cpu


async def measure_streams(
    level: Level, upstream: Process, target: Process, request: Callable[[], bytes]
) -> Open:
    """Open the level's streams, let them run to their end, as many times as it says."""
    found = Open()
    for _ in range(level.runs):
        await _run(found, level, upstream, target, request)
    return found


async def _run(
    found: Open, level: Level, upstream: Process, target: Process, request: Callable[[], bytes]
) -> None:
    meter = _Meter(level, target)
    streams: list[asyncio.Task[Answer]] = []
    connections: list[Connection] = []
    pause = 1 / OPENED_A_SECOND
    try:
        for _ in range(level.streams):
            connection = await connect(target.port, meter.heard)
            connections.append(connection)
            streams.append(asyncio.create_task(connection.ask(request())))
            await asyncio.sleep(pause)
        await _all_open(meter, streams)
        found.rss = target.rss()
        meter.start()
        await _go(upstream)
        answers = await asyncio.gather(*streams)
    finally:
        for connection in connections:
            connection.close()
    _account(found, meter, level, answers)


async def _all_open(meter: _Meter, streams: list[asyncio.Task[Answer]]) -> None:
    """Until every stream has its first chunk; raises what ended one of them instead."""
    opened = asyncio.create_task(meter.all_open())
    try:
        await asyncio.wait([opened, *streams], return_when=asyncio.FIRST_COMPLETED)
        for stream in streams:
            if stream.done():
                raise RuntimeError(f"a stream ended with status {stream.result().status}")
        await opened
    finally:
        opened.cancel()


async def _go(upstream: Process) -> None:
    connection = await connect(upstream.port)
    try:
        await connection.ask(_GO)
    finally:
        connection.close()


def _account(found: Open, meter: _Meter, level: Level, answers: list[Answer]) -> None:
    found.cpu += meter.cpu
    found.chunks += meter.chunks
    for answer in answers:
        if answer.status != 200 or answer.events < level.chunks:
            raise RuntimeError(f"a stream ended early: {answer}")
        found.first.append(answer.first)
        found.memory[answer.headers.get(b"x-memory-status", b"none").decode()] += 1
