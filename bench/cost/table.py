"""The result as one Markdown table, with what is aimed at beside it.  Pure but for the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from statistics import median, quantiles

from bench.cost.plan import Plan
from bench.cost.suite import Costs

MS, KB, MB = 1e3, 1024, 1024 * 1024
NAMES = {"sqlite": "SQLite", "redis": "Redis"}


def report(plan: Plan, results: Sequence[Costs]) -> str:
    head = ["", *(NAMES[costs.store] for costs in results), "aim"]
    lines = [_line(*head), "|---|" + "--:|" * (len(results) + 1)]
    for name, cell, aim in _rows(plan):
        lines.append(_line(name, *map(cell, results), aim))
    return "\n".join([*lines, "", _where(), ""])


def _rows(plan: Plan) -> Iterator[tuple[str, Callable[[Costs], str], str]]:
    one, few = f"{plan.passages:,} passages of one user", f"{plan.each} passages"
    yield f"query, p50 ms, {one}", lambda c: _ms(median(c.query)), "10"
    yield f"query, p95 ms, {one}", lambda c: _ms(p95(c.query)), "30"
    yield "indexing an exchange there, p50 ms a message", lambda c: _ms(median(c.write)), "2"
    yield "indexing an exchange there, p95 ms a message", lambda c: _ms(p95(c.write)), ""
    yield "bytes of index a passage", lambda c: f"{c.index / plan.passages:,.0f}", ""
    yield "memory of the process that asks, MB", lambda c: f"{c.rss / MB:,.0f}", ""
    yield f"query, p50 ms, one user with {few}", lambda c: _ms(median(c.alone)), ""
    name = f"query, p50 ms, {plan.users:,} users with {few} each"
    yield name, lambda c: _ms(median(c.among)), "the same"
    yield f"query, p95 ms, one user with {few}", lambda c: _ms(p95(c.alone)), ""
    name = f"query, p95 ms, {plan.users:,} users with {few} each"
    yield name, lambda c: _ms(p95(c.among)), "the same"
    name = f"chat, p50 ms that recall adds, {plan.chat:,} passages"
    yield name, lambda c: _ms(c.pairs.added_p50), "3"
    yield "chat, p50 ms within recall itself", lambda c: _ms(median(c.pairs.within)), ""
    yield "chat, share of the answers with something recalled", _recalled, ""


def _recalled(costs: Costs) -> str:
    return f"{costs.pairs.recalled / len(costs.pairs.on):.2f}"


def p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1]


def _ms(seconds: float) -> str:
    return f"{seconds * MS:.2f}"


def _where() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; one question at a time, store on the same machine."
    )


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
