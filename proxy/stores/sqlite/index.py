"""The index in the SQLite file: functions of a connection inside a transaction.

A block of postings is full before the next begins, so its number tells how many come before it.  An
index is dropped at once by its name, what it consists of bit by bit.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter

import msgspec

from proxy.recall.index import (
    NO_POSTINGS,
    POSTING_SIZE,
    ROW_SIZE,
    TERM_SIZE,
    IndexBatch,
    IndexMark,
    Look,
    Owner,
    Postings,
    Rows,
)

BLOCK = 160
"""Postings in a block: the most that a page of the tree holds without overflowing to another."""

VECTOR_BLOCK = 16384
"""Bytes of vectors in a block, about; one vector at least."""

_OWNER = """
SELECT id, revision, state, passages, expires_at IS NULL OR expires_at > ? FROM owners
WHERE tenant = ? AND user = ? AND session = ?
"""

# Whether the session of a batch is there, as far as it is of one, and the index.
_BEFORE = """
SELECT :began IS NULL OR EXISTS (
    SELECT 1 FROM sessions WHERE tenant = :tenant AND session = :talk AND created_at = :began
        AND (expires_at IS NULL OR expires_at > :now)
), o.id, o.revision, o.state, o.passages, o.expires_at IS NULL OR o.expires_at > :now
FROM (SELECT 1) LEFT JOIN owners o
    ON o.tenant = :tenant AND o.user = :user AND o.session = :session
"""

_NEWEST = """
SELECT block, data FROM postings WHERE owner = ? AND term = ? ORDER BY block DESC LIMIT ?
"""

# Each statement lets go of the interpreter and waits for it again, behind all that the loop has to
# do: so the postings of a batch come as two texts, of terms and of postings, and a list of places:
# by term where its postings begin, times 65536, plus how many bytes they have.
_TERM = f"substr(:terms, 1 + each.key * {TERM_SIZE}, {TERM_SIZE})"

_LAST = f"SELECT %s FROM postings WHERE owner = :owner AND term = {_TERM}"

# The terms whose newest block has no room for theirs.
_FULL = f"""
SELECT json_group_array(each.key) FROM json_each(:places) AS each
WHERE (each.value & 65535) + coalesce(({_LAST % "length(data)"} ORDER BY block DESC LIMIT 1), 0)
    > {BLOCK * POSTING_SIZE}
"""

# Into the newest block.  WHERE: else SQLite would take ON for a part of a join.
_ADD = f"""
INSERT INTO postings (owner, term, block, data)
SELECT :owner, {_TERM}, coalesce(({_LAST % "max(block)"}), 0),
    substr(:data, 1 + (each.value >> 16), each.value & 65535)
FROM json_each(:places) AS each WHERE each.value
ON CONFLICT (owner, term, block) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)
"""

_ADD_ROWS = f"""
INSERT INTO passages (owner, number, data)
SELECT ?1, ?2 + key, substr(?3, 1 + key * {ROW_SIZE}, {ROW_SIZE}) FROM json_each(?4)
"""

# Its number is the one it had, but where somebody has dropped the session meanwhile.
_MARK = """
INSERT INTO marks (owner, session, number, seq, digest) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (owner, session) DO UPDATE SET seq = ?4, digest = ?5 WHERE number = ?3
"""

# With all blocks of each term that may hold one of its newest postings, of those terms that have
# any: joined, and as JSON the term, the number and the bytes of each.  As one row, see above.
_LOOK = """
WITH known AS (
    SELECT id, revision, state, expires_at IS NULL AS lasts
    FROM owners WHERE tenant = ? AND user = ? AND session = ?
        AND (expires_at IS NULL OR expires_at > ?)
), asked(place, term) AS (VALUES {}),
found AS (
    SELECT place, p.block AS block, p.data AS data FROM known CROSS JOIN asked
    CROSS JOIN postings p ON p.owner = known.id AND p.term = asked.term AND p.block >= (
        SELECT max(block) FROM postings WHERE owner = known.id AND term = asked.term
    ) - ?
    ORDER BY place, p.block
)
SELECT revision, state, m.number, m.seq, m.digest, blocks, data, lasts FROM known
LEFT JOIN marks m ON m.owner = known.id AND m.session = ?
CROSS JOIN (
    SELECT json_group_array(json_array(place, block, length(data))) AS blocks,
        CAST(group_concat(data, '') AS BLOB) AS data FROM found
)
"""

# CROSS JOIN: what is asked for comes first, and each is looked up.
ROWS = """
SELECT p.number AS number, p.data AS data FROM json_each(?) AS asked
CROSS JOIN passages p ON p.owner = ? AND p.number = asked.value
"""

# As one row, for each that is fetched waits for the interpreter: see read.py.
_JOINED_ROWS = f"""
SELECT CAST(group_concat(data, '') AS BLOB), group_concat(number) FROM ({ROWS})
"""

_NAMES = """
SELECT m.number, m.session FROM json_each(?) AS asked
CROSS JOIN marks m ON m.owner = ? AND m.number = asked.value
"""

_NEW = """
INSERT INTO owners (tenant, user, session, revision, state, passages, expires_at)
VALUES (?, ?, ?, 1, ?, ?, ?)
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


