"""The row of a session while a transaction works on it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from proxy.memory.archive import Details
from proxy.memory.model import SessionKey
from proxy.stores.places import FIRST_SEQ
from proxy.stores.sqlite_erase import remove

STAGED = "\0brought"
"""No tenant: what is being put back stands under this name until it is complete."""

_HEAD = """
SELECT id, owner, next, messages, tokens, last, ttl, expires_at, last_active_at, changes
FROM sessions WHERE tenant = ? AND session = ?
"""

_NEW_HEAD = """
INSERT INTO sessions (tenant, session, system_tokens, next, messages, tokens, ttl, created_at,
                      last_active_at)
VALUES (?, ?, 0, ?, 0, 0, 0, ?, ?)
"""

_SAVE_HEAD = """
UPDATE sessions SET owner = ?, next = ?, messages = ?, tokens = ?, last = ?, ttl = ?,
                    expires_at = ?, last_active_at = ?, changes = ?
WHERE id = ?
"""

_DETAILS = "SELECT title, metadata, ttl, system, system_tokens FROM sessions WHERE id = ?"

_SAVE_DETAILS = """
UPDATE sessions SET title = ?, metadata = ?, system = ?, system_tokens = ? WHERE id = ?
"""


@dataclass(slots=True)
class Head:
    """What a commit reads and changes of it."""

    id: int
    owner: str | None
    next: int
    messages: int
    tokens: int
    last: str | None
    ttl: int
    expires_at: float | None
    last_active_at: float
    changes: int = 0


def find_head(connection: sqlite3.Connection, key: SessionKey, now: float) -> Head | None:
    row = connection.execute(_HEAD, key).fetchone()
    head = Head(*row) if row else None
    if head is not None and head.expires_at is not None and head.expires_at <= now:
        remove(connection, head.id)
        return None
    return head


def new_head(connection: sqlite3.Connection, key: SessionKey, at: float, ttl: int) -> Head:
    cursor = connection.execute(_NEW_HEAD, (*key, FIRST_SEQ, at, at))
    assert cursor.lastrowid is not None  # always set after an INSERT
    return Head(cursor.lastrowid, None, FIRST_SEQ, 0, 0, None, ttl, None, at)


def save_head(connection: sqlite3.Connection, head: Head) -> None:
    connection.execute(
        _SAVE_HEAD,
        (
            head.owner,
            head.next,
            head.messages,
            head.tokens,
            head.last,
            head.ttl,
            head.expires_at,
            head.last_active_at,
            head.changes,
            head.id,
        ),
    )


def read_details(connection: sqlite3.Connection, session: int) -> Details:
    return Details(*connection.execute(_DETAILS, (session,)).fetchone())


def save_details(connection: sqlite3.Connection, session: int, details: Details) -> None:
    """All but the ttl, which is the head's."""
    row = (details.title, details.metadata, details.system, details.system_tokens, session)
    connection.execute(_SAVE_DETAILS, row)
