"""Reads and writes the rows of sessions and messages in the SQLite file, and keeps the counts of a
session while a transaction changes it."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from sqlite3 import Connection
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from proxy.memory.archive import PAGE_BYTES, Details, StoredMessage
from proxy.memory.model import Exchange, Position, SessionKey
from proxy.stores.common import codec
from proxy.stores.common.history import FIRST_SEQ, MessagePlace

LIVE = "(s.expires_at IS NULL OR s.expires_at > :now)"

SUMMARY = "(SELECT data FROM summaries WHERE session = s.id ORDER BY version DESC LIMIT 1)"
"""The newest version of a session's summary."""

LONG_TEXT = 8_000
"""Bytes; a longer text is stored in the table of texts: see ``schema``."""


def text_in(column: str) -> str:
    """SQL for a text, in its row or in the table of texts."""
    return f"coalesce((SELECT data FROM texts WHERE id = {column}), {column})"


def _size_of(column: str) -> str:
    """SQL for the size of a text in bytes, without reading it."""
    return f"coalesce((SELECT length(data) FROM texts WHERE id = {column}), length({column}), 0)"


HAS_MESSAGES = """
EXISTS (SELECT 1 FROM messages WHERE session = x.session
        AND seq >= x.first AND seq < x.first + x.size)
"""
"""SQL: whether the exchange x has messages."""

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

STAGED = "\0brought"
"""In place of a tenant: of sessions that are being restored, until they are complete, and of those
that are being removed, until they are gone."""

HEAD = """
s.id, s.owner, s.next, s.messages, s.tokens, s.last, s.ttl, s.expires_at, s.last_active_at,
s.changes
"""
"""SQL: the columns of a Head, of a session s."""

_HEAD = f"SELECT {HEAD} FROM sessions s WHERE tenant = ? AND session = ?"

_NEW_HEAD = """
INSERT INTO sessions (id, tenant, session, created_at, owner, next, messages, tokens, last, ttl,
                      expires_at, last_active_at, changes, system, system_tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_SAVE_HEAD = """
UPDATE sessions SET owner = ?2, next = ?3, messages = ?4, tokens = ?5, last = ?6, ttl = ?7,
                    expires_at = ?8, last_active_at = ?9, changes = ?10,
                    system = coalesce(?11, system),
                    system_tokens = CASE WHEN ?11 IS NULL THEN system_tokens ELSE ?12 END
WHERE id = ?1
"""

_DETAILS = "SELECT title, metadata, ttl, system, system_tokens FROM sessions WHERE id = ?"

_SAVE_DETAILS = """
UPDATE sessions SET title = ?, metadata = ?, system = ?, system_tokens = ? WHERE id = ?
"""

_PARTS = (
    ("messages", "seq", f"{_size_of('body')} + {_size_of('wire')}"),
    ("exchanges", "id", _size_of("record")),
    ("windows", "profile", "0"),
    ("keys", "key", "0"),
    ("summaries", "version", "length(data)"),
)
"""The tables with rows of a session: name, the column that identifies a row, SQL for its bytes."""

REMOVED_ROWS, REMOVED_BYTES = 2_000, 2_000_000
"""Rows and bytes of each table that are removed at once, about: that takes some tens of
milliseconds, since removed data is overwritten."""

REMOVED_AT = 0.0
"""The expiry time of a session that is being removed."""

NO_ROW = 0
"""The id of a head that has no row yet."""

ID_GAP_BITS = 32
"""Bits of the random gap before the id of a restored session."""

System = tuple[bytes | None, int]
"""System messages as JSON, and their tokens; None leaves them unchanged."""

NO_SYSTEM: System = (None, 0)


class Head(msgspec.Struct):
    """What a commit reads and changes of a session; ``id`` is NO_ROW until it has a row.

    Its fields are in the order of the columns in ``HEAD``.
    """

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


def find(connection: Connection, key: SessionKey, now: float) -> int | None:
    """The row id of a session that has not expired."""
    row = connection.execute(ID, (key.tenant, key.session, now)).fetchone()
    return row[0] if row else None


def find_message(
    connection: Connection, session: int, place: MessagePlace | None
) -> PlaceRow | None:
    """Turn, seq, tokens and state of a message, None if history does not have it."""
    if place is None:
        return None
    arguments = {"session": session, "exchange": place.exchange, "index": place.number}
    row: PlaceRow | None = connection.execute(_PLACE, arguments).fetchone()
    return row


def page_in(found: sqlite3.Cursor, limit: int) -> tuple[list[Any], bool]:
    """The rows of a page, of which one more was asked for, and whether there are more."""
    rows: list[Any] = []
    size = 0
    for row in found:
        if len(rows) == limit or (size >= PAGE_BYTES and len(rows) > 1):
            found.close()
            return rows, True
        rows.append(row)
        size += sum([len(text) for text in row if isinstance(text, bytes)])
    return rows, False


def find_head(connection: Connection, key: SessionKey, now: float) -> Head | None:
    return live_head(connection, connection.execute(_HEAD, key).fetchone(), now)


def live_head(connection: Connection, row: Sequence[Any] | None, now: float) -> Head | None:
    """The head from a row; None without a row, and for an expired session, which is removed."""
    head = Head(*row) if row else None
    if head is not None and head.expires_at is not None and head.expires_at <= now:
        remove(connection, head.id)
        return None
    return head


def new_session_head(at: float, ttl: int) -> Head:
    """The head of a session that does not exist yet."""
    return Head(NO_ROW, None, FIRST_SEQ, 0, 0, None, ttl, None, at)


def restored_head(connection: Connection, key: SessionKey, at: float, ttl: int) -> Head:
    """The head of a session that is restored.

    Its row id is never one that a session of this name had: its messages may have been others.
    """
    head = new_session_head(at, ttl)
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM sessions").fetchone()[0]
    head.id = newest + 1 + secrets.randbits(ID_GAP_BITS)
    insert_head(connection, key, head, at)
    return head


def insert_head(
    connection: Connection,
    key: SessionKey,
    head: Head,
    created_at: float,
    system: System = NO_SYSTEM,
) -> None:
    """Insert the row of a session, which sets the id of its head."""
    row = (head.id or None, *key, created_at, *astuple(head)[1:], *system)
    id = connection.execute(_NEW_HEAD, row).lastrowid
    assert id is not None  # always set after an INSERT
    head.id = id


def save_head(connection: Connection, head: Head, system: System = NO_SYSTEM) -> None:
    connection.execute(_SAVE_HEAD, (*astuple(head), *system))


def read_details(connection: Connection, session: int) -> Details:
    return Details(*connection.execute(_DETAILS, (session,)).fetchone())


def save_details(connection: Connection, session: int, details: Details) -> None:
    """All but the ttl, which is the head's."""
    row = (details.title, details.metadata, details.system, details.system_tokens, session)
    connection.execute(_SAVE_DETAILS, row)


