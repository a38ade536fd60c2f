"""`make bench` from the seeds to the tables, with as little as there can be of everything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis

import bench.__main__
from bench import processes
from bench.at_once import measure_at_once
from bench.memory_floor import list_of
from bench.plan import Level, Plan, Row, rows
from bench.suite import Measured, Step, measure, steps
from bench.table import report

pytestmark = pytest.mark.release

TINY = Plan(
    sizes=(0, 20),
    api_sizes=(20,),
    floor_sizes=(0, 20),
    rounds=1,
    pairs=2,
    afterwards=0.0,
    levels=(
        Level(1, runs=1, chunks=4, interval=0.002),
        Level(4, runs=1, chunks=4, interval=0.005),
    ),
    hot_turns=20,
    new_sessions=20,
)


NUMBER = re.compile(r"-?[\d,]+(\.\d+)?")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.mark.slow
def test_every_row_is_measured_beside_its_floor(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``python -m bench`` does it: one run, whose processes take a minute to start."""
    done: list[str] = []

    async def told(plan: Plan, folder: Path, step: Step) -> Measured:
        def both(name: str) -> None:
            done.append(name)
            step(name)

        return await measure(plan, folder, both)

    monkeypatch.setattr(bench.__main__, "measure", told)
    measured = bench.__main__.run(TINY)
    assert "sixteen at once" in capfd.readouterr().err
    assert len(done) == steps(TINY)
    tables = report(measured)
    fills_the_first(tables, measured)
    for name in ("bare pass-through", "memory floor, session of 20", "session of 20, SQLite"):
        assert f"| {name} |" in tables
    for api in ("chat completions", "Messages", "Responses"):
        assert f"| {api}, session of 20 |" in tables
    floor, *ours = tables.partition("16 at once")[2].splitlines()[2:5]
    assert floor.startswith("| memory floor |")
    assert floor.count("| 1.00 |") == 2
    assert [line.split("|")[1].strip() for line in ours] == ["SQLite", "Redis"]


def fills_the_first(tables: str, measured: Measured) -> None:
    """A number in each cell, and of what is asked directly none where there is none."""
    head, _, direct, *lines = tables.split("\n\n")[0].splitlines()
    assert len(cells(head)) == 9
    assert [cells(line)[0] for line in lines] == [row.name for row in rows(TINY)]
    for line in lines:
        assert all(NUMBER.fullmatch(cell) for cell in cells(line)[1:])
    filled = [True, True, False, True, True, False, False, False]
    assert [bool(cell) for cell in cells(direct)[1:]] == filled
    with_memory = {result.row: result.single.memory.keys() for result in measured.rows}
    sizes = {row: set(keys) for row, keys in with_memory.items() if row.target == "proxy"}
    by_size = {0: {"empty"}, 20: {"applied"}}
    assert sizes == {row: by_size[row.size] if row.store else {"none"} for row in sizes}


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
