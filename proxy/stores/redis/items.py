"""Items in Redis: a hash and a sorted list of places, all of a shelf under one hash tag."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import unquote

import msgspec

from proxy.memory.archive import PAGE_BYTES, Page
from proxy.memory.erasure import Subject
from proxy.memory.items import Change, Item, ItemOwner, Namespace, Place
from proxy.memory.store import StoreError
from proxy.stores.common.rules import (
    lower_bound,
    lower_bound_after,
    pack,
    page_of,
    unpack,
    upper_bound,
)
from proxy.stores.redis.base import (
    RedisBase,
    format_time,
    limits_concurrency,
    mark_key,
    tag_of,
    tag_pattern,
    with_timeout,
)
from proxy.stores.redis.connection import collect_keys

PARTS = (b"items", b"item-places", b"item-ends")
"""The keys of a shelf, in the order in which every script gets them."""

AT_ONCE = 500
"""Places that one script looks at or removes, so that it never blocks the server for long."""

LISTED_AT_ONCE = 100
"""Items whose places one script lists again: it reads their values with them."""

WALK_SECONDS = 600.0
"""What going through all keys may take."""

Row = tuple[bytes, bytes]
"""A packed place and the record there; see items_prelude.lua."""

T = TypeVar("T")
P = ParamSpec("P")


class PlacesLost(StoreError):
    """A server that evicts keys has thrown the list of a shelf's places away."""

    def __init__(self, shelf: ItemOwner) -> None:
        super().__init__("Redis: the places of items are lost")
        self.shelf = shelf


