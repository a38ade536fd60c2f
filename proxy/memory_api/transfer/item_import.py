"""Stores the items of an import with those of their owner.

Items whose place is taken are skipped.  Learned items that belong together are imported together or
not at all: an existing profile excludes an imported one with all its versions, as do instructions.
Cards, the texts for prompts, are written again where facts or episodes were added to existing ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from proxy.learning.collection import update
from proxy.learning.facts.fact import FACTS, MAX_GIVEN, MAX_IMPORTED, Fact, count_given
from proxy.learning.kinds import is_card
from proxy.learning.learned import Learned
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, Items, Place

AT_ONCE = 200
"""Items that are stored by one call."""


class Adopted(NamedTuple):
    """How many items were stored, and how many skipped."""

    put: int
    skipped: int


class ItemImporter:
    """Stores items of an import, except those whose place is taken."""

    def __init__(self, items: Items, learned: Learned) -> None:
        self._items, self._kinds, self._resources = items, learned.kinds, learned.resources
        self._facts = learned.facts

    async def adopt(self, owner: ItemOwner, items: Sequence[Item], since: float) -> Adopted:
        """Store the items whose place is free; none if the person was erased at ``since`` or later.
        Raises ValueError as :meth:`check` does, StoreError, and Busy."""
        async with self._resources.owner_locks.hold(owner):  # nothing is added to what was counted
            await self.check(owner, items)
            occupied = await self._places_with_other_value(owner, items)
            accepted = [
                item for item in items if self._kinds.current_place_of(item) not in occupied
            ]
            cards = [item for item in accepted if is_card(item)]
            put = await self._put(owner, [item for item in accepted if not is_card(item)], since)
            existing_cards = await self._items.items_at(owner, [card.place for card in cards])
            put_cards = await self._put(owner, cards, since)  # last: they refer to the others
        if put and existing_cards:
            await self._remake_cards(owner, {place.key for place in existing_cards}, since)
        return Adopted(put + put_cards, len(items) - put - put_cards)

    async def check(self, owner: ItemOwner, items: Sequence[Item]) -> None:
        """Raises ValueError for invalid learned items and for too many facts, and StoreError."""
        invalid = await asyncio.to_thread(self._first_invalid, items)
        if invalid is not None:
            where = "/".join((*invalid.namespace, invalid.key))
            raise ValueError(f"an item at {where} that is not what belongs there")
        await self._check_facts(owner, items)

    def _first_invalid(self, items: Sequence[Item]) -> Item | None:
        """The first reserved item with an invalid value; slow for many items."""
        kinds = self._kinds
        reserved = (item for item in items if kinds.is_reserved(item.namespace))
        return next((item for item in reserved if not kinds.is_sound(item)), None)

    async def _check_facts(self, owner: ItemOwner, items: Sequence[Item]) -> None:
        place = (PEOPLE, owner.user, FACTS)
        imported = [item for item in items if item.namespace == place]
        stored = (await self._facts.load(owner)).facts if imported else {}
        new = [item for item in imported if item.key not in stored]
        if new and len(stored) + len(new) > MAX_IMPORTED:
            raise ValueError(_too_many("facts of one person", MAX_IMPORTED))
        facts = [*stored.values(), *(msgspec.json.decode(item.value, type=Fact) for item in new)]
        if new and count_given(facts) > MAX_GIVEN:
            description = "facts of one person that were added, saved or imported"
            raise ValueError(_too_many(description, MAX_GIVEN))

    async def count_existing(self, owner: ItemOwner, items: Sequence[Item]) -> int:
        """How many of these exist already.  Raises StoreError."""
        count = 0
        for start in range(0, len(items), AT_ONCE):
            places = [item.place for item in items[start : start + AT_ONCE]]
            count += len(await self._items.items_at(owner, places))
        return count

    async def remake_card(self, owner: ItemOwner, since: float) -> None:
        """Write a person's card of facts.  Raises StoreError, and Busy, also if the person was
        erased at ``since`` or later."""
        await self._remake_cards(owner, {FACTS}, since)

    async def _places_with_other_value(
        self, owner: ItemOwner, items: Sequence[Item]
    ) -> set[Place | None]:
        """The places of current profiles and instructions that hold another value already."""
        values = {item.place: bytes(item.value) for item in items}
        current_places = {
            current for item in items if (current := self._kinds.current_place_of(item))
        }
        stored = await self._items.items_at(owner, current_places)
        return {place for place, item in stored.items() if bytes(item.value) != values.get(place)}

    async def _put(self, owner: ItemOwner, items: Sequence[Item], since: float) -> int:
        put = 0
        for start in range(0, len(items), AT_ONCE):
            put += await self._items.adopt_items(owner, items[start : start + AT_ONCE], since)
        return put

    async def _remake_cards(
        self, owner: ItemOwner, features: Collection[str], since: float
    ) -> None:
        for kind in self._kinds.ranked:
            if kind.make_listed_store is not None and kind.name in features:
                await self._write_card(
                    owner, kind.make_listed_store(self._resources).card_change, since
                )

    async def _write_card(
        self, owner: ItemOwner, card_change: Callable[[ItemOwner], Awaitable[Change]], since: float
    ) -> None:
        async def step() -> tuple[None, Sequence[Change]]:
            return None, [await card_change(owner)]

        await update(self._items, self._resources.owner_locks, owner, step, since)


def _too_many(description: str, most: int) -> str:
    return f"with those that are there, over {most:,} {description}"
