"""A cache of the items in the SQLite file that chats read by their places.

Entries are valid within an era (see ``changes``), which every change of an item ends.  Items that
expire are not cached, and an erasure clears the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

from cachetools import LRUCache

from proxy.memory.items import Item, ItemOwner, Place
from proxy.stores.sqlite.caches.changes import Era

MAX_BYTES = 4 * 1024 * 1024
"""The size of the cache: values, and ITEM_BYTES for each place, also those without an item."""

ITEM_BYTES = 700
"""Approximate memory of a place without its value."""

ItemQuery = tuple[ItemOwner, tuple[Place, ...]]


class _CachedItems(NamedTuple):
    """The result of a query, the era in which it was read, and its bytes."""

    era: Era
    found: Mapping[Place, Item]
    size: int


class ItemCache:
    """Results of the latest queries, at most ``max_bytes``."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._results: LRUCache[ItemQuery, _CachedItems] = LRUCache(
            max_bytes, getsizeof=attrgetter("size")
        )

    def __repr__(self) -> str:
        return f"<ItemCache [{len(self._results)}, bytes: {self._results.currsize}]>"

    def get(self, query: ItemQuery, era: Era | None) -> dict[Place, Item] | None:
        cached = self._results.get(query)
        return dict(cached.found) if cached and cached.era is era else None

    def put(self, query: ItemQuery, found: Mapping[Place, Item], era: Era) -> None:
        """Cache what was read in this era, unless it expires or would take over a quarter of the
        cache."""
        size = ITEM_BYTES * len(query[1]) + sum([len(item.value) for item in found.values()])
        expires = any([item.expires_at is not None for item in found.values()])
        if expires or 4 * size > self._results.maxsize:
            self._results.pop(query, None)
        else:
            self._results[query] = _CachedItems(era, dict(found), size)

    def clear(self) -> None:
        self._results.clear()
