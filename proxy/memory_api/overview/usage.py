"""What background work with a model has cost: by day and feature."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from proxy.memory.usage import KEPT_DAYS, UsageTotals
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call, Reader, Tenant
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.shapes import overview as shapes
from proxy.memory_api.shapes.overview import SpentOn, Usage

DEFAULT_DAYS = 30

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
DAY = {"type": "string", "format": "date"}


def _day(name: str) -> Reader:
    def read(call: Call) -> date | None:
        text = call.request.query_params.get(name)
        if text is None:
            return None
        try:
            return date.fromisoformat(text if _DAY.fullmatch(text) else "")
        except ValueError:
            raise invalid(f"{name} must be a day as YYYY-MM-DD.", name) from None

    return read


First = Annotated[date | None, Parameter("from", "query", "The first day.", DAY, read=_day("from"))]
Last = Annotated[date | None, Parameter("to", "query", "The last day.", DAY, read=_day("to"))]


@operation("GET", "/memory/v1/usage", "Overview")
async def get_usage(api: Api, tenant: Tenant, first: First, last: Last) -> Usage:
    """Get the costs of background work.

    By day and feature, both days included; by default the last 30 days. At most 400 days;
    costs are kept for that long.
    """
    days = _days(first, last or datetime.now(UTC).date())
    spent = await api.store.usage_of_days(tenant, days)
    return Usage(
        first=days[0],
        to=days[-1],
        total=shapes.Spent(**_figures(sum(spent.values(), UsageTotals()))),
        data=[
            SpentOn(day=account.day, feature=account.feature, **_figures(each))
            for account, each in sorted(spent.items())
        ],
    )


def _days(first: date | None, last: date) -> list[str]:
    first = first or last - timedelta(days=min(DEFAULT_DAYS, last.toordinal()) - 1)
    count = (last - first).days + 1
    if not 1 <= count <= KEPT_DAYS:
        raise invalid(f"from to to must be 1 to {KEPT_DAYS} days.", "from")
    return [(first + timedelta(days=n)).isoformat() for n in range(count)]


def _figures(spent: UsageTotals) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "failed": spent.failed,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": spent.micro_usd / 1_000_000,
    }
