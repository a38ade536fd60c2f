"""The result as one Markdown table."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from bench.apis import ApiCost
from bench.at_once import AtOnce, Rate
from bench.plan import AT_ONCE, DIRECT
from bench.single import p99
from bench.suite import Measured, Result

MS, US, KB = 1e3, 1e6, 1024


def report(results: Measured) -> str:
    """The tables, a line on where they were made, and what was not as it should be."""
    rows = results.rows
    lines = [*_head(rows), _direct(rows), *map(_row, rows), "", *_apis(results.apis), ""]
    lines += [*_at_once(results.at_once), ""]
    return "\n".join([*lines, _where(), *_notes(results), ""])


def _apis(costs: Sequence[ApiCost]) -> Iterator[str]:
    yield _line("the same turn, SQLite", "added ms, p50", "x", "CPU µs / turn", "x")
    yield "|---|" + "--:|" * 4
    for cost in costs:
        usual = next(c.single for c in costs if c.size == cost.size)
        added, cpu = cost.single.added_p50, cost.single.cpu_each
        yield _line(
            f"{cost.api}, session of {cost.size:,}",
            _number(added * MS),
            f"{added / usual.added_p50:.2f}",
            f"{cpu * US:,.0f}",
            f"{cpu / usual.cpu_each:.2f}",
        )


def _at_once(targets: Sequence[AtOnce]) -> Iterator[str]:
    kinds = ("one session", "new sessions")
    units = ("turns / s", "CPU ms / turn", "x the first row's turns / s")
    yield _line(f"{AT_ONCE} at once", *(f"{kind}: {unit}" for kind in kinds for unit in units))
    yield "|---|" + "--:|" * 6
    first = targets[0]
    for one in targets:
        hot = _rate(one.hot, first.hot)
        yield _line(one.row.target_name, *hot, *_rate(one.new, first.new))


def _rate(rate: Rate, floor: Rate) -> tuple[str, str, str]:
    share = rate.a_second / floor.a_second
    return f"{rate.a_second:,.0f}", f"{rate.cpu_each * MS:.2f}", f"{share:.2f}"


def _head(results: Sequence[Result]) -> Iterator[str]:
    levels = [f"{at.level.streams:,}" for at in results[0].levels]
    yield _line(
        "",
        "added ms, p50",
        "added ms, p99",
        "CPU µs / request",
        *(f"added ms to first chunk, {level} open" for level in levels),
        *(f"CPU µs / chunk, {level} open" for level in levels),
        "kB / open stream",
    )
    yield "|---|" + "--:|" * (4 + 2 * len(levels))


def _direct(results: Sequence[Result]) -> str:
    """What is added to, in the same units; its CPU time is the mocked upstream's own affair."""
    times = [value for result in results for value in result.single.direct]
    levels = zip(*(result.levels for result in results), strict=True)
    firsts = [median(value for at in level for value in at.direct.first) for level in levels]
    return _line(
        f"{DIRECT.name} (absolute)",
        _number(median(times) * MS),
        _number(p99(times) * MS),
        "",
        *(_number(first * MS) for first in firsts),
        *("" for _ in firsts),
        "",
    )


def _row(result: Result) -> str:
    single = result.single
    return _line(
        result.row.name,
        _number(single.added_p50 * MS),
        _number(single.added_p99 * MS),
        f"{single.cpu_each * US:,.0f}",
        *(_number((at.through.first_p50 - at.direct.first_p50) * MS) for at in result.levels),
        *(f"{at.through.cpu_each * US:,.0f}" for at in result.levels),
        f"{result.stream_rss / KB:,.0f}",
    )


def _where() -> str:
    cores = os.cpu_count()
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, Python "
        f"{platform.python_version()}; load client, mocked upstream and store on the same machine."
    )


def _notes(results: Measured) -> Iterator[str]:
    """Memory that failed would make a row look better than it is."""
    for name, statuses in _statuses(results):
        if degraded := statuses["degraded"]:
            total = sum(statuses.values())
            yield f"\n{name}: {degraded} of {total} answers went without memory."


def _statuses(results: Measured) -> Iterator[tuple[str, Counter[str]]]:
    for result in results.rows:
        levels = (at.through.memory for at in result.levels)
        yield result.row.name, sum(levels, Counter(result.single.memory))
    for cost in results.apis:
        yield f"{cost.api}, session of {cost.size:,}", cost.single.memory
    for one in results.at_once:
        yield f"{AT_ONCE} at once, {one.row.target_name}", one.hot.memory + one.new.memory


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
