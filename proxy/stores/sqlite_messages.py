"""The rows of exchanges and messages, and the counts of their session, in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from proxy.memory.archive import Line
from proxy.memory.model import Exchange, Position
from proxy.stores import codec
from proxy.stores.places import Place
from proxy.stores.sqlite_head import Head
from proxy.stores.sqlite_read import look_up

_INSERT_MESSAGE = """
INSERT INTO messages (session, seq, turn, tokens, active, entry, body, wire)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

_INSERT_EXCHANGE = """
INSERT INTO exchanges (session, id, first, size, choices, profile, started_at, created_at, record)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert_exchange(
    connection: sqlite3.Connection, session: int, first: int, exchange: Exchange, *, choices: bool
) -> None:
    row = (
        session,
        exchange.id,
        first,
        exchange.size,
        choices,
        exchange.profile,
        exchange.started_at,
        exchange.created_at,
        codec.encode(exchange),
    )
    connection.execute(_INSERT_EXCHANGE, row)


def insert_messages(connection: sqlite3.Connection, session: int, lines: Iterable[Line]) -> None:
    rows = (
        (
            session,
            seq,
            turn,
            card.tokens,
            state == "active",
            codec.encode_entry(turn, seq, card),
            body,
            wire,
        )
        for (turn, seq), card, state, body, wire in lines
    )
    connection.executemany(_INSERT_MESSAGE, rows)


def switch(
    connection: sqlite3.Connection, head: Head, places: Iterable[Place], *, active: bool
) -> list[Position]:
    """Where the messages stand whose state has changed."""
    switched = []
    for place in places:
        row = look_up(connection, head.id, place)
        if row is None or bool(row[3]) == active:
            continue
        connection.execute(
            "UPDATE messages SET active = ? WHERE session = ? AND seq = ?",
            (active, head.id, row[1]),
        )
        head.messages += 1 if active else -1
        head.tokens += row[2] if active else -row[2]
        switched.append(Position(row[0], row[1]))
    head.changes += len(switched)
    return switched
