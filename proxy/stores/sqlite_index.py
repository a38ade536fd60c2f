"""The index in the SQLite file: functions of a connection inside a transaction.

A block of postings is full before the next begins, so its number tells how many come before it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.recall.index import (
    NO_POSTINGS,
    POSTING_SIZE,
    ROW_SIZE,
    Batch,
    Look,
    Mark,
    Owner,
    Postings,
    Rows,
)
from proxy.stores.sqlite_waste import discard

BLOCK = 160
"""Postings in a block: the most that a page of the tree holds without overflowing to another."""

VECTOR_BLOCK = 16384
"""Bytes of vectors in a block, about; one vector at least."""

_OWNER = """
SELECT id, revision, state, passages, expires_at IS NULL OR expires_at > ? FROM owners
WHERE tenant = ? AND user = ? AND session = ?
"""

_NEWEST = """
SELECT block, data FROM postings WHERE owner = ? AND term = ? ORDER BY block DESC LIMIT ?
"""

# CROSS JOIN: what is asked for comes first, and each is looked up.
ROWS = """
SELECT p.number, p.data FROM json_each(?) AS asked
CROSS JOIN passages p ON p.owner = ? AND p.number = asked.value
"""

_NAMES = """
SELECT m.number, m.session FROM json_each(?) AS asked
CROSS JOIN marks m ON m.owner = ? AND m.number = asked.value
"""

# An index's life is never shortened (the max with NULL, for ever, is NULL): other sessions of the
# person may live longer than the one that is written.  A batch without rows tells nothing of that,
# and before the first row nothing is known.
_SAVE = """
UPDATE owners SET revision = revision + 1, state = ?2, passages = passages + ?3,
    expires_at = CASE
        WHEN passages = 0 AND (?3 > 0 OR revision = 0) THEN ?4
        WHEN ?3 > 0 THEN max(expires_at, ?4)
        ELSE expires_at
    END
WHERE id = ?1
"""

_VECTORS = """
SELECT data FROM vectors WHERE owner = ? AND block = ? AND model = ? AND size = ?
"""

_PUT_VECTORS = """
INSERT INTO vectors (owner, block, model, size, data) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (owner, block, model, size) DO UPDATE SET data = ?5
"""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The row of an owner."""

    id: int
    revision: int = 0
    state: bytes = b""
    passages: int = 0


def find(connection: sqlite3.Connection, owner: Owner, now: float) -> Shelf | None:
    row = connection.execute(_OWNER, (now, *owner)).fetchone()
    return Shelf(*row[:4]) if row and row[4] else None


# Reading


def look(
    connection: sqlite3.Connection,
    owner: Owner,
    terms: Sequence[bytes],
    newest: int,
    session: str,
    now: float,
) -> Look:
    shelf = find(connection, owner, now)
    if shelf is None:
        return Look(postings=(NO_POSTINGS,) * len(terms))
    mark = connection.execute(
        "SELECT number, seq, digest FROM marks WHERE owner = ? AND session = ?", (shelf.id, session)
    ).fetchone()
    postings = tuple(_postings(connection, shelf.id, term, newest) for term in terms)
    return Look(shelf.revision, shelf.state, postings, Mark(*mark) if mark else None)


def _postings(connection: sqlite3.Connection, owner: int, term: bytes, newest: int) -> Postings:
    # The newest block may hold a single posting.
    blocks = connection.execute(_NEWEST, (owner, term, newest // BLOCK + 2)).fetchall()
    if not blocks:
        return NO_POSTINGS
    data = b"".join([data for _, data in reversed(blocks)])
    count = blocks[0][0] * BLOCK + len(blocks[0][1]) // POSTING_SIZE
    return Postings(count, data[max(0, len(data) - newest * POSTING_SIZE) :])


def rows(connection: sqlite3.Connection, owner: Owner, numbers: Sequence[int], now: float) -> Rows:
    shelf = find(connection, owner, now)
    if shelf is None:
        return Rows(bytes(ROW_SIZE * len(numbers)))
    found = dict(connection.execute(ROWS, (json.dumps(list(numbers)), shelf.id)))
    data = b"".join([found.get(number, bytes(ROW_SIZE)) for number in numbers])
    sessions = {int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), ROW_SIZE)}
    return Rows(data, dict(connection.execute(_NAMES, (json.dumps(list(sessions)), shelf.id))))


