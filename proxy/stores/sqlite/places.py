"""Where sessions and messages stand in the SQLite file: what statements have in common."""

from __future__ import annotations

import sqlite3

from proxy.memory.model import SessionKey
from proxy.stores.common.history import MessagePlace

LIVE = "(s.expires_at IS NULL OR s.expires_at > :now)"

SUMMARY = "(SELECT data FROM summaries WHERE session = s.id ORDER BY version DESC LIMIT 1)"
"""The version in force."""

HAS_MESSAGES = """
EXISTS (SELECT 1 FROM messages WHERE session = x.session
        AND seq >= x.first AND seq < x.first + x.size)
"""
"""Of an exchange x."""

_PLACE = """
SELECT m.turn, m.seq, m.tokens, m.active FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq = x.first + :index
WHERE x.session = :session AND x.id = :exchange AND :index < x.size
"""

ID = f"SELECT s.id FROM sessions s WHERE s.tenant = ? AND s.session = ? AND {LIVE}".replace(
    ":now", "?"
)

PlaceRow = tuple[int, int, int, int]
"""turn, seq, tokens, active"""


def find(connection: sqlite3.Connection, key: SessionKey, now: float) -> int | None:
    """The row id of a session that has not expired."""
    row = connection.execute(ID, (key.tenant, key.session, now)).fetchone()
    return row[0] if row else None


def look_up(
    connection: sqlite3.Connection, session: int, place: MessagePlace | None
) -> PlaceRow | None:
    """Turn, seq, tokens and state of a message, None if history does not have it."""
    if place is None:
        return None
    arguments = {"session": session, "exchange": place.exchange, "index": place.number}
    row: PlaceRow | None = connection.execute(_PLACE, arguments).fetchone()
    return row
