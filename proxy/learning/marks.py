"""Deletes the read marks of sessions that do not exist any more."""

from __future__ import annotations

from cachetools import LRUCache

from proxy.learning.batch import READ_MARKS, History
from proxy.learning.collection import delete_change
from proxy.memory.items import PEOPLE, ItemOwner, Items, Place
from proxy.memory.model import SessionKey

PAGE = 20
"""Marks that are checked after a person has been read, more than one session adds."""

GRACE = 86_400.0
"""Seconds for which a mark is kept in any case: an import may still bring its session."""

MAX_REMEMBERED = 10_000
"""People whose position in the sweep a process remembers."""


class MarkSweep:
    """Checks the marks of a person, a page at a time, and then from the beginning again.

    A store does not report which sessions have expired, and the mark of a deleted one must stay as
    long as a job may be reading it.
    """

    def __init__(self) -> None:
        self._reached: LRUCache[ItemOwner, Place] = LRUCache(MAX_REMEMBERED)

    async def step(self, items: Items, history: History, owner: ItemOwner, now: float) -> None:
        """Check the next page of a person's marks.  Raises StoreError."""
        after = self._reached.pop(owner, None)
        page = await items.items(owner, (PEOPLE, owner.user, READ_MARKS), after, PAGE)
        old = (item for item in page.items if item.updated_at < now - GRACE)
        keys = ((item, SessionKey(owner.tenant, item.key)) for item in old)
        gone = [item for item, key in keys if await history.session(key) is None]
        if gone:
            await items.change_items(
                owner, [delete_change(each.place, each.version) for each in gone]
            )
        if page.after is not None:
            self._reached[owner] = page.items[-1].place
