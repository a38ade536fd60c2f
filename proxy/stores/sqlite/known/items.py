"""What a process knows of the items in its SQLite file that chats ask for by their places.

It is true as long as an era lasts (see ``changes``): whoever changes an item ends it.  Items that
expire by themselves are not kept, and erasing forgets all.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

from cachetools import LRUCache

from proxy.memory.items import Item, ItemOwner, Place
from proxy.stores.sqlite.known.changes import Era

MAX_BYTES = 4 * 1024 * 1024
"""Of all that is kept: values, and ITEM_BYTES for each place, empty ones too."""

ITEM_BYTES = 700
"""What a place takes in memory besides its value, about."""

Asked = tuple[ItemOwner, tuple[Place, ...]]


class _Kept(NamedTuple):
    """What was found in an era, and its bytes."""

    era: Era
    found: Mapping[Place, Item]
    size: int


class ItemCache:
    """Answers to those who asked last, within ``most`` bytes."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._answers: LRUCache[Asked, _Kept] = LRUCache(most, getsizeof=attrgetter("size"))

    def __repr__(self) -> str:
        return f"<ItemCache [{len(self._answers)}, bytes: {self._answers.currsize}]>"

    def of(self, asked: Asked, era: Era | None) -> dict[Place, Item] | None:
        known = self._answers.get(asked)
        return dict(known.found) if known and known.era is era else None

    def put(self, asked: Asked, found: Mapping[Place, Item], era: Era) -> None:
        """Keep what was read in this era, unless it expires or is nearly all that may be kept."""
        size = ITEM_BYTES * len(asked[1]) + sum([len(item.value) for item in found.values()])
        expires = any([item.expires_at is not None for item in found.values()])
        if expires or 4 * size > self._answers.maxsize:
            self._answers.pop(asked, None)
        else:
            self._answers[asked] = _Kept(era, dict(found), size)

    def forget(self) -> None:
        self._answers.clear()
