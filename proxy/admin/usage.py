"""What background work with a model has cost: by day and feature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.objects import Object, reply
from proxy.admin.parts import AdminParts
from proxy.memory.usage import Account, Spent

DEFAULT_DAYS = 30
MOST_DAYS = 400
"""As many as every store keeps."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Usage:
    """``/usage``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._meter, self._access = parts.meter, access

    async def report(self, request: Request) -> Response:
        """From ``?from=`` to ``?to=``, both included, UTC; by default the last 30 days."""
        tenant = self._access.tenant(request)
        days = _days(request, datetime.now(UTC).date())
        spent = await self._meter.spent(tenant, days)
        return reply(usage_object(days[0], days[-1], spent))


def _days(request: Request, today: date) -> list[str]:
    last = _day(request, "to") or today
    first = _day(request, "from") or last - timedelta(days=min(DEFAULT_DAYS, last.toordinal()) - 1)
    count = (last - first).days + 1
    if not 1 <= count <= MOST_DAYS:
        raise invalid(f"from to to must be 1 to {MOST_DAYS} days.", "from")
    return [(first + timedelta(days=n)).isoformat() for n in range(count)]


def _day(request: Request, name: str) -> date | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return date.fromisoformat(text if _DAY.fullmatch(text) else "")
    except ValueError:
        raise invalid(f"{name} must be a day as YYYY-MM-DD.", name) from None


def usage_object(first: str, last: str, spent: Mapping[Account, Spent]) -> Object:
    accounts = sorted(spent.items())
    return {
        "object": "usage",
        "from": first,
        "to": last,
        "total": _figures(sum(spent.values(), Spent())),
        "data": [{**account._asdict(), **_figures(each)} for account, each in accounts],
    }


def _figures(spent: Spent) -> Object:
    return {
        "calls": spent.calls,
        "failed": spent.failed,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": spent.micro_usd / 1_000_000,
    }
