"""Forgetting how far sessions were read that are not there any more."""

from __future__ import annotations

from cachetools import LRUCache

from proxy.learning.batch import READ_MARKS
from proxy.learning.collection import delete_change
from proxy.learning.reading import BatchHistory
from proxy.memory.items import PEOPLE, Item, ItemOwner, Items, Place
from proxy.memory.model import SessionKey

AT_ONCE = 20
"""Marks that are looked at when a person has been read: some times what one session leaves."""

GRACE = 86_400.0
"""Seconds for which a mark stays in any case: its session may be on its way, with an import."""

KNOWN = 10_000
"""People of whom a process remembers how far it has got."""


class MarkSweep:
    """Goes through the marks of a person, some at a time, and then from the beginning again.

    A store may tell nobody which sessions have expired, and of a deleted one the mark must stay as
    long as somebody may be reading it.
    """

    def __init__(self) -> None:
        self._reached: LRUCache[ItemOwner, Place] = LRUCache(KNOWN)

    async def step(self, items: Items, history: BatchHistory, shelf: ItemOwner, now: float) -> None:
        """Drop those of sessions that are gone.  Raises StoreError."""
        after = self._reached.pop(shelf, None)
        page = await items.items(shelf, (PEOPLE, shelf.user, READ_MARKS), after, AT_ONCE)
        old = (item for item in page.items if item.updated_at < now - GRACE)
        gone = [item for item in old if not await _lives(history, shelf, item)]
        if gone:
            await items.change_items(
                shelf, [delete_change(each.place, each.version) for each in gone]
            )
        if page.after is not None:
            self._reached[shelf] = page.items[-1].place


async def _lives(history: BatchHistory, shelf: ItemOwner, mark: Item) -> bool:
    return await history.session(SessionKey(shelf.tenant, mark.key)) is not None
