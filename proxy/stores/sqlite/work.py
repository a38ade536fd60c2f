"""The queue of background work in the SQLite file, and what the work has cost.

Functions of a connection inside a transaction.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta
from sqlite3 import Connection
from typing import Any

from msgspec.structs import astuple, replace

from proxy.memory.model import Kind, SessionKey, Work, WorkRequest
from proxy.memory.usage import KEPT_DAYS, UsageKey, UsageTotals
from proxy.stores.common import rules

_FIELDS = ", ".join(Work.__struct_encode_fields__)

_FIND = f"SELECT {_FIELDS} FROM work WHERE tenant = ? AND session = ? AND kind = ?"

_SAVE = f"INSERT OR REPLACE INTO work ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_WAITING = f"""
SELECT {_FIELDS} FROM work
WHERE due <= ? AND tenant NOT IN (SELECT value FROM json_each(?)) ORDER BY due LIMIT ?
"""

_REQUESTED_PROFILES = """
SELECT session, profile FROM work
WHERE tenant = ? AND session IN (SELECT value FROM json_each(?)) AND kind = ?
"""


def enqueue(connection: Connection, key: SessionKey, due: WorkRequest) -> None:
    _save(connection, rules.enqueued(_find(connection, key, due.kind), key, due))


def waiting(
    connection: Connection, now: float, limit: int, without: Collection[str] = ()
) -> Sequence[Work]:
    rows = connection.execute(_WAITING, (now, json.dumps(list(without)), limit))
    return [replace(_piece(row), lease="") for row in rows]


def requested_profiles(
    connection: Connection, tenant: str, sessions: Sequence[str], kind: Kind
) -> dict[str, str]:
    return dict(connection.execute(_REQUESTED_PROFILES, (tenant, json.dumps(list(sessions)), kind)))


def claim(connection: Connection, work: Work, now: float, until: float) -> Work | None:
    piece = rules.claimed(_find(connection, work.key, work.kind), now, until, secrets.token_hex(8))
    if piece is not None:
        _save(connection, piece)
    return piece


def extend(connection: Connection, work: Work, until: float) -> bool:
    return _if_held(connection, work, lambda piece: replace(piece, due=until))


def finish(connection: Connection, work: Work, again: float) -> None:
    _if_held(connection, work, lambda piece: rules.finished(piece, work, again))


def postpone(connection: Connection, work: Work, due: float, *, failed: bool) -> None:
    _if_held(connection, work, lambda piece: rules.postponed(piece, due, failed=failed))


def _if_held(connection: Connection, work: Work, change: Callable[[Work], Work | None]) -> bool:
    """Save what ``change`` makes of a piece, or remove the piece if that is None.  False, and no
    change, if the lease of ``work`` has been lost."""
    piece = _find(connection, work.key, work.kind)
    if piece is None or not rules.has_lease(piece, work):
        return False
    left = change(piece)
    if left is None:
        connection.execute(
            "DELETE FROM work WHERE tenant = ? AND session = ? AND kind = ?",
            (piece.tenant, piece.session, piece.kind),
        )
    else:
        _save(connection, left)
    return True


def _find(connection: Connection, key: SessionKey, kind: Kind) -> Work | None:
    row = connection.execute(_FIND, (*key, kind)).fetchone()
    return _piece(row) if row else None


def _save(connection: Connection, piece: Work) -> None:
    connection.execute(_SAVE, astuple(piece))


def _piece(row: Sequence[Any]) -> Work:
    return Work(**dict(zip(Work.__struct_fields__, row, strict=True)))


# Usage

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

_FORGET = "DELETE FROM usage WHERE tenant = ? AND day < ?"

_SPENT = f"""
SELECT {_COLUMNS} FROM usage
WHERE tenant = ? AND day IN (SELECT value FROM json_each(?))
"""

_MOVE_SPENT = f"""
INSERT INTO usage (tenant, {_COLUMNS}) SELECT ?2, {_COLUMNS} FROM usage WHERE tenant = ?1 {_ADDED}
"""


def add_usage(connection: Connection, tenant: str, account: UsageKey, spent: UsageTotals) -> None:
    connection.execute(_SPEND, (tenant, *account, *astuple(spent)))
    oldest = date.fromisoformat(account.day) - timedelta(days=KEPT_DAYS)
    connection.execute(_FORGET, (tenant, oldest.isoformat()))


def usage_of_days(
    connection: Connection, tenant: str, days: Sequence[str]
) -> dict[UsageKey, UsageTotals]:
    rows = connection.execute(_SPENT, (tenant, json.dumps(list(days))))
    return {
        UsageKey(day, feature): UsageTotals(
            **dict(zip(UsageTotals.__struct_fields__, figures, strict=True))
        )
        for day, feature, *figures in rows
    }


def move_spent(connection: Connection, old: str, new: str) -> None:
    """Add a tenant's usage to another's."""
    connection.execute(_MOVE_SPENT, (old, new))
    connection.execute("DELETE FROM usage WHERE tenant = ?", (old,))
