"""The tokens that background requests have used, and a tenant's budget for a day."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec
from cachetools import LRUCache

from proxy.background.completion import BudgetSpent
from proxy.memory import usage
from proxy.memory.store import StoreError
from proxy.memory.usage import Meter, UsageKey

logger = logging.getLogger(__name__)

CACHE_SECONDS = 3.0
"""Seconds for which a tenant's sum is cached."""

MAX_TENANTS = 10_000
"""Tenants whose sums are cached."""

DAY = 86_400


class _Today(msgspec.Struct):
    """A tenant's tokens on a day: the store's sum at ``read_at``, and this process's since."""

    day: str
    read_at: float
    tokens: int


class Budget:
    """Counts tokens in the store and refuses a tenant that has used those of the day.

    ``tokens_per_day`` 0 is no bound.  Days are UTC, ``clock`` is in Unix seconds.  Requests in
    flight are not counted, so the bound can be exceeded by concurrent requests.
    """

    def __init__(self, meter: Meter, tokens_per_day: int, clock: Callable[[], float]) -> None:
        self._meter, self._tokens_per_day, self._clock = meter, tokens_per_day, clock
        self._today: LRUCache[str, _Today] = LRUCache(MAX_TENANTS)
        self._unflushed: dict[tuple[str, UsageKey], usage.UsageTotals] = {}

    def __repr__(self) -> str:
        return f"<Budget of {self._tokens_per_day} tokens a day>"

    async def check(self, tenant: str) -> None:
        """Raises BudgetSpent if nothing is left for today, StoreError if that is unknown."""
        if not self._tokens_per_day:
            return
        now = self._clock()
        if await self._tokens(tenant, now) >= self._tokens_per_day:
            raise BudgetSpent((now // DAY + 1) * DAY)

    async def _tokens(self, tenant: str, now: float) -> int:
        today, day = self._today.get(tenant), day_of(now)
        if today is None or today.day != day or not 0 <= now - today.read_at < CACHE_SECONDS:
            stored = sum(
                spent.tokens for spent in (await self._meter.usage_of_days(tenant, [day])).values()
            )
            today = _Today(day, now, stored + self._unflushed_tokens(tenant, day))
            self._today[tenant] = today
        return today.tokens

    def _unflushed_tokens(self, tenant: str, day: str) -> int:
        return sum(
            spent.tokens
            for (owner, account), spent in self._unflushed.items()
            if owner == tenant and account.day == day
        )

    def add(self, tenant: str, feature: str, spent: usage.UsageTotals) -> None:
        """Count a request; ``flush`` writes it to the store."""
        day = day_of(self._clock())
        self._add_unflushed(tenant, UsageKey(day, feature), spent)
        today = self._today.get(tenant)
        if today is not None and today.day == day:
            today.tokens += spent.tokens

    def _add_unflushed(self, tenant: str, account: UsageKey, spent: usage.UsageTotals) -> None:
        key = tenant, account
        self._unflushed[key] = self._unflushed.get(key, usage.UsageTotals()) + spent

    async def flush(self) -> None:
        """Write what was added to the store; what fails is kept for the next call."""
        while self._unflushed:
            (tenant, account), spent = self._unflushed.popitem()
            written = False
            try:
                await self._meter.add_usage(tenant, account, spent)
                written = True
            except StoreError as failure:
                logger.warning("what background work has cost is counted later: %s", failure)
                return
            finally:
                if not written:
                    self._add_unflushed(tenant, account, spent)


def day_of(now: float) -> str:
    """The UTC day of a moment, YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime(now))
