"""The stores that the entries of a spool wait for.  A store may have had other names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

IsSame = Callable[[str, str], bool]
"""Whether two names are those of one store."""


def waiting_by_store(db: sqlite3.Connection) -> dict[str, int]:
    """The number of waiting entries by store name."""
    rows = db.execute(
        "SELECT store, count(*) FROM entries WHERE quarantined IS NULL"
        " GROUP BY store ORDER BY store"
    )
    return dict(rows.fetchall())


def waiting_in(path: Path, timeout: float) -> dict[str, int]:
    """The same for a spool that is not open; its file is not created."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=timeout)) as db:
            return waiting_by_store(db)
    except sqlite3.Error:
        return {}  # no file, or an empty one


def adopt_entries(db: sqlite3.Connection, store: str, is_same: IsSame) -> None:
    """Move entries that wait under other names of a store to its present name."""
    names = [name for (name,) in db.execute("SELECT DISTINCT store FROM entries")]
    for name in names:
        if name != store and is_same(name, store):
            _rename(db, name, store)


def _rename(db: sqlite3.Connection, name: str, store: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute("UPDATE OR IGNORE entries SET store = ? WHERE store = ?", (store, name))
        db.execute("DELETE FROM entries WHERE store = ?", (name,))  # there under both
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
