"""The queue of work in the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import astuple, replace

from proxy.memory.model import SessionKey
from proxy.memory.work import Due, Kind, Work
from proxy.stores import pieces

_FIELDS = ", ".join(Work.__struct_fields__)

_FIND = f"SELECT {_FIELDS} FROM work WHERE tenant = ? AND session = ? AND kind = ?"

_SAVE = f"INSERT OR REPLACE INTO work ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_WAITING = f"SELECT {_FIELDS} FROM work WHERE due <= ? ORDER BY due LIMIT ?"


def enqueue(connection: sqlite3.Connection, key: SessionKey, due: Due) -> None:
    _save(connection, pieces.asked_for(_find(connection, key, due.kind), key, due))


def waiting(connection: sqlite3.Connection, now: float, limit: int) -> Sequence[Work]:
    rows = connection.execute(_WAITING, (now, limit))
    return [replace(_piece(row), lease="") for row in rows]


def claim(connection: sqlite3.Connection, work: Work, now: float, until: float) -> Work | None:
    piece = pieces.claimed(_same(connection, work), now, until, secrets.token_hex(8))
    if piece is not None:
        _save(connection, piece)
    return piece


def extend(connection: sqlite3.Connection, work: Work, until: float) -> bool:
    return _if_held(connection, work, lambda piece: replace(piece, due=until))


def finish(connection: sqlite3.Connection, work: Work, again: float) -> None:
    _if_held(connection, work, lambda piece: pieces.finished(piece, work, again))


def put_off(connection: sqlite3.Connection, work: Work, due: float, *, failed: bool) -> None:
    _if_held(connection, work, lambda piece: pieces.put_off(piece, due, failed=failed))


def _if_held(
    connection: sqlite3.Connection, work: Work, change: Callable[[Work], Work | None]
) -> bool:
    """Save what ``change`` makes of the piece, None: nothing; False if the claim holds it not."""
    piece = _same(connection, work)
    if piece is None or not pieces.is_held(piece, work):
        return False
    left = change(piece)
    if left is None:
        connection.execute(
            "DELETE FROM work WHERE tenant = ? AND session = ? AND kind = ?",
            (piece.tenant, piece.session, piece.kind),
        )
    else:
        _save(connection, left)
    return True


def _same(connection: sqlite3.Connection, work: Work) -> Work | None:
    return _find(connection, SessionKey(work.tenant, work.session), work.kind)


def _find(connection: sqlite3.Connection, key: SessionKey, kind: Kind) -> Work | None:
    row = connection.execute(_FIND, (*key, kind)).fetchone()
    return _piece(row) if row else None


def _save(connection: sqlite3.Connection, piece: Work) -> None:
    connection.execute(_SAVE, astuple(piece))


def _piece(row: Sequence[Any]) -> Work:
    return Work(**dict(zip(Work.__struct_fields__, row, strict=True)))
