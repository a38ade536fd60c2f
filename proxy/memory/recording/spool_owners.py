"""Finds the spool's entries of an owner: functions of a connection inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from proxy.memory.erasure import Subject

# A field of a payload or of its occasion; NULL where the payload is no JSON.
_PAYLOAD_FIELD = """
CASE WHEN json_valid(CAST(payload AS TEXT)) THEN coalesce(
    json_extract(CAST(payload AS TEXT), '$.{0}'),
    json_extract(CAST(payload AS TEXT), '$.occasion.{0}')) END
"""
_USER, _BEGAN = _PAYLOAD_FIELD.format("user"), _PAYLOAD_FIELD.format("exchange.started_at")

# An amendment names no user: it belongs to the owner of its exchange.
_OF_OWNER = f"""
tenant = :tenant AND (session IN (SELECT value FROM json_each(:sessions)) OR exchange IN
    (SELECT exchange FROM entries WHERE tenant = :tenant AND {_USER} = :user))
"""


class EntryOwner(NamedTuple):
    """Selects a tenant's exchanges in these sessions, and those that name this user ("" is
    nobody)."""

    tenant: str
    sessions: Collection[str] = ()
    user: str = ""

    @property
    def parameters(self) -> dict[str, str | None]:
        sessions = json.dumps(list(self.sessions))
        return {"tenant": self.tenant, "sessions": sessions, "user": self.user or None}


class QuarantinedEntry(NamedTuple):
    """A quarantined entry and the user that it names, if any.

    ``began`` is the start of its exchange (Unix seconds) or, if that cannot be read, the later time
    at which the entry was added.
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
        """The session, and the user if any: erasing one of them removes the entry."""
        conversation = Subject(self.tenant, session=self.session)
        return [conversation, Subject(self.tenant, self.user)] if self.user else [conversation]


def sessions_of(connection: sqlite3.Connection, store: str, tenant: str, user: str) -> list[str]:
    """The sessions with waiting entries that name this user."""
    rows = connection.execute(
        "SELECT DISTINCT session FROM entries"
        f" WHERE store = ? AND tenant = ? AND quarantined IS NULL AND {_USER} = ?",
        (store, tenant, user),
    )
    return [row[0] for row in rows]


def quarantined(connection: sqlite3.Connection, store: str) -> list[QuarantinedEntry]:
    rows = connection.execute(
        "SELECT id, exchange, kind, tenant, session,"
        f" {_USER}, coalesce({_BEGAN}, created_at) FROM entries"
        " WHERE store = ? AND quarantined IS NOT NULL",
        (store,),
    )
    return [QuarantinedEntry(*row) for row in rows]


def count(connection: sqlite3.Connection, whose: EntryOwner) -> int:
    query = f"SELECT count(DISTINCT exchange) FROM entries WHERE {_OF_OWNER}"
    return int(connection.execute(query, whose.parameters).fetchone()[0])


def remove(connection: sqlite3.Connection, whose: EntryOwner) -> None:
    connection.execute(f"DELETE FROM entries WHERE {_OF_OWNER}", whose.parameters)
