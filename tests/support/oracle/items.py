"""Items in memory: what the contract means, in the plainest words; the oracle of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, ItemOwner, Namespace, OwnedPlace, Place
from proxy.stores.common.rules import is_refused, page_of, user_subjects
from tests.support.oracle.marks import InMemoryErasures


def within(namespace: Namespace, prefix: Namespace) -> bool:
    return namespace[: len(prefix)] == prefix


class InMemoryItems(InMemoryErasures):
    """See :class:`proxy.memory.items.Items`.  ``clock`` gives Unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._items: dict[ItemOwner, dict[Place, Item]] = {}

    async def items_at(self, owner: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        held = self._held(owner)
        return {place: held[place] for place in places if place in held}

    async def items_of(self, places: Collection[OwnedPlace]) -> dict[OwnedPlace, Item]:
        return {
            at: self._held(at.owner)[at.place] for at in places if at.place in self._held(at.owner)
        }

    async def items(
        self, owner: ItemOwner, prefix: Namespace, after: Place | None, limit: int
    ) -> Page[Item]:
        held = self._held(owner)
        places = sorted(place for place in held if within(place.namespace, prefix))
        behind = [place for place in places if after is None or place > after]
        return page_of([held[place] for place in behind[: limit + 1]], limit)

    async def namespaces(
        self, owner: ItemOwner, prefix: Namespace, after: Namespace | None, limit: int
    ) -> Sequence[Namespace]:
        found = sorted({place.namespace for place in self._held(owner)})
        below = [namespace for namespace in found if within(namespace, prefix)]
        return [namespace for namespace in below if after is None or namespace > after][:limit]

    async def people(self, tenant: str) -> Sequence[str]:
        shelves = [owner for owner in self._items if owner.tenant == tenant and owner.user]
        return sorted(owner.user for owner in shelves if self._held(owner))

    async def change_items(
        self, owner: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        if is_refused(self._mark_of(user_subjects(owner.tenant, owner.user)), since):
            return False
        held = self._held(owner)
        before = [held.get(Place(change.namespace, change.key)) for change in changes]
        for change, old in zip(changes, before, strict=True):
            if change.after is not None and change.after != (old.version if old else 0):
                return False
        for change, old in zip(changes, before, strict=True):
            place = Place(change.namespace, change.key)
            if change.value is None:
                held.pop(place, None)
            else:
                held[place] = _item(change, change.value, old, self._time())
        return True

    async def adopt_items(
        self, owner: ItemOwner, items: Sequence[Item], since: float | None = None
    ) -> int:
        if is_refused(self._mark_of(user_subjects(*owner)), since):
            return 0
        held = self._held(owner)
        before = len(held)
        for item in items:
            if item.expires_at is None or item.expires_at > self._time():
                held.setdefault(item.place, item)
        return len(held) - before

    async def drop_items(self, owner: ItemOwner, prefix: Namespace) -> int:
        held = self._held(owner)
        gone = [place for place in held if within(place.namespace, prefix)]
        for place in gone:
            del held[place]
        return len(gone)

    def _held(self, owner: ItemOwner) -> dict[Place, Item]:
        """The shelf, without what has expired."""
        now = self._time()
        held = self._items.setdefault(owner, {})
        for place, item in list(held.items()):
            if item.expires_at is not None and item.expires_at <= now:
                del held[place]
        return held

    def _move_items(self, old: str, new: str) -> None:
        """Hand a tenant's items to another; what is at a place already stays, and so does ours."""
        for owner in [owner for owner in self._items if owner.tenant == old]:
            here, there = self._held(owner), self._held(ItemOwner(new, owner.user))
            for place in [place for place in here if place not in there]:
                there[place] = here.pop(place)


def _item(change: Change, value: bytes, old: Item | None, now: float) -> Item:
    return Item(
        namespace=change.namespace,
        key=change.key,
        value=msgspec.Raw(value),
        version=old.version + 1 if old else 1,
        created_at=old.created_at if old else now,
        updated_at=now,
        expires_at=change.expires_at,
    )
