"""Putting a session back into the SQLite file, inside BEGIN IMMEDIATE."""

from __future__ import annotations

import sqlite3

from proxy.memory.archive import Archived
from proxy.memory.model import SessionKey
from proxy.memory.summary import MOST_VERSIONS
from proxy.stores import codec
from proxy.stores.restoring import Restored, restored
from proxy.stores.sqlite_head import Head, find_head, new_head, save_details, save_head
from proxy.stores.sqlite_messages import insert_exchange, insert_messages


def restore(
    connection: sqlite3.Connection, key: SessionKey, archived: Archived, now: float
) -> bool:
    if find_head(connection, key, now) is not None:
        return False
    known = restored(archived)
    session = archived.session
    head = new_head(connection, key, session.created_at, session.details.ttl)
    _fill(head, archived, known, now)
    save_head(connection, head)
    save_details(connection, head.id, session.details)
    for placed in archived.exchanges:
        choices = placed.exchange.id in known.choices
        insert_exchange(connection, head.id, placed.first, placed.exchange, choices=choices)
    insert_messages(connection, head.id, archived.lines)
    _keep(connection, head, archived)
    return True


def _fill(head: Head, archived: Archived, known: Restored, now: float) -> None:
    session = archived.session
    head.owner = session.user or None
    head.next, head.last = known.next, known.last
    head.messages, head.tokens = known.messages, known.tokens
    head.expires_at = now + head.ttl if head.ttl else None
    head.last_active_at = session.last_active_at


def _keep(connection: sqlite3.Connection, head: Head, archived: Archived) -> None:
    """What memory keeps of the history."""
    connection.executemany(
        "INSERT INTO windows (session, profile, turn, seq) VALUES (?, ?, ?, ?)",
        [(head.id, profile, *start) for profile, start in archived.session.windows.items()],
    )
    connection.executemany(
        "INSERT INTO summaries (session, version, data) VALUES (?, ?, ?)",
        [(head.id, x.version, codec.encode(x)) for x in archived.summaries[:MOST_VERSIONS]],
    )
