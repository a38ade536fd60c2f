"""`make bench` from the seeds to the tables, with as little as there can be of everything."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from bench import processes
from bench.at_once import measure_at_once
from bench.memory_floor import list_of
from bench.plan import Level, Plan, Row
from bench.suite import measure, steps
from bench.table import report

TINY = Plan(
    sizes=(0, 20),
    api_sizes=(20,),
    floor_sizes=(0, 20),
    rounds=1,
    pairs=2,
    afterwards=0.0,
    levels=(Level(1, runs=1, chunks=4, interval=0.002),),
    hot_turns=20,
    new_sessions=20,
)


@pytest.mark.slow
async def test_every_row_is_measured_beside_its_floor(tmp_path: Path) -> None:
    done: list[str] = []
    tables = report(await measure(TINY, tmp_path, done.append))
    assert len(done) == steps(TINY)
    for name in ("bare pass-through", "memory floor, session of 20", "session of 20, SQLite"):
        assert f"| {name} |" in tables
    for api in ("chat completions", "Messages", "Responses"):
        assert f"| {api}, session of 20 |" in tables
    floor, *ours = tables.partition("16 at once")[2].splitlines()[2:5]
    assert floor.startswith("| memory floor |")
    assert floor.count("| 1.00 |") == 2
    assert [line.split("|")[1].strip() for line in ours] == ["SQLite", "Redis"]


@pytest.mark.slow
async def test_the_memory_floor_remembers(tmp_path: Path) -> None:
    with (
        processes.upstream(tmp_path) as upstream,
        processes.redis(tmp_path, durable=False) as url,
        processes.memory_floor(tmp_path, upstream.url, url) as floor,
    ):
        await measure_at_once(TINY, Row("memory floor", "redis"), floor)
        with redis.from_url(url) as store:
            assert store.llen(list_of("hot")) == 2 * TINY.hot_turns
            assert store.llen(list_of("fresh-0")) == 2
