"""Writing the index in the SQLite file: functions of a connection inside a transaction.

Dropping an index removes its row at once; its postings, passages, vectors and marks are removed in
steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from sqlite3 import Connection

from proxy.recall.index import POSTING_SIZE, ROW_SIZE, TERM_SIZE, IndexBatch, Owner
from proxy.stores.sqlite.index.reading import BLOCK, IndexRow, find

# Whether the batch's session, if it has one, exists; and the row of the index.
_BEFORE = """
SELECT :began IS NULL OR EXISTS (
    SELECT 1 FROM sessions WHERE tenant = :tenant AND session = :talk AND created_at = :began
        AND (expires_at IS NULL OR expires_at > :now)
), o.id, o.revision, o.passages, o.expires_at IS NULL OR o.expires_at > :now
FROM (SELECT 1) LEFT JOIN owners o
    ON o.tenant = :tenant AND o.user = :user AND o.session = :session
"""

_NEWEST = """
SELECT block, data FROM postings WHERE owner = ? AND term = ? ORDER BY block DESC LIMIT 1
"""

# Each statement releases the GIL and waits for it again, behind everything that the loop has to do:
# so a batch is passed as two texts, of all terms and of all postings, and a list with a number for
# each term: where its postings begin, times 65536, plus their length in bytes.
_TERM = f"substr(:terms, 1 + each.key * {TERM_SIZE}, {TERM_SIZE})"

_LAST = f"SELECT %s FROM postings WHERE owner = :owner AND term = {_TERM}"

# The terms whose new postings do not fit into their newest block.
_FULL = f"""
SELECT json_group_array(each.key) FROM json_each(:places) AS each
WHERE (each.value & 65535) + coalesce(({_LAST % "length(data)"} ORDER BY block DESC LIMIT 1), 0)
    > {BLOCK * POSTING_SIZE}
"""

# Append to the newest block.  WHERE: else SQLite would parse ON as part of a join.
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

# The number stays the same, unless the session was dropped meanwhile.
_MARK = """
INSERT INTO marks (owner, session, number, seq, digest) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (owner, session) DO UPDATE SET seq = ?4, digest = ?5 WHERE number = ?3
"""

_NEW = """
INSERT INTO owners (tenant, user, session, revision, state, passages, expires_at)
VALUES (?, ?, ?, 1, ?, ?, ?)
"""

# The time to live is never shortened (NULL is for ever, and max with NULL is NULL): other sessions
# of the owner may live longer than the batch's.  A batch without rows does not change it; the first
# row sets it.
_SAVE = """
UPDATE owners SET revision = revision + 1, state = ?2, passages = passages + ?3,
    expires_at = CASE
        WHEN passages = 0 AND (?3 > 0 OR revision = 0) THEN ?4
        WHEN ?3 > 0 THEN max(expires_at, ?4)
        ELSE expires_at
    END
WHERE id = ?1
"""

_LASTS = "SELECT id, expires_at FROM owners WHERE tenant = ? AND user = ? AND session = ?"

_KEPT = """
INSERT INTO owners (tenant, user, session, revision, state, passages, expires_at)
VALUES (?, ?, ?, 0, ?, 0, ?)
"""

_SET_LIFE = """
UPDATE owners SET expires_at = CASE WHEN user = '' THEN ?5 ELSE max(expires_at, ?5) END
WHERE tenant = ?1 AND user = ?2 AND session = ?3 AND ifnull(expires_at > ?4, TRUE)
"""


def write(connection: Connection, now: float, owner: Owner, batch: IndexBatch) -> bool:
    named = {
        **owner._asdict(),
        "now": now,
        "talk": batch.session,
        "began": batch.session_created_at,
    }
    there, *row, is_alive = connection.execute(_BEFORE, named).fetchone()
    index = IndexRow(*row) if row[0] and is_alive else IndexRow(0)
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


def set_life(connection: Connection, now: float, owner: Owner, ttl: int) -> None:
    """Let an index live at least so long (s) from now on, 0 for ever; a session's no longer."""
    connection.execute(_SET_LIFE, (*owner, now, now + ttl if ttl else None))


