"""The cost of a tenant's background work, and the contract of the store that counts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import astuple

KEPT_DAYS = 400
"""Days for which a day's usage is stored at least, and the most days of one report."""


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to a model, those of them that failed, their tokens, and what they cost.

    ``micro_usd``: list price in millionths of a US dollar, 0 where it is not known.
    """

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: UsageTotals) -> UsageTotals:
        sums = map(add, astuple(self), astuple(other))
        return UsageTotals(**dict(zip(self.__struct_fields__, sums, strict=True)))


class UsageKey(NamedTuple):
    """A day (YYYY-MM-DD, UTC) and a feature, such as "summary" or "facts"."""

    day: str
    feature: str


class Meter(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def add_usage(self, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
        """Add to what a tenant has spent."""
        ...

    async def usage_of_days(
        self, tenant: str, days: Sequence[str]
    ) -> Mapping[UsageKey, UsageTotals]:
        """What a tenant has spent on these days, by day and feature."""
        ...
