"""Whose the entries of a spool are.  The functions work on a connection inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from proxy.memory.erasure import Subject

# A field of a payload or of its occasion; NULL where the payload is no JSON.
_SAYS = """
CASE WHEN json_valid(CAST(payload AS TEXT)) THEN coalesce(
    json_extract(CAST(payload AS TEXT), '$.{0}'),
    json_extract(CAST(payload AS TEXT), '$.occasion.{0}')) END
"""
_USER, _BEGAN = _SAYS.format("user"), _SAYS.format("exchange.started_at")

# An amendment names nobody: it belongs to whom its exchange does.
_THEIRS = f"""
tenant = :tenant AND (session IN (SELECT value FROM json_each(:sessions)) OR exchange IN
    (SELECT exchange FROM entries WHERE tenant = :tenant AND {_USER} = :user))
"""


class EntryOwner(NamedTuple):
    """A tenant's exchanges in these sessions, and those that name this person ("" is nobody)."""

    tenant: str
    sessions: Collection[str] = ()
    user: str = ""

    @property
    def asked(self) -> dict[str, str | None]:
        sessions = json.dumps(list(self.sessions))
        return {"tenant": self.tenant, "sessions": sessions, "user": self.user or None}


class QuarantinedEntry(NamedTuple):
    """A quarantined entry, and whom it names if it names anybody.

    ``began`` says when its exchange did (Unix seconds), or, where that cannot be read, when it was
    put here, which is later.
    """

    id: int
    exchange: str
    kind: str
    tenant: str
    session: str
    user: str | None
    began: float

    @property
    def subjects(self) -> list[Subject]:
        """Whose erasure it is to go with."""
        conversation = Subject(self.tenant, session=self.session)
        return [conversation, Subject(self.tenant, self.user)] if self.user else [conversation]


def sessions_of(connection: sqlite3.Connection, store: str, tenant: str, user: str) -> list[str]:
    """The sessions for which something waits that names this person."""
    rows = connection.execute(
        "SELECT DISTINCT session FROM entries"
        f" WHERE store = ? AND tenant = ? AND quarantined IS NULL AND {_USER} = ?",
        (store, tenant, user),
    )
    return [row[0] for row in rows]


def quarantined(connection: sqlite3.Connection, store: str) -> list[QuarantinedEntry]:
    """What is quarantined."""
    rows = connection.execute(
        "SELECT id, exchange, kind, tenant, session,"
        f" {_USER}, coalesce({_BEGAN}, created_at) FROM entries"
        " WHERE store = ? AND quarantined IS NOT NULL",
        (store,),
    )
    return [QuarantinedEntry(*row) for row in rows]


def count(connection: sqlite3.Connection, whose: EntryOwner) -> int:
    query = f"SELECT count(DISTINCT exchange) FROM entries WHERE {_THEIRS}"
    return int(connection.execute(query, whose.asked).fetchone()[0])


def remove(connection: sqlite3.Connection, whose: EntryOwner) -> None:
    connection.execute(f"DELETE FROM entries WHERE {_THEIRS}", whose.asked)
