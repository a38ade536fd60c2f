"""What was spent, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proxy.memory.usage import UsageKey, UsageTotals


class InMemoryMeter:
    """See :class:`proxy.memory.usage.Meter`."""

    def __init__(self) -> None:
        self._spent: dict[str, dict[UsageKey, UsageTotals]] = {}

    async def add_usage(self, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
        accounts = self._spent.setdefault(tenant, {})
        accounts[account] = accounts.get(account, UsageTotals()) + spent

    async def usage_of_days(
        self, tenant: str, days: Sequence[str]
    ) -> Mapping[UsageKey, UsageTotals]:
        accounts = self._spent.get(tenant, {})
        return {account: spent for account, spent in accounts.items() if account.day in days}

    def _move_spent(self, old: str, new: str) -> None:
        """Add what a tenant has spent to another's."""
        accounts = self._spent.setdefault(new, {})
        for account, spent in self._spent.pop(old, {}).items():
            accounts[account] = accounts.get(account, UsageTotals()) + spent
