"""The vectors of an index in the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection

from proxy.recall.index import Owner
from proxy.stores.sqlite.index.reading import find

VECTOR_BLOCK = 16384
"""Bytes of vectors in a block, about; one vector at least."""

_VECTORS = """
SELECT data FROM vectors WHERE owner = ? AND block = ? AND model = ? AND size = ?
"""

_PUT_VECTORS = """
INSERT INTO vectors (owner, block, model, size, data) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (owner, block, model, size) DO UPDATE SET data = ?5
"""


def vectors(
    connection: Connection, now: float, owner: Owner, model: str, size: int, first: int, last: int
) -> bytes:
    index = find(connection, owner, now)
    if index is None or last <= first:
        return b""
    per = _per_block(size)
    begin, end = first // per, (last - 1) // per + 1
    blocks = (_vector_block(connection, index.id, n, model, size) for n in range(begin, end))
    data = b"".join([block.ljust(per * size, b"\0") for block in blocks])
    return data[(first - begin * per) * size : (last - begin * per) * size]


def _vector_block(connection: Connection, owner: int, block: int, model: str, size: int) -> bytes:
    row = connection.execute(_VECTORS, (owner, block, model, size)).fetchone()
    return row[0] if row else b""


def _per_block(size: int) -> int:
    return max(1, VECTOR_BLOCK // size)


def put_vectors(
    connection: Connection,
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
