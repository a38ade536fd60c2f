"""What was spent, in the SQLite file.  The functions work on a connection inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from proxy.memory.usage import Account, Spent
from proxy.stores.sqlite_file import SQLiteFile

_ADDED = """
ON CONFLICT (tenant, day, feature) DO UPDATE SET
    calls = calls + excluded.calls,
    failed = failed + excluded.failed,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    micro_usd = micro_usd + excluded.micro_usd
"""

_COLUMNS = "day, feature, calls, failed, input_tokens, output_tokens, micro_usd"

_SPEND = f"INSERT INTO usage (tenant, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) {_ADDED}"

_SPENT = f"""
SELECT {_COLUMNS} FROM usage
WHERE tenant = ? AND day IN (SELECT value FROM json_each(?))
"""

_MOVE = f"""
INSERT INTO usage (tenant, {_COLUMNS}) SELECT ?2, {_COLUMNS} FROM usage WHERE tenant = ?1 {_ADDED}
"""


class SQLiteMeter(SQLiteFile):
    """See :class:`proxy.memory.usage.Meter`."""

    async def spend(self, tenant: str, account: Account, spent: Spent) -> None:
        await self._write(lambda c: spend(c, tenant, account, spent))

    async def spent(self, tenant: str, days: Sequence[str]) -> Mapping[Account, Spent]:
        return await self._list(lambda c: read_spent(c, tenant, days))


def spend(connection: sqlite3.Connection, tenant: str, account: Account, spent: Spent) -> None:
    connection.execute(_SPEND, (tenant, *account, *msgspec.structs.astuple(spent)))


def read_spent(
    connection: sqlite3.Connection, tenant: str, days: Sequence[str]
) -> dict[Account, Spent]:
    rows = connection.execute(_SPENT, (tenant, json.dumps(list(days))))
    return {
        Account(day, feature): Spent(**dict(zip(Spent.__struct_fields__, figures, strict=True)))
        for day, feature, *figures in rows
    }


def move(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Add what a tenant has spent to another's."""
    connection.execute(_MOVE, (old, new))
    connection.execute("DELETE FROM usage WHERE tenant = ?", (old,))
