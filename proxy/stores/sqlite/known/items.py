"""What a process knows of the items in its SQLite file that chats ask for by their places.

It is true as long as an era lasts (see ``changes``): whoever changes an item ends it.  Items that
expire by themselves are not kept, and erasing forgets all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from proxy.memory.items import Item, ItemOwner, Place
from proxy.stores.sqlite.known.changes import Era

MOST_BYTES = 4 * 1024 * 1024
"""Of all that is kept: values, and ITEM_BYTES for each place, empty ones too."""

ITEM_BYTES = 700
"""What a place takes in memory besides its value, about."""

Asked = tuple[ItemOwner, tuple[Place, ...]]


class KnownItems:
    """Answers to those who asked last, within ``most`` bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._size = most, 0
        self._answers: OrderedDict[Asked, tuple[Era, Mapping[Place, Item], int]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<KnownItems [{len(self._answers)}, bytes: {self._size}]>"

    def of(self, asked: Asked, era: Era | None) -> dict[Place, Item] | None:
        known = self._answers.get(asked)
        if known is None or known[0] is not era:
            return None
        self._answers.move_to_end(asked)
        return dict(known[1])

    def put(self, asked: Asked, found: Mapping[Place, Item], era: Era) -> None:
        """Keep what was read in this era, unless it expires or is nearly all that may be kept."""
        self._drop(asked)
        size = ITEM_BYTES * len(asked[1]) + sum([len(item.value) for item in found.values()])
        if 4 * size > self._most or any([item.expires_at is not None for item in found.values()]):
            return
        self._answers[asked], self._size = (era, dict(found), size), self._size + size
        while self._size > self._most:
            self._drop(next(iter(self._answers)))

    def forget(self) -> None:
        self._answers.clear()
        self._size = 0

    def _drop(self, asked: Asked) -> None:
        if known := self._answers.pop(asked, None):
            self._size -= known[2]
