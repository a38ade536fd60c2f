"""A cache of the items in the SQLite file that chats read by their places.

It is valid within an era (see ``changes``); what this process puts is removed from it.  Items that
expire are not cached, and an erasure clears the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from proxy.memory.items import Change, Item, ItemOwner, OwnedPlace, Place
from proxy.stores.sqlite.caches.changes import Era

MAX_BYTES = 4 * 1024 * 1024
"""The size of the cache: values, and ITEM_BYTES for each place, also those without an item."""

ITEM_BYTES = 700
"""Approximate memory of a place without its value."""


class ItemCache:
    """The items at the places that were read last, at most ``max_bytes``; None where there is
    none."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._items: OrderedDict[OwnedPlace, Item | None] = OrderedDict()
        self._era: Era | None = None
        self._bytes, self._max_bytes = 0, max_bytes
        self.writes = 0
        """Changes with each write: what was read before may be outdated."""

    def __repr__(self) -> str:
        return f"<ItemCache [{len(self._items)}, bytes: {self._bytes}]>"

    def get(self, places: Collection[OwnedPlace], era: Era | None) -> dict[OwnedPlace, Item] | None:
        """The items at these places, without those that do not exist; None if it is not known."""
        items, found = self._items, {}
        if era is None or era is not self._era:
            return None
        for at in places:
            if at not in items:
                return None
            items.move_to_end(at)
            item = items[at]
            if item is not None:
                found[at] = item
        return found

    def put(
        self, places: Collection[OwnedPlace], found: Mapping[OwnedPlace, Item], era: Era
    ) -> None:
        """Cache what was read in this era, apart from items that expire or would take over a
        quarter of the cache."""
        if era is not self._era:
            self.clear()
            self._era = era
        for at in places:
            item = found.get(at)
            self._remove(at)
            if 4 * _size(item) <= self._max_bytes and (item is None or item.expires_at is None):
                self._items[at] = item
                self._bytes += _size(item)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._items)))

    def on_write(self, owner: ItemOwner, changes: Sequence[Change]) -> None:
        """Forget the places that this process has put items at, or may have."""
        self.writes += 1
        for change in changes:
            self._remove(OwnedPlace(owner, Place(change.namespace, change.key)))

    def clear(self) -> None:
        self._items.clear()
        self._bytes = 0

    def _remove(self, at: OwnedPlace) -> None:
        if at in self._items:
            self._bytes -= _size(self._items.pop(at))


def _size(item: Item | None) -> int:
    return ITEM_BYTES + (len(item.value) if item is not None else 0)
