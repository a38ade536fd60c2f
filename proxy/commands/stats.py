"""``memory-proxy stats``: how much is said, and what memory adds to it; ``memory-proxy tenants``:
whose memory there is.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import JustifyMethod
from rich.table import Table

from proxy.commands.command import CommandContext, OnlyUser, command
from proxy.commands.output import clock


def stats(
    context: CommandContext,
    days: Annotated[int, typer.Option(min=1, max=366, help="How far back.")] = 7,
    bucket: Annotated[str, typer.Option(help="hour or day.")] = "day",
    user: OnlyUser = None,
) -> None:
    """Exchanges, tokens and memory's latency over time."""
    params = [("days", str(days)), ("bucket", bucket), *([("user", user)] if user else [])]
    found = context.api.ask("GET", "/stats", params)
    if context.out.as_json:
        return context.out.print_json(found)
    counted = ("exchanges", "prompt", "completion", "cached", "written", "injected")
    headings = ("since", *counted, "p50 ms", "p95")
    table = Table(box=None, pad_edge=False, header_style="bold")
    length = 16 if bucket == "hour" else 10
    rows = [[clock(row["at"])[:length], *_numbers(row)] for row in found["series"]]
    rows.append(["all", *_numbers(found["totals"])])
    for heading, *cells in zip(headings, *rows, strict=True):
        # In a narrow terminal lines break: a day or a number that is cut says nothing.
        whole = max(map(len, (heading, *cells)))
        side: JustifyMethod = "left" if heading == "since" else "right"
        table.add_column(heading, justify=side, min_width=whole)
    for row in rows:
        table.add_row(*row, style="bold" if row is rows[-1] else None)
    context.out.console.print(table, crop=False)
    if sentence := missing_usage_note(found["totals"]):
        context.out.note(sentence)
    if not found["complete"]:
        context.out.note("There are more exchanges than were looked at; these are the newest.")


def missing_usage_note(totals: dict[str, Any]) -> str | None:
    """A sentence where upstreams have counted a part alone: more may be injected than prompt."""
    exchanges = totals["exchanges"]
    told = totals.get("with_usage", exchanges)  # an older proxy does not say
    if told >= exchanges:
        return None
    return (
        f"Upstreams have told the usage of {told} of {exchanges} exchanges: "
        "prompt, completion, cached and written are of those alone."
    )


def _numbers(row: dict[str, Any]) -> list[str]:
    tokens, latency = row["tokens"], row["latency_ms"]
    names = ("prompt", "completion", "cached", "cache_written", "injected")
    shown = [str(number) for number in (row["exchanges"], *(tokens[name] for name in names))]
    return shown + [_ms(latency["p50"]), _ms(latency["p95"])]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


tenants = typer.Typer(help="Whose memory it is.", no_args_is_help=True)


@command(tenants, "list", all_tenants=True)
def list_(context: CommandContext) -> None:
    """All that have sessions or are named clients, for administrators."""
    if not context.out.print_list(context.pages("/tenants"), {"id": "id"}):
        context.out.note("There are no tenants.")
