"""The results as three Markdown tables.  Pure but for the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from statistics import median

from bench.cost.table import MS, NAMES, p95
from bench.writing.added import OFF, ON, Compared
from bench.writing.plan import Plan
from bench.writing.rate import Rate
from bench.writing.spent import Spent
from bench.writing.suite import Results
from proxy.settings import ProfileSettings

AIM = 0.3
"""Milliseconds that a request may take longer at most."""

Cell = Callable[[Results], str]


def report(plan: Plan, results: Sequence[Results]) -> str:
    """Requests, tokens, exchanges a second; then where it was made."""
    stores = [NAMES[each.store] for each in results]
    return "\n\n".join(
        [
            "## What a request takes longer",
            _table(["ms", *stores, "aim"], _of_all(_added(), results)),
            *(f"## Calls and tokens, {NAMES[each.store]}\n\n{_spent(each)}" for each in results),
            f"## Exchanges a second, {plan.people} people at the same time",
            _table(["", *stores], _of_all(_rates(), results)),
            f"{_where()}\n",
        ]
    )


def _of_all(
    rows: Iterable[tuple[str, Cell, str | None]], results: Sequence[Results]
) -> Iterator[list[str]]:
    for name, cell, aim in rows:
        yield [name, *map(cell, results), *([] if aim is None else [aim])]


def _added() -> Iterator[tuple[str, Cell, str | None]]:
    yield from _of_requests("", lambda r: r.bare)
    for feature in ProfileSettings().writers:
        yield f"{feature} alone adds, p50", partial(_alone, feature), ""
    yield from _of_requests("with recall, ", lambda r: r.recalling)


def _alone(feature: str, results: Results) -> str:
    return _ms(results.bare.added(feature))


def _of_requests(
    name: str, of: Callable[[Results], Compared]
) -> Iterator[tuple[str, Cell, str | None]]:
    yield f"{name}everything adds, p50", lambda r: _ms(of(r).added(ON)), f"{AIM}"
    yield f"{name}of it before the upstream is called", lambda r: _ms(of(r).added(ON, "before")), ""
    yield f"{name}of it in the commit", lambda r: _ms(of(r).added(ON, "commit")), ""
    for said, profile in (("everything", ON), ("nothing", OFF)):
        yield f"{name}{said}, p50 / p95", partial(_of_profile, of, profile), ""
        yield f"{name}{said}, tokens added", partial(_tokens, of, profile), ""
    yield f"{name}turns left out, without memory", lambda r: f"{of(r).left_out}", ""


def _of_profile(of: Callable[[Results], Compared], profile: str, results: Results) -> str:
    took = [each.total for each in of(results).took[profile]]
    return f"{_ms(median(took))} / {_ms(p95(took))}"


def _tokens(of: Callable[[Results], Compared], profile: str, results: Results) -> str:
    compared = of(results)
    return f"{compared.tokens[profile] / len(compared.took[profile]):,.0f}"


def _spent(results: Results) -> str:
    turns = results.spent[0].turns
    head = [f"in {turns} turns", "calls", "tokens read", "tokens written"]
    head += ["tokens of it in a prompt", "tokens of a prompt"]
    return _table(head, map(_spent_row, results.spent))


def _spent_row(spent: Spent) -> list[str]:
    chats, used = spent.chats, spent.used
    block = chats.blocks.get(spent.row.feature, 0) + chats.tools
    name, calls = spent.row.name, f"{used.calls}" + (f", {used.failed} failed" * (used.failed > 0))
    read, wrote = used.input, used.output
    if chats.calls_made:
        name = f"{name}: {chats.rounds} rounds for {chats.calls_made} calls of memory"
        calls, read, wrote = f"{chats.rounds}", chats.again, chats.calls
    per_turn = [f"{tokens / chats.chats:,.0f}" for tokens in (block, chats.prompt)]
    return [name, calls, f"{read:,}", f"{wrote:,}", *per_turn]


def _rates() -> Iterator[tuple[str, Cell, str | None]]:
    on, off = attrgetter("rates.on"), attrgetter("rates.off")
    yield "with nothing written", lambda r: f"{off(r).answered:.0f}", None
    yield "with everything written", lambda r: f"{on(r).answered:.0f}", None
    yield "ratio", lambda r: f"{on(r).answered / off(r).answered:.2f}", None
    until = "ratio, until all that is due is written"
    yield until, lambda r: f"{on(r).done / off(r).answered:.2f}", None
    calls = "calls of writers an exchange"
    yield calls, lambda r: f"{on(r).calls / on(r).exchanges:.2f}", None
    for name, of in (("nothing", off), ("everything", on)):
        yield f"CPU ms an exchange, {name}", partial(_cpu, of), None
        yield f"answers without memory, {name}", partial(_degraded, of), None


def _cpu(of: Callable[[Results], Rate], results: Results) -> str:
    return _ms(of(results).cpu / of(results).exchanges)


def _degraded(of: Callable[[Results], Rate], results: Results) -> str:
    return f"{of(results).degraded}"


def _ms(seconds: float) -> str:
    return f"{seconds * MS:.2f}"


def _where() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; store, upstream and writers on the same machine."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
