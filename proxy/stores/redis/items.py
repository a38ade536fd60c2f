"""Items in Redis: of each owner a hash of records and a sorted set of places, with one hash tag."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import unquote

import msgspec

from proxy.memory.archive import PAGE_BYTES, Page
from proxy.memory.erasure import Subject
from proxy.memory.items import Change, Item, ItemOwner, Namespace, OwnedPlace, Place
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

KEY_NAMES = (b"items", b"item-places", b"item-ends")
"""The keys of an owner's items, in the order in which every script gets them."""

PLACES_AT_ONCE = 500
"""Places that one script reads or removes, so that it never blocks the server for long."""

LISTED_AT_ONCE = 100
"""Items whose places one script lists again: it reads their values with them."""

SCAN_SECONDS = 600.0
"""Timeout (s) of a scan of all keys."""

Row = tuple[bytes, bytes]
"""A packed place and the record there; see items_prelude.lua."""

T = TypeVar("T")
P = ParamSpec("P")


class PlacesLost(StoreError):
    """The server has evicted the sorted set of an owner's places."""

    def __init__(self, owner: ItemOwner) -> None:
        super().__init__("Redis: the places of items are lost")
        self.owner = owner


def relists_lost_places(
    work: Callable[Concatenate[RedisItems, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RedisItems, P], Coroutine[Any, Any, T]]:
    """Decorates a method that goes through an owner's places: if these are lost they are rebuilt
    from the records, and the method is run again."""

    @wraps(work)
    async def method(self: RedisItems, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(self, *args, **kwargs)
        except PlacesLost as lost:
            await self._list_places(lost.owner)
            return await work(self, *args, **kwargs)

    return method


class RedisItems(RedisBase):
    """See :class:`proxy.memory.items.Items`."""

    async def items_at(self, owner: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        found = await self.items_of([OwnedPlace(owner, place) for place in places])
        return {at.place: item for at, item in found.items()}

    @with_timeout("read")
    async def items_of(self, places: Collection[OwnedPlace]) -> dict[OwnedPlace, Item]:
        packed: dict[ItemOwner, list[bytes]] = {}
        for owner, place in places:
            packed.setdefault(owner, []).append(pack(place))
        keys = [item_keys(owner)[0] for owner in packed]
        replies = await self._link.many(
            [
                (key, ("HMGET", key, *wanted))
                for key, wanted in zip(keys, packed.values(), strict=True)
            ]
        )
        now = self._clock()
        return {
            OwnedPlace(owner, item.place): item
            for (owner, wanted), records in zip(packed.items(), replies, strict=True)
            for item in map(_item, [row for row in zip(wanted, records, strict=True) if row[1]])
            if item.expires_at is None or item.expires_at > now
        }

    @relists_lost_places
    @limits_concurrency
    @with_timeout("read")
    async def items(
        self, owner: ItemOwner, prefix: Namespace, after: Place | None, limit: int
    ) -> Page[Item]:
        begin = max(lower_bound(prefix), pack(after) if after is not None else b"")
        rows, more = await self._rows(owner, begin, upper_bound(lower_bound(prefix)), limit + 1)
        return page_of([_item(row) for row in rows], limit, more=more)

    async def _rows(
        self, owner: ItemOwner, at: bytes, end: bytes, limit: int
    ) -> tuple[list[Row], bool]:
        """The first rows after a place, and whether there may be more."""
        rows: list[Row] = []
        left, size = True, 0
        script, keys = self._scripts.items_page, item_keys(owner)
        while left and len(rows) < limit and size < PAGE_BYTES:
            arguments = (
                b"(" + at,
                b"(" + end,
                limit - len(rows),
                PLACES_AT_ONCE,
                repr(self._clock()),
            )
            at, *flat = _checked_reply(owner, await self._scripts.read(script, keys, arguments))
            rows += _pairs(flat)
            left, size = bool(at), size + sum([len(part) for part in flat])
        return rows, left

    @relists_lost_places
    @limits_concurrency
    @with_timeout("read")
    async def namespaces(
        self, owner: ItemOwner, prefix: Namespace, after: Namespace | None, limit: int
    ) -> Sequence[Namespace]:
        at: bytes | None = lower_bound_after(prefix, after)
        end = b"(" + upper_bound(lower_bound(prefix))
        script, keys = self._scripts.items_namespaces, item_keys(owner)
        found: list[Namespace] = []
        while at is not None and len(found) < limit:
            arguments = (at, end, limit - len(found), PLACES_AT_ONCE, repr(self._clock()))
            at, *places = _checked_reply(owner, await self._scripts.read(script, keys, arguments))
            found += [unpack(place).namespace for place in places]
        return found

    @with_timeout(SCAN_SECONDS)
    async def people(self, tenant: str) -> Sequence[str]:
        return sorted(map(_user_of, await collect_keys(self._link.scan(_people_pattern(tenant)))))

    async def change_items(
        self, owner: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        arguments: list[Any] = [repr(self._clock()), format_time(since)]
        for change in changes:
            arguments += _change_arguments(change)
        keys = [*item_keys(owner), mark_key(Subject(*owner))]
        return bool(await self._write_script(self._scripts.items_change, keys, arguments))

    async def adopt_items(
        self, owner: ItemOwner, items: Sequence[Item], since: float | None = None
    ) -> int:
        """In batches; if the reply to one is lost, and it is sent again, its items are not
        counted."""
        script, keys = self._scripts.items_fill, [*item_keys(owner), mark_key(Subject(*owner))]
        filled, began = 0, format_time(since)
        for first in range(0, len(items), PLACES_AT_ONCE):
            rows = map(_row, items[first : first + PLACES_AT_ONCE])
            filled += await self._write_script(
                script, keys, (repr(self._clock()), began, *_flat(rows))
            )
        return filled

    @relists_lost_places
    async def drop_items(self, owner: ItemOwner, prefix: Namespace) -> int:
        begin = lower_bound(prefix)
        arguments = (b"(" + begin, b"(" + upper_bound(begin), PLACES_AT_ONCE, repr(self._clock()))
        script, keys = self._scripts.items_drop, item_keys(owner)
        total, removed = 0, PLACES_AT_ONCE
        while removed == PLACES_AT_ONCE:
            removed, deleted = _checked_reply(
                owner, await self._write_script(script, keys, arguments)
            )
            total += deleted
        return total

    async def _list_places(self, owner: ItemOwner) -> None:
        script, keys, at = self._scripts.items_relist, item_keys(owner), 0
        while at := await self._write_unreplicated(script, keys, (at, LISTED_AT_ONCE)):
            pass

    async def _move_items(self, old: str, new: str) -> None:
        """Move a tenant's items to another; if both have an item at a place, both stay.

        Copies, then removes, so that an interrupted move can be repeated.  Raises Redis' errors.
        """
        keys = await collect_keys(self._link.scan(_people_pattern(old)))
        for user in ("", *map(_user_of, keys)):
            await self._move_items_of(ItemOwner(old, user), ItemOwner(new, user))

    @relists_lost_places
    async def _move_items_of(self, source: ItemOwner, target: ItemOwner) -> None:
        end = upper_bound(b"")
        rows, _ = await self._rows(source, b"", end, PLACES_AT_ONCE)
        while rows:
            await self._move_rows(source, target, rows)
            rows, _ = await self._rows(source, rows[-1][0], end, PLACES_AT_ONCE)

    async def _move_rows(self, source: ItemOwner, target: ItemOwner, rows: Sequence[Row]) -> None:
        """Copy and remove these rows; those that change meanwhile are copied once more."""
        copied: dict[bytes, bytes] = {}
        while rows:
            flat = [(place, record, copied.get(place, b"")) for place, record in rows]
            arguments = (repr(self._clock()), *_flat(flat))
            adopt, leave = self._scripts.items_adopt, self._scripts.items_leave
            adopted = await self._scripts.write(adopt, item_keys(target), arguments)
            copied = dict(row for row, ours in zip(rows, adopted, strict=True) if ours)
            left = await self._scripts.write(leave, item_keys(source), _flat(copied.items()))
            rows = _pairs(left)


def item_keys(owner: ItemOwner) -> list[bytes]:
    """All keys of an owner's items, in the slot of the user's or tenant's session list."""
    tag = tag_of(owner.tenant, owner.user or None)
    return [tag + part for part in KEY_NAMES]


def _people_pattern(tenant: str) -> bytes:
    """The pattern of one key of each user who has items."""
    return tag_pattern(tenant) + KEY_NAMES[0]


def _user_of(key: bytes) -> str:
    """The user of a key that ``_people_pattern`` matches."""
    return unquote(key.decode().partition(":{")[2].partition("}")[0].partition(":")[2])


def _checked_reply(owner: ItemOwner, reply: Sequence[Any] | None) -> Sequence[Any]:
    """The reply of a script that goes through places.  Raises PlacesLost."""
    if reply is None:
        raise PlacesLost(owner)
    return reply


def _change_arguments(change: Change) -> tuple[Any, ...]:
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
    """The packed place of an item, its record, and when it expires ("-": never)."""
    end = b"-" if item.expires_at is None else repr(item.expires_at).encode()
    times = f"{item.created_at!r} {item.updated_at!r}".encode()
    record = b"%d %b %b %b" % (item.version, times, end, bytes(item.value))
    return pack(item.place), record, end


def _pairs(flat: Sequence[bytes]) -> list[Row]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _flat(rows: Iterable[tuple[bytes, ...]]) -> list[bytes]:
    return [part for row in rows for part in row]