def _mark(connection: Connection, mark: tuple[int, str, int, int, int]) -> None:
    if not connection.execute(_MARK, mark).rowcount:
        connection.execute("DELETE FROM marks WHERE owner = ? AND session = ?", mark[:2])
        connection.execute(_MARK, mark)


def _append_all(
    connection: Connection, owner: int, postings: Mapping[bytes, bytes], *, new: bool
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


def _append(connection: Connection, owner: int, term: bytes, data: bytes) -> None:
    """Fill the newest block, and begin others."""
    block, begun = connection.execute(_NEWEST, (owner, term)).fetchone() or (0, b"")
    data = begun + data
    width = BLOCK * POSTING_SIZE
    blocks = (data[at : at + width] for at in range(0, len(data), width))
    connection.executemany(
        "INSERT OR REPLACE INTO postings (owner, term, block, data) VALUES (?, ?, ?, ?)",
        [(owner, term, number, part) for number, part in enumerate(blocks, block)],
    )


# Dropping


def drop(connection: Connection, owner: Owner, state: bytes = b"") -> None:
    """Drop an index, but keep ``state`` if given; the rest is left to ``sweep``."""
    found = connection.execute(_LASTS, owner).fetchone()
    if found:
        discard(connection, found[0])
        if state:
            connection.execute(_KEPT, (*owner, state, found[1]))


def drop_tenant(connection: Connection, tenant: str) -> None:
    ids = connection.execute("SELECT id FROM owners WHERE tenant = ?", (tenant,)).fetchall()
    for (id,) in ids:
        discard(connection, id)


def drop_session(connection: Connection, now: float, owner: Owner, session: str) -> None:
    index = find(connection, owner, now)
    if index is None:
        return
    # A batch made from an earlier lookup must not bring the session back.
    connection.execute("UPDATE owners SET revision = revision + 1 WHERE id = ?", (index.id,))
    connection.execute("DELETE FROM marks WHERE owner = ? AND session = ?", (index.id, session))


# Removing dropped indexes in steps

SWEPT_AT_ONCE = 100
"""Rows of dropped indexes that each commit removes, so that it does not take long."""

SWEPT_IN_A_STEP = 5000
"""Rows that one transaction removes if a caller waits until all are gone."""

_PARTS = (
    ("postings", "term", 1),
    ("passages", "number", 1),
    ("vectors", "block", 16),
    ("marks", "session", 1),
)
"""The tables of an index, the column that identifies a row of an owner, and how many rows each
counts as: blocks of vectors are large."""


def discard(connection: Connection, id: int) -> None:
    """Drop an index: ``sweep`` removes the rest."""
    connection.execute("DELETE FROM owners WHERE id = ?", (id,))
    connection.execute("INSERT INTO waste (owner) VALUES (?)", (id,))


def discard_expired(connection: Connection, now: float, limit: int) -> None:
    expired = connection.execute(
        "SELECT id FROM owners WHERE expires_at <= ? LIMIT ?", (now, limit)
    ).fetchall()
    for (id,) in expired:
        discard(connection, id)


def sweep(connection: Connection, limit: int = SWEPT_IN_A_STEP) -> bool:
    """Remove about ``limit`` rows of dropped indexes; True if there may be more."""
    while limit > 0:
        row = connection.execute("SELECT owner FROM waste LIMIT 1").fetchone()
        if row is None:
            return False
        limit -= _sweep(connection, row[0], limit)
    return True


def _sweep(connection: Connection, owner: int, limit: int) -> int:
    """Remove about ``limit`` rows of an index; their number, plus one for each statement."""
    done = 0
    for table, entry, weight in _PARTS:
        most = max(1, (limit - done) // weight)
        removed = connection.execute(
            f"DELETE FROM {table} WHERE owner = ?1 AND {entry} IN "
            f"(SELECT {entry} FROM {table} WHERE owner = ?1 LIMIT ?2)",
            (owner, most),
        )
        done += 1 + removed.rowcount * weight
        if removed.rowcount >= most:
            return done
    connection.execute("DELETE FROM waste WHERE owner = ?", (owner,))
    return done