_blocks = msgspec.json.Decoder(list[tuple[int, int, int]])


class IndexRow(msgspec.Struct, frozen=True):
    """The row of an index in the table of owners."""

    id: int
    revision: int = 0
    state: bytes = b""
    passages: int = 0


def find(connection: sqlite3.Connection, owner: Owner, now: float) -> IndexRow | None:
    row = connection.execute(_OWNER, (now, *owner)).fetchone()
    return IndexRow(*row[:4]) if row and row[4] else None


# Reading


def look(
    connection: sqlite3.Connection,
    now: float,
    owner: Owner,
    terms: Sequence[bytes],
    newest: int,
    session: str = "",
) -> tuple[Look, bool]:
    """A look, and whether the index is there for as long as nobody drops it."""
    asked: list[object] = [part for numbered in enumerate(terms) for part in numbered]
    asked = asked or [None, None]
    row = connection.execute(
        _LOOK.format(",".join(["(?,?)"] * (len(asked) // 2))),
        # The newest block may hold a single posting.
        (*owner, now, *asked, newest // BLOCK + 1, session),
    ).fetchone()
    if row is None:
        return Look(postings=(NO_POSTINGS,) * len(terms)), False
    revision, state, number, seq, digest, blocks, data, lasts = row
    postings = _postings(len(terms), _blocks.decode(blocks), data or b"", newest)
    mark = None if number is None else IndexMark(number, seq, digest)
    return Look(revision, state, postings, mark), bool(lasts)


def _postings(
    count: int, blocks: Sequence[tuple[int, int, int]], data: bytes, newest: int
) -> tuple[Postings, ...]:
    """Of each term, from the number of the term, the number and the bytes of each block."""
    postings, end = [NO_POSTINGS] * count, 0
    for place, theirs in groupby(blocks, itemgetter(0)):
        begin = end
        for _, block, size in theirs:
            end, full = end + size, block * BLOCK + size // POSTING_SIZE
        postings[place] = Postings(full, data[max(begin, end - newest * POSTING_SIZE) : end])
    return tuple(postings)


def rows(connection: sqlite3.Connection, now: float, owner: Owner, numbers: Sequence[int]) -> Rows:
    index = find(connection, owner, now)
    if index is None:
        return Rows(bytes(ROW_SIZE * len(numbers)))
    wanted = (json.dumps(list(numbers)), index.id)
    data, there = connection.execute(_JOINED_ROWS, wanted).fetchone()
    if there != ",".join(map(str, numbers)):
        data = _filled(numbers, data or b"", there or "")
    sessions = {int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), ROW_SIZE)}
    return Rows(data, dict(connection.execute(_NAMES, (json.dumps(list(sessions)), index.id))))


def _filled(numbers: Sequence[int], data: bytes, there: str) -> bytes:
    """The rows of these numbers, where only some of them are ``there``."""
    found = {
        int(number): data[place * ROW_SIZE : (place + 1) * ROW_SIZE]
        for place, number in enumerate(there.split(",") if there else ())
    }
    return b"".join([found.get(number, bytes(ROW_SIZE)) for number in numbers])


def vectors(
    connection: sqlite3.Connection,
    now: float,
    owner: Owner,
    model: str,
    size: int,
    first: int,
    last: int,
) -> bytes:
    index = find(connection, owner, now)
    if index is None or last <= first:
        return b""
    per = _per_block(size)
    begin, end = first // per, (last - 1) // per + 1
    blocks = (_vector_block(connection, index.id, n, model, size) for n in range(begin, end))
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


def write(connection: sqlite3.Connection, now: float, owner: Owner, batch: IndexBatch) -> bool:
    named = {**owner._asdict(), "now": now, "talk": batch.session, "began": batch.began}
    there, *row, lives = connection.execute(_BEFORE, named).fetchone()
    index = IndexRow(*row) if row[0] and lives else IndexRow(0)
    if not there or (index.revision, index.passages) != (batch.revision, batch.first):
        return False
    if row[0] and not index.id:
        discard(connection, row[0])  # it has expired
    count = len(batch.rows) // ROW_SIZE
    written = (batch.state, count, now + batch.ttl if batch.ttl else None)
    if index.id:
        connection.execute(_SAVE, (index.id, *written))
    id = index.id or connection.execute(_NEW, (*owner, *written)).lastrowid
    assert id is not None  # always set after an INSERT
    _append_all(connection, id, batch.postings, new=not index.id)
    if count:
        connection.execute(_ADD_ROWS, (id, batch.first, batch.rows, json.dumps([0] * count)))
    if batch.mark is not None:
        _mark(connection, (id, batch.session, *batch.mark))
    return True


def _mark(connection: sqlite3.Connection, mark: tuple[int, str, int, int, int]) -> None:
    if not connection.execute(_MARK, mark).rowcount:
        connection.execute("DELETE FROM marks WHERE owner = ? AND session = ?", mark[:2])
        connection.execute(_MARK, mark)


def _append_all(
    connection: sqlite3.Connection, owner: int, postings: Mapping[bytes, bytes], *, new: bool
) -> None:
    if not postings:
        return
    terms = sorted(postings)  # neighbours lie on one page
    sizes = [len(postings[term]) for term in terms]
    begins = accumulate(sizes, initial=0)
    # What is larger than 65535 does not fit into a block either.
    places = [begin << 16 | min(n, 65535) for begin, n in zip(begins, sizes, strict=False)]
    named = {
        "owner": owner,
        "terms": b"".join(terms),
        "data": b"".join([postings[term] for term in terms]),
        "places": json.dumps(places),
    }
    if not new or max(sizes) > BLOCK * POSTING_SIZE:
        full = json.loads(connection.execute(_FULL, named).fetchone()[0])
        for place in full:
            _append(connection, owner, terms[place], postings[terms[place]])
            places[place] = 0
        named["places"] = json.dumps(places)
    connection.execute(_ADD, named)


def _append(connection: sqlite3.Connection, owner: int, term: bytes, data: bytes) -> None:
    """Fill the newest block, and begin others."""
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
    now: float,
    owner: Owner,
    model: str,
    size: int,
    vectors: Mapping[int, bytes],
) -> None:
    index = find(connection, owner, now)
    if index is None:
        return
    per = _per_block(size)
    for block in sorted({number // per for number in vectors}):
        data = bytearray(_vector_block(connection, index.id, block, model, size))
        data.extend(bytes(per * size - len(data)))
        for number in range(block * per, block * per + per):
            if number in vectors:
                at = (number - block * per) * size
                data[at : at + size] = vectors[number]
        connection.execute(_PUT_VECTORS, (index.id, block, model, size, bytes(data)))


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


def drop_session(connection: sqlite3.Connection, now: float, owner: Owner, session: str) -> None:
    index = find(connection, owner, now)
    if index is None:
        return
    # A batch made from an earlier look must not bring the session back.
    connection.execute("UPDATE owners SET revision = revision + 1 WHERE id = ?", (index.id,))
    connection.execute("DELETE FROM marks WHERE owner = ? AND session = ?", (index.id, session))


# Removing bit by bit what is forgotten

SWEPT_AT_ONCE = 100
"""Entries of dropped indexes that go with each commit, so that it does not wait long for them."""

SWEPT_IN_A_STEP = 5000
"""Those that go in one transaction where somebody waits for them all to be gone."""

_PARTS = (
    ("postings", "term", 1),
    ("passages", "number", 1),
    ("vectors", "block", 16),
    ("marks", "session", 1),
)
"""The tables of an index, what their entries are called within an owner's, and how much each counts
for: blocks of vectors are large."""


def discard(connection: sqlite3.Connection, id: int) -> None:
    """Make an owner's index waste."""
    connection.execute("DELETE FROM owners WHERE id = ?", (id,))
    connection.execute("INSERT INTO waste (owner) VALUES (?)", (id,))


def discard_expired(connection: sqlite3.Connection, now: float, limit: int) -> None:
    expired = connection.execute(
        "SELECT id FROM owners WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (id,) in expired:
        discard(connection, id)


def sweep(connection: sqlite3.Connection, limit: int = SWEPT_IN_A_STEP) -> bool:
    """Remove about ``limit`` entries of waste; whether there may be more."""
    row = connection.execute("SELECT owner FROM waste LIMIT 1").fetchone()
    if row is None:
        return False
    for table, entry, weight in _PARTS:
        removed = connection.execute(
            f"DELETE FROM {table} WHERE owner = ?1 AND {entry} IN "
            f"(SELECT {entry} FROM {table} WHERE owner = ?1 LIMIT ?2)",
            (row[0], limit // weight),
        )
        if removed.rowcount:
            return True
    connection.execute("DELETE FROM waste WHERE owner = ?", row)
    return True