def vectors(
    connection: sqlite3.Connection,
    owner: Owner,
    model: str,
    size: int,
    first: int,
    last: int,
    now: float,
) -> bytes:
    shelf = find(connection, owner, now)
    if shelf is None or last <= first:
        return b""
    per = _per_block(size)
    begin, end = first // per, (last - 1) // per + 1
    blocks = (_vector_block(connection, shelf.id, n, model, size) for n in range(begin, end))
    data = b"".join([block.ljust(per * size, b"\0") for block in blocks])
    return data[(first - begin * per) * size : (last - begin * per) * size]


def _vector_block(
    connection: sqlite3.Connection, owner: int, block: int, model: str, size: int
) -> bytes:
    row = connection.execute(_VECTORS, (owner, block, model, size)).fetchone()
    return row[0] if row else b""


def _per_block(size: int) -> int:
    return max(1, VECTOR_BLOCK // size)


# Writing


def write(connection: sqlite3.Connection, owner: Owner, batch: Batch, now: float) -> bool:
    shelf = find(connection, owner, now) or Shelf(0)
    if (shelf.revision, shelf.passages) != (batch.revision, batch.first):
        return False
    id = shelf.id or _new(connection, owner)
    for term, data in batch.postings.items():
        _append(connection, id, term, data)
    cut = [batch.rows[at : at + ROW_SIZE] for at in range(0, len(batch.rows), ROW_SIZE)]
    connection.executemany(
        "INSERT INTO passages (owner, number, data) VALUES (?, ?, ?)",
        [(id, number, row) for number, row in enumerate(cut, batch.first)],
    )
    if batch.mark is not None:
        connection.execute(
            "INSERT OR REPLACE INTO marks (owner, session, number, seq, digest) "
            "VALUES (?, ?, ?, ?, ?)",
            (id, batch.session, *batch.mark),
        )
    expires_at = now + batch.ttl if batch.ttl else None
    connection.execute(_SAVE, (id, batch.state, len(cut), expires_at))
    return True


def _new(connection: sqlite3.Connection, owner: Owner) -> int:
    drop(connection, owner)  # one that has expired
    cursor = connection.execute(
        "INSERT INTO owners (tenant, user, session, revision, state, passages) "
        "VALUES (?, ?, ?, 0, x'', 0)",
        owner,
    )
    assert cursor.lastrowid is not None  # always set after an INSERT
    return cursor.lastrowid


def _append(connection: sqlite3.Connection, owner: int, term: bytes, data: bytes) -> None:
    block, begun = connection.execute(_NEWEST, (owner, term, 1)).fetchone() or (0, b"")
    data = begun + data
    width = BLOCK * POSTING_SIZE
    blocks = (data[at : at + width] for at in range(0, len(data), width))
    connection.executemany(
        "INSERT OR REPLACE INTO postings (owner, term, block, data) VALUES (?, ?, ?, ?)",
        [(owner, term, number, part) for number, part in enumerate(blocks, block)],
    )


def put_vectors(
    connection: sqlite3.Connection,
    owner: Owner,
    model: str,
    size: int,
    vectors: Mapping[int, bytes],
    now: float,
) -> None:
    shelf = find(connection, owner, now)
    if shelf is None:
        return
    per = _per_block(size)
    for block in sorted({number // per for number in vectors}):
        data = bytearray(_vector_block(connection, shelf.id, block, model, size))
        data.extend(bytes(per * size - len(data)))
        for number in range(block * per, block * per + per):
            if number in vectors:
                at = (number - block * per) * size
                data[at : at + size] = vectors[number]
        connection.execute(_PUT_VECTORS, (shelf.id, block, model, size, bytes(data)))


# Forgetting


def drop(connection: sqlite3.Connection, owner: Owner) -> None:
    """Forget an index at once; what it consists of is waste."""
    found = connection.execute(
        "SELECT id FROM owners WHERE tenant = ? AND user = ? AND session = ?", owner
    ).fetchone()
    if found:
        discard(connection, found[0])


def drop_tenant(connection: sqlite3.Connection, tenant: str) -> None:
    ids = connection.execute("SELECT id FROM owners WHERE tenant = ?", (tenant,)).fetchall()
    for (id,) in ids:
        discard(connection, id)


def drop_session(connection: sqlite3.Connection, owner: Owner, session: str, now: float) -> None:
    shelf = find(connection, owner, now)
    if shelf is None:
        return
    # A batch made from an earlier look must not bring the session back.
    connection.execute("UPDATE owners SET revision = revision + 1 WHERE id = ?", (shelf.id,))
    connection.execute("DELETE FROM marks WHERE owner = ? AND session = ?", (shelf.id, session))
