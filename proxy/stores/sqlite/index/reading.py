"""Reading the index in the SQLite file: functions of a connection inside a transaction.

A block of postings is filled before the next one is begun, so its number tells how many postings
come before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection

import msgspec

from proxy.recall.index import (
    NO_POSTINGS,
    POSTING_SIZE,
    ROW_SIZE,
    IndexLookup,
    IndexMark,
    Owner,
    Postings,
    Rows,
    WholeIndex,
    split_terms,
)

BLOCK = 160
"""Postings in a block: the most that a page of the tree holds without overflowing to another."""

_OWNER = """
SELECT id, revision, passages, expires_at IS NULL OR expires_at > ? FROM owners
WHERE tenant = ? AND user = ? AND session = ?
"""

_KNOWN = """
WITH known AS (
    SELECT id, revision, state, expires_at IS NULL AS lasts
    FROM owners WHERE tenant = ? AND user = ? AND session = ?
        AND (expires_at IS NULL OR expires_at > ?)
)"""

# The blocks that may hold the newest postings of each term: joined, and as JSON the place of the
# term, the number and the length of each.  One row, as with _JOINED_ROWS.
_LOOKUP = f"""{_KNOWN}, asked(place, term) AS (VALUES {{}}),
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

# All blocks, up to a limit.
_WHOLE = f"""{_KNOWN}, found AS (
    SELECT term, data FROM postings WHERE owner = (SELECT id FROM known)
    ORDER BY term, block LIMIT ?
)
SELECT revision, state, m.number, m.seq, m.digest, terms, sizes, data FROM known
LEFT JOIN marks m ON m.owner = known.id AND m.session = ?
CROSS JOIN (
    SELECT CAST(group_concat(term, '') AS BLOB) AS terms,
        json_group_array(length(data)) AS sizes,
        CAST(group_concat(data, '') AS BLOB) AS data FROM found
)
"""

# CROSS JOIN makes the numbers the outer loop, with one lookup for each.
ROWS = """
SELECT p.number AS number, p.data AS data FROM json_each(?) AS asked
CROSS JOIN passages p ON p.owner = ? AND p.number = asked.value
"""

# As one row, since fetching each would wait for the GIL: see read.py.
_JOINED_ROWS = f"""
SELECT CAST(group_concat(data, '') AS BLOB), group_concat(number) FROM ({ROWS})
"""

_NAMES = """
SELECT m.number, m.session FROM json_each(?) AS asked
CROSS JOIN marks m ON m.owner = ? AND m.number = asked.value
"""

_blocks = msgspec.json.Decoder(list[tuple[int, int, int]])
_sizes = msgspec.json.Decoder(list[int])


class IndexRow(msgspec.Struct, frozen=True):
    """The row of an index in the table of owners."""

    id: int
    revision: int = 0
    passages: int = 0


def find(connection: Connection, owner: Owner, now: float) -> IndexRow | None:
    """The row of an owner's index; None without one, also if only the state of a dropped one is
    left."""
    row = connection.execute(_OWNER, (now, *owner)).fetchone()
    index = IndexRow(*row[:3]) if row and row[3] else None
    return index if index and index.revision else None


# Reading


def lookup(
    connection: Connection,
    now: float,
    owner: Owner,
    terms: Sequence[bytes],
    newest: int,
    session: str = "",
) -> tuple[IndexLookup, bool]:
    """The lookup, and whether the index stays until somebody drops it: it never expires."""
    parameters: list[object] = [part for numbered in enumerate(terms) for part in numbered]
    parameters = parameters or [None, None]
    row = connection.execute(
        _LOOKUP.format(",".join(["(?,?)"] * (len(parameters) // 2))),
        # The newest block may hold a single posting.
        (*owner, now, *parameters, newest // BLOCK + 1, session),
    ).fetchone()
    if row is None:
        return IndexLookup(postings=(NO_POSTINGS,) * len(terms)), False
    revision, state, number, seq, digest, blocks, data, lasts = row
    postings = _postings(len(terms), _blocks.decode(blocks), data or b"", newest)
    mark = None if number is None else IndexMark(number, seq, digest)
    return IndexLookup(revision, state, postings, mark), bool(lasts)


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


def whole_index(
    connection: Connection, now: float, owner: Owner, max_blocks: int, session: str = ""
) -> WholeIndex | None:
    row = connection.execute(_WHOLE, (*owner, now, max_blocks + 1, session)).fetchone()
    if row is None:
        return None
    revision, state, number, seq, digest, joined, blocks, data = row
    terms, sizes = joined or b"", _sizes.decode(blocks)
    if len(sizes) > max_blocks:
        return None
    mark = None if number is None else IndexMark(number, seq, digest)
    head = IndexLookup(revision, state, mark=mark)
    return WholeIndex(head, *_merged_blocks(terms, sizes), data or b"")


def _merged_blocks(terms: bytes, sizes: Sequence[int]) -> tuple[bytes, Sequence[int]]:
    """The terms of blocks in order, each once, and the bytes of all blocks of each."""
    of_blocks = split_terms(terms)
    merged = dict.fromkeys(of_blocks, 0)
    if len(merged) == len(sizes):  # most often each term has one block
        return terms, sizes
    for term, size in zip(of_blocks, sizes, strict=True):
        merged[term] += size
    return b"".join(merged), list(merged.values())


def rows(connection: Connection, now: float, owner: Owner, numbers: Sequence[int]) -> Rows:
    index = find(connection, owner, now)
    if index is None:
        return Rows(bytes(ROW_SIZE * len(numbers)))
    wanted = (json.dumps(list(numbers)), index.id)
    data, existing = connection.execute(_JOINED_ROWS, wanted).fetchone()
    if existing != ",".join(map(str, numbers)):
        data = _filled(numbers, data or b"", existing or "")
    sessions = {int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), ROW_SIZE)}
    return Rows(data, dict(connection.execute(_NAMES, (json.dumps(list(sessions)), index.id))))


def _filled(numbers: Sequence[int], data: bytes, existing: str) -> bytes:
    """The joined rows of these numbers, with zeros for those that are not ``existing``."""
    found = {
        int(number): data[place * ROW_SIZE : (place + 1) * ROW_SIZE]
        for place, number in enumerate(existing.split(",") if existing else ())
    }
    return b"".join([found.get(number, bytes(ROW_SIZE)) for number in numbers])
