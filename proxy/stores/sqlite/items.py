"""Items in the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sqlite3 import Connection

import msgspec

from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, ItemOwner, Namespace, OwnedPlace, Place
from proxy.stores.common.rules import (
    bound_after,
    lower_bound,
    lower_bound_after,
    pack,
    page_of,
    unpack,
    upper_bound,
    user_subjects,
)
from proxy.stores.sqlite.marks import is_erased
from proxy.stores.sqlite.rows import page_in, store_text, text_in

PURGED_AT_ONCE = 10
"""Expired items that each change removes, at most, so that it does not take long."""

DROPPED_AT_ONCE = 500
"""Items that one transaction removes, so that commits do not wait long."""

PEOPLE_AT_ONCE = 1000
"""Users that one read returns, at most."""

_AT = "tenant = ? AND user = ? AND place = ?"
_AMONG = "tenant = ? AND user = ? AND place > ? AND place < ?"
_ALIVE = "(expires_at IS NULL OR expires_at > ?)"
_ROW = f"""
SELECT place, {text_in("value")}, version, created_at, updated_at, expires_at FROM items
"""

_EXPIRED = f"DELETE FROM items WHERE {_AT} AND expires_at <= ?"

_ADOPT = """
INSERT INTO items (tenant, user, place, version, created_at, updated_at, expires_at, value)
VALUES (?, ?, ?, ?, ?, ?, ?, x'') ON CONFLICT DO NOTHING
"""

_NEXT_PERSON = f"""
SELECT user FROM items WHERE tenant = ? AND user > ? AND {_ALIVE} ORDER BY user LIMIT 1
"""

_PUT = """
INSERT INTO items (tenant, user, place, version, created_at, updated_at, expires_at, value)
VALUES (?1, ?2, ?3, 1, ?4, ?4, ?5, ?6)
ON CONFLICT (tenant, user, place) DO UPDATE SET
    version = version + 1, updated_at = ?4, expires_at = ?5, value = ?6
"""

_PURGE = """
DELETE FROM items WHERE (tenant, user, place) IN
    (SELECT tenant, user, place FROM items WHERE expires_at <= ? LIMIT ?)
"""

_DROP = """
DELETE FROM items WHERE tenant = ?1 AND user = ?2 AND place IN
    (SELECT place FROM items
     WHERE tenant = ?1 AND user = ?2 AND place > ?3 AND place < ?4 LIMIT ?5)
"""

_CLEAR_WAY = """
DELETE FROM items WHERE tenant = ?2 AND expires_at <= ?3 AND EXISTS
    (SELECT 1 FROM items AS ours
     WHERE ours.tenant = ?1 AND ours.user = items.user AND ours.place = items.place)
"""

_MOVE = """
UPDATE items SET tenant = ?2 WHERE tenant = ?1 AND (expires_at IS NULL OR expires_at > ?3)
    AND NOT EXISTS
    (SELECT 1 FROM items AS taken
     WHERE taken.tenant = ?2 AND taken.user = items.user AND taken.place = items.place)
