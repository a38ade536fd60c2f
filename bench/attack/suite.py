"""Runs the attacks, each on a proxy of its own with a victim beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import redis

from bench import processes
from bench.attack.kinds import Attack, Run
from bench.attack.sending import Attacker
from bench.attack.watch import Seen, Watch

CALM = 1.0
"""Seconds watched before an attack."""


@dataclass(frozen=True, slots=True)
class Result:
    """``restarted`` is what was seen after the restart, where there was one.

    ``longest``: seconds that a Redis server took for its longest command, and had for nobody else;
    0 where none was noted.
    """

    name: str
    store: str
    base: int
    seconds: float
    seen: Seen
    restarted: Seen | None
    statuses: tuple[str, ...]
    longest: float = 0.0


def run(
    attacks: Sequence[Attack], stores: Sequence[str], folder: Path, step: Callable[[str], None]
) -> Iterator[Result]:
    """Every attack on every kind of store."""
    for kind in stores:
        for number, attack in enumerate(attacks):
            step(f"{attack.name}, {kind}")
            place = folder / f"{kind}-{number}"
            place.mkdir()
            yield _one(attack, kind, place)


def _one(attack: Attack, kind: str, folder: Path) -> Result:
    act = attack.build()
    with (
        processes.upstream(folder, "bench.attack.upstream") as upstream,
        processes.store(kind, folder) as store,
    ):
        with _proxy(folder, upstream.url, store) as proxy:
            base, seen, seconds, statuses = asyncio.run(_attacked(proxy, act, attack.after))
        restarted = None
        if attack.restarts:
            with _proxy(folder, upstream.url, store) as proxy:
                restarted = asyncio.run(_watched(proxy, attack.after))
        longest = _longest_command(store)
    return Result(attack.name, kind, base, seconds, seen, restarted, statuses, longest)


def _longest_command(store: str) -> float:
    if not store.startswith("redis"):
        return 0.0
    with closing(redis.Redis.from_url(store)) as client:
        return max((each["duration"] / 1e6 for each in client.slowlog_get(-1)), default=0.0)


def _proxy(folder: Path, upstream: str, store: str) -> AbstractContextManager[processes.Process]:
    """With all its doors open."""
    return processes.proxy(folder, upstream, store, tenancy="key", mcp="true")


async def _attacked(
    proxy: processes.Process, act: Run, after: float
) -> tuple[int, Seen, float, tuple[str, ...]]:
    attacker = Attacker(proxy.port)
    async with Watch(proxy) as watch:
        await asyncio.sleep(CALM)
        base = proxy.rss()
        began = time.perf_counter()
        await asyncio.to_thread(act, attacker)
        seconds = time.perf_counter() - began
        await asyncio.sleep(after)
    return base, watch.seen, seconds, tuple(attacker.statuses)


async def _watched(proxy: processes.Process, seconds: float) -> Seen:
    async with Watch(proxy) as watch:
        await asyncio.sleep(seconds)
    return watch.seen