def with_listed_places(
    work: Callable[Concatenate[RedisItems, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RedisItems, P], Coroutine[Any, Any, T]]:
    """A method that goes through a shelf: it begins anew once lost places are listed again."""

    @wraps(work)
    async def method(self: RedisItems, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(self, *args, **kwargs)
        except PlacesLost as lost:
            await self._list_places(lost.shelf)
            return await work(self, *args, **kwargs)

    return method


class RedisItems(RedisBase):
    """See :class:`proxy.memory.items.Items`."""

    @with_timeout("read")
    async def items_at(self, shelf: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        if not places:
            return {}
        key = shelf_keys(shelf)[0]
        (records,) = await self._link.many([(key, ("HMGET", key, *map(pack, places)))])
        now = self._clock()
        found = [_item(row) for row in zip(map(pack, places), records, strict=True) if row[1]]
        alive = (item for item in found if item.expires_at is None or item.expires_at > now)
        return {item.place: item for item in alive}

    @with_listed_places
    @limits_concurrency
    @with_timeout("read")
    async def items(
        self, shelf: ItemOwner, prefix: Namespace, after: Place | None, limit: int
    ) -> Page[Item]:
        begin = max(lower_bound(prefix), pack(after) if after is not None else b"")
        rows, more = await self._rows(shelf, begin, upper_bound(lower_bound(prefix)), limit + 1)
        return page_of([_item(row) for row in rows], limit, more=more)

    async def _rows(
        self, shelf: ItemOwner, at: bytes, end: bytes, limit: int
    ) -> tuple[list[Row], bool]:
        """The first rows behind a place, and whether there may be more."""
        rows: list[Row] = []
        left, size = True, 0
        script, keys = self._scripts.items_page, shelf_keys(shelf)
        while left and len(rows) < limit and size < PAGE_BYTES:
            arguments = (b"(" + at, b"(" + end, limit - len(rows), AT_ONCE, repr(self._clock()))
            at, *flat = _checked_reply(shelf, await self._scripts.read(script, keys, arguments))
            rows += _pairs(flat)
            left, size = bool(at), size + sum([len(part) for part in flat])
        return rows, left

    @with_listed_places
    @limits_concurrency
    @with_timeout("read")
    async def namespaces(
        self, shelf: ItemOwner, prefix: Namespace, after: Namespace | None, limit: int
    ) -> Sequence[Namespace]:
        at: bytes | None = lower_bound_after(prefix, after)
        end = b"(" + upper_bound(lower_bound(prefix))
        script, keys = self._scripts.items_namespaces, shelf_keys(shelf)
        found: list[Namespace] = []
        while at is not None and len(found) < limit:
            arguments = (at, end, limit - len(found), AT_ONCE, repr(self._clock()))
            at, *places = _checked_reply(shelf, await self._scripts.read(script, keys, arguments))
            found += [unpack(place).namespace for place in places]
        return found

    @with_timeout(WALK_SECONDS)
    async def people(self, tenant: str) -> Sequence[str]:
        return sorted(map(_user_of, await collect_keys(self._link.scan(_people_pattern(tenant)))))

    async def change_items(
        self, shelf: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        arguments: list[Any] = [repr(self._clock()), format_time(since)]
        for change in changes:
            arguments += _arguments(change)
        keys = [*shelf_keys(shelf), mark_key(Subject(*shelf))]
        return bool(await self._write_script(self._scripts.items_change, keys, arguments))

    async def adopt_items(
        self, shelf: ItemOwner, items: Sequence[Item], since: float | None = None
    ) -> int:
        """A part at a time; those of a part whose reply was lost are not counted."""
        script, keys = self._scripts.items_fill, [*shelf_keys(shelf), mark_key(Subject(*shelf))]
        filled, began = 0, format_time(since)
        for first in range(0, len(items), AT_ONCE):
            rows = map(_row, items[first : first + AT_ONCE])
            filled += await self._write_script(
                script, keys, (repr(self._clock()), began, *_flat(rows))
            )
        return filled

    @with_listed_places
    async def drop_items(self, shelf: ItemOwner, prefix: Namespace) -> int:
        begin = lower_bound(prefix)
        arguments = (b"(" + begin, b"(" + upper_bound(begin), AT_ONCE, repr(self._clock()))
        script, keys = self._scripts.items_drop, shelf_keys(shelf)
        gone, removed = 0, AT_ONCE
        while removed == AT_ONCE:
            removed, there = _checked_reply(
                shelf, await self._write_script(script, keys, arguments)
            )
            gone += there
        return gone

    async def _list_places(self, shelf: ItemOwner) -> None:
        script, keys, at = self._scripts.items_relist, shelf_keys(shelf), 0
        while at := await self._write_unreplicated(script, keys, (at, LISTED_AT_ONCE)):
            pass

    async def _move_items(self, old: str, new: str) -> None:
        """Hand a tenant's items to another; what is at a place already stays, and so does ours.

        Copied, then removed, so that a move cut short can be done again.  Raises errors of Redis.
        """
        keys = await collect_keys(self._link.scan(_people_pattern(old)))
        for user in ("", *map(_user_of, keys)):
            await self._move_shelf(ItemOwner(old, user), ItemOwner(new, user))

    @with_listed_places
    async def _move_shelf(self, here: ItemOwner, there: ItemOwner) -> None:
        end = upper_bound(b"")
        rows, _ = await self._rows(here, b"", end, AT_ONCE)
        while rows:
            await self._hand_over(here, there, rows)
            rows, _ = await self._rows(here, rows[-1][0], end, AT_ONCE)

    async def _hand_over(self, here: ItemOwner, there: ItemOwner, rows: Sequence[Row]) -> None:
        """Copy and remove these rows; those that change meanwhile are copied once more."""
        copied: dict[bytes, bytes] = {}
        while rows:
            flat = [(place, record, copied.get(place, b"")) for place, record in rows]
            arguments = (repr(self._clock()), *_flat(flat))
            adopt, leave = self._scripts.items_adopt, self._scripts.items_leave
            taken = await self._scripts.write(adopt, shelf_keys(there), arguments)
            copied = dict(row for row, ours in zip(rows, taken, strict=True) if ours)
            left = await self._scripts.write(leave, shelf_keys(here), _flat(copied.items()))
            rows = _pairs(left)


def shelf_keys(shelf: ItemOwner) -> list[bytes]:
    """All keys of a shelf, in one slot: that of the lists of the person's or tenant's sessions."""
    tag = tag_of(shelf.tenant, shelf.user or None)
    return [tag + part for part in PARTS]


def _people_pattern(tenant: str) -> bytes:
    """The pattern of the keys that only people's shelves have, one a shelf."""
    return tag_pattern(tenant) + PARTS[0]


def _user_of(key: bytes) -> str:
    """Whose a key is that only people's shelves have."""
    return unquote(key.decode().partition(":{")[2].partition("}")[0].partition(":")[2])


def _checked_reply(shelf: ItemOwner, reply: Sequence[Any] | None) -> Sequence[Any]:
    """What a script says that goes through a shelf, all of whose places are listed."""
    if reply is None:
        raise PlacesLost(shelf)
    return reply


def _arguments(change: Change) -> tuple[Any, ...]:
    return (
        pack(Place(change.namespace, change.key)),
        "" if change.after is None else change.after,
        int(change.value is not None),
        "-" if change.expires_at is None else repr(change.expires_at),
        change.value or b"",
    )


def _item(row: Row) -> Item:
    place = unpack(row[0])
    version, created, updated, end, value = row[1].split(b" ", 4)
    return Item(
        namespace=place.namespace,
        key=place.key,
        value=msgspec.Raw(value),
        version=int(version),
        created_at=float(created),
        updated_at=float(updated),
        expires_at=None if end == b"-" else float(end),
    )


def _row(item: Item) -> tuple[bytes, bytes, bytes]:
    """The place of an item, its record, and its end."""
    end = b"-" if item.expires_at is None else repr(item.expires_at).encode()
    times = f"{item.created_at!r} {item.updated_at!r}".encode()
    record = b"%d %b %b %b" % (item.version, times, end, bytes(item.value))
    return pack(item.place), record, end


def _pairs(flat: Sequence[bytes]) -> list[Row]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _flat(rows: Iterable[tuple[bytes, ...]]) -> list[bytes]:
    return [part for row in rows for part in row]
