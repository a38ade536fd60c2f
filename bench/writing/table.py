"""The results as three Markdown tables.  Pure but for the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from bench.cost.table import MS, NAMES, p95
from bench.writing.added import Pairs, Took
from bench.writing.plan import Plan
from bench.writing.rate import Rate
from bench.writing.spent import Spent
from bench.writing.suite import Results

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
            _where(),
            "",
        ]
    )


def _of_all(
    rows: Iterable[tuple[str, Cell, str | None]], results: Sequence[Results]
) -> Iterator[list[str]]:
    for name, cell, aim in rows:
        yield [name, *map(cell, results), *([] if aim is None else [aim])]


def _added() -> Iterator[tuple[str, Cell, str | None]]:
    kinds: dict[str, Callable[[Results], Pairs]] = {
        "recall off": lambda r: r.bare,
        "recall on": lambda r: r.recalling,
    }
    for name, pairs in kinds.items():
        yield from _of_pairs(name, pairs)


def _of_pairs(name: str, of: Callable[[Results], Pairs]) -> Iterator[tuple[str, Cell, str | None]]:
    yield f"{name}: added, p50", lambda r: _ms(of(r).added(total)), f"{AIM}"
    yield f"{name}: of it before the upstream is called", lambda r: _ms(of(r).added(before)), ""
    yield f"{name}: of it in the commit", lambda r: _ms(of(r).added(commit)), ""
    yield f"{name}: a request with everything, p50", lambda r: _p50(of(r).on), ""
    yield f"{name}: a request with nothing, p50", lambda r: _p50(of(r).off), ""
    yield f"{name}: with everything, p95", lambda r: _p95(of(r).on), ""
    yield f"{name}: with nothing, p95", lambda r: _p95(of(r).off), ""
    yield f"{name}: tokens added, everything / nothing", lambda r: _tokens(of(r)), ""
    yield f"{name}: pairs left out, without memory", lambda r: f"{of(r).left_out}", ""


def total(took: Took) -> float:
    return took.total


def before(took: Took) -> float:
    return took.before


def commit(took: Took) -> float:
    return took.commit


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
    yield "with nothing written", lambda r: _rate(r.rates.off), None
    yield "with everything written", lambda r: _rate(r.rates.on), None
    yield "ratio", lambda r: f"{_each(r.rates.on) / _each(r.rates.off):.2f}", None
    yield (
        "ratio, until all that is due is written",
        lambda r: f"{_each(r.rates.on, left=True) / _each(r.rates.off):.2f}",
        None,
    )
    yield "calls of writers an exchange", lambda r: f"{_per(r.rates.on, 'calls'):.2f}", None
    yield "CPU ms an exchange, nothing", lambda r: _ms(_per(r.rates.off, "cpu")), None
    yield "CPU ms an exchange, everything", lambda r: _ms(_per(r.rates.on, "cpu")), None
    yield (
        "answers without memory, everything / nothing",
        lambda r: f"{r.rates.on.degraded} / {r.rates.off.degraded}",
        None,
    )


def _each(rate: Rate, *, left: bool = False) -> float:
    return rate.exchanges / (rate.seconds + rate.left * left)


def _rate(rate: Rate) -> str:
    return f"{_each(rate):.0f}"


def _per(rate: Rate, what: str) -> float:
    return float(getattr(rate, what)) / rate.exchanges


def _tokens(pairs: Pairs) -> str:
    return " / ".join(f"{tokens / len(pairs.on):,.0f}" for tokens in pairs.tokens)


def _p50(took: Sequence[Took]) -> str:
    return _ms(median(map(total, took)))


def _p95(took: Sequence[Took]) -> str:
    return _ms(p95([each.total for each in took]))


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