def remove(connection: Connection, session: int) -> bool:
    """Remove a session, or a part of a large one; True if nothing is left.

    The rest is invisible, and marked as expired so that ``waste`` removes it part by part.
    """
    if all([_remove_rows(connection, session, *part) for part in _PARTS]):
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
        return True
    mark_removed(connection, session)
    return False


def mark_removed(connection: Connection, session: int) -> None:
    """Mark a session as one that is being removed."""
    connection.execute(
        "UPDATE sessions SET tenant = ?, session = id, owner = NULL, expires_at = ? WHERE id = ?",
        (STAGED, REMOVED_AT, session),
    )


def _remove_rows(connection: Connection, session: int, table: str, entry: str, size: str) -> bool:
    """Remove as many rows as one step may; True if those were all."""
    found = connection.execute(
        f"SELECT {entry}, {size} FROM {table} WHERE session = ? ORDER BY {entry} LIMIT ?",
        (session, REMOVED_ROWS),
    ).fetchall()
    if not found:
        return True
    reached = accumulate(length for _, length in found)
    last = next((n for n, bytes_ in enumerate(reached) if bytes_ >= REMOVED_BYTES), len(found) - 1)
    connection.execute(
        f"DELETE FROM {table} WHERE session = ? AND {entry} <= ?", (session, found[last][0])
    )
    return last + 1 == len(found) < REMOVED_ROWS


ROWS = 64
"""Rows that one statement inserts at most, a power of two: each statement releases the GIL and
waits for it again."""


class Insertion(NamedTuple):
    """The statements that insert rows, by their number: the powers of two up to ``ROWS``."""

    statements: Mapping[int, str]

    @classmethod
    def into(cls, table: str, columns: str) -> Insertion:
        head = f"INSERT INTO {table} ({columns}) VALUES "
        row = f"({', '.join('?' * len(columns.split(',')))})"
        sizes = [1 << power for power in range(ROWS.bit_length())]
        return cls({size: head + ", ".join([row] * size) for size in sizes})

    def run(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        left = iter(rows)
        while some := list(islice(left, ROWS)):
            while some:
                size = 1 << (len(some).bit_length() - 1)
                connection.execute(self.statements[size], list(chain.from_iterable(some[:size])))
                del some[:size]


_MESSAGES = Insertion.into("messages", "session, seq, turn, tokens, active, entry, body, wire")
_EXCHANGES = Insertion.into(
    "exchanges", "session, id, first, size, choices, profile, started_at, created_at, record"
)


def insert_exchanges(
    connection: Connection,
    session: int,
    exchanges: Iterable[tuple[int, Exchange]],
    choices: Container[str],
) -> None:
    """Insert exchanges, each with its first seq; ``choices``: the ids of those with several
    choices."""
    rows = (
        (
            session,
            exchange.id,
            first,
            exchange.size,
            exchange.id in choices,
            exchange.profile,
            exchange.started_at,
            exchange.created_at,
            store_text(connection, codec.encode(exchange)),
        )
        for first, exchange in exchanges
    )
    _EXCHANGES.run(connection, rows)


def insert_messages(connection: Connection, session: int, lines: Iterable[StoredMessage]) -> None:
    rows = (
        (
            session,
            place.seq,
            place.turn,
            card.tokens,
            state == "active",
            codec.encode_entry(place.turn, place.seq, card),
            store_text(connection, body),
            store_text(connection, wire),
        )
        for place, card, state, body, wire in lines
    )
    _MESSAGES.run(connection, rows)


def store_text(connection: Connection, text: bytes | None) -> bytes | int | None:
    """The value of a text's column: itself, or the id of a row in the table of texts if it is
    long."""
    if text is None or len(text) < LONG_TEXT:
        return text
    return connection.execute("INSERT INTO texts (data) VALUES (?)", (text,)).lastrowid


def set_active(
    connection: Connection, head: Head, places: Iterable[MessagePlace], *, active: bool
) -> list[Position]:
    """Set the state of messages; the positions of those that changed."""
    switched = []
    for place in places:
        row = find_message(connection, head.id, place)
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