"""


def people(connection: Connection, now: float, tenant: str, after: str) -> list[str]:
    """The next users with items, after the user ``after``."""
    found: list[str] = []
    while len(found) < PEOPLE_AT_ONCE:
        row = connection.execute(_NEXT_PERSON, (tenant, after, now)).fetchone()
        if row is None:
            break
        (after,) = row
        found.append(after)
    return found


def items_of(
    connection: Connection, now: float, places: Collection[OwnedPlace]
) -> dict[OwnedPlace, Item]:
    query = f"{_ROW} WHERE {_AT} AND {_ALIVE}"
    rows = (
        connection.execute(query, (*owner, pack(place), now)).fetchone() for owner, place in places
    )
    return {at: _item(row) for at, row in zip(places, rows, strict=True) if row is not None}


def items(
    connection: Connection,
    now: float,
    owner: ItemOwner,
    prefix: Namespace,
    after: Place | None,
    limit: int,
) -> Page[Item]:
    beginning = lower_bound(prefix)
    start = max(beginning, pack(after) if after is not None else b"")
    found = connection.execute(
        f"{_ROW} WHERE {_AMONG} AND {_ALIVE} ORDER BY place LIMIT ?",
        (*owner, start, upper_bound(beginning), now, limit + 1),
    )
    rows, more = page_in(found, limit)
    return page_of([_item(row) for row in rows], limit, more=more)


def namespaces(
    connection: Connection,
    now: float,
    owner: ItemOwner,
    prefix: Namespace,
    after: Namespace | None,
    limit: int,
) -> list[Namespace]:
    """With one lookup for each namespace: for the first place after the previous namespace."""
    query = f"SELECT place FROM items WHERE {_AMONG} AND {_ALIVE} ORDER BY place LIMIT 1"
    start, end = lower_bound_after(prefix, after), upper_bound(lower_bound(prefix))
    found: list[Namespace] = []
    while len(found) < limit:
        row = connection.execute(query, (*owner, start, end, now)).fetchone()
        if row is None:
            break
        found.append(unpack(row[0]).namespace)
        start = bound_after(found[-1])
    return found


def change_items(
    connection: Connection,
    now: float,
    owner: ItemOwner,
    changes: Sequence[Change],
    since: float | None = None,
) -> bool:
    discard_expired(connection, now, PURGED_AT_ONCE)
    if is_erased(connection, now, user_subjects(*owner), since):
        return False
    for change in changes:
        if change.after is not None and change.after != _version(connection, owner, change, now):
            return False
    for change in changes:
        at = (*owner, pack(Place(change.namespace, change.key)))
        connection.execute(_EXPIRED, (*at, now))
        if change.value is None:
            connection.execute(f"DELETE FROM items WHERE {_AT}", at)
        else:
            value = store_text(connection, change.value)
            connection.execute(_PUT, (*at, now, change.expires_at, value))
    return True


def adopt_items(
    connection: Connection,
    now: float,
    owner: ItemOwner,
    items: Sequence[Item],
    since: float | None = None,
) -> int:
    if is_erased(connection, now, user_subjects(*owner), since):
        return 0
    adopted = 0
    for item in items:
        if item.expires_at is not None and item.expires_at <= now:
            continue
        at = (*owner, pack(item.place))
        connection.execute(_EXPIRED, (*at, now))
        times = (item.created_at, item.updated_at, item.expires_at)
        if connection.execute(_ADOPT, (*at, item.version, *times)).rowcount:
            value = store_text(connection, bytes(item.value))
            connection.execute(f"UPDATE items SET value = ? WHERE {_AT}", (value, *at))
            adopted += 1
    return adopted


def _version(connection: Connection, owner: ItemOwner, change: Change, now: float) -> int:
    at = (*owner, pack(Place(change.namespace, change.key)), now)
    query = f"SELECT version FROM items WHERE {_AT} AND {_ALIVE}"
    row = connection.execute(query, at).fetchone()
    return row[0] if row else 0


def drop_some(connection: Connection, now: float, owner: ItemOwner, prefix: Namespace) -> int:
    """Remove some items below a prefix, and first all that have expired; 0 once none is left."""
    beginning = lower_bound(prefix)
    among = (*owner, beginning, upper_bound(beginning))
    connection.execute(f"DELETE FROM items WHERE {_AMONG} AND expires_at <= ?", (*among, now))
    return connection.execute(_DROP, (*among, DROPPED_AT_ONCE)).rowcount


def discard_expired(connection: Connection, now: float, limit: int) -> None:
    """Remove expired items of any owner, at most ``limit``."""
    connection.execute(_PURGE, (now, limit))


def move(connection: Connection, now: float, old: str, new: str) -> None:
    """Move a tenant's items to another; if both have an item at a place, both stay."""
    connection.execute(_CLEAR_WAY, (old, new, now))
    connection.execute(_MOVE, (old, new, now))


def _item(row: tuple[bytes, bytes, int, float, float, float | None]) -> Item:
    packed, value, version, created_at, updated_at, expires_at = row
    place = unpack(packed)
    return Item(
        namespace=place.namespace,
        key=place.key,
        value=msgspec.Raw(value),
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        expires_at=expires_at,
    )
