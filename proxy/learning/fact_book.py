"""Where a person's facts are kept: read as a whole, changed as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from proxy.learning.fact import FACTS, Fact, Filed, fact_place
from proxy.learning.fact_card import FactCard, card_of, card_place, read_card
from proxy.learning.forgetting import ATTEMPTS, Busy, anything
from proxy.memory.items import PEOPLE, Change, Item, Items, Place, Shelf, all_items

PAGE = 500

T = TypeVar("T")
Facts = dict[str, Fact]
"""All facts of a person, by id."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The facts as they lie on a shelf; ``seen`` is the version of the card, 0 without one."""

    filed: Mapping[str, Filed] = field(default_factory=dict)
    card: FactCard = FactCard()
    seen: int = 0

    @property
    def facts(self) -> Facts:
        return {id: filed.fact for id, filed in self.filed.items()}


class FactBook:
    """All methods raise StoreError.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    def __init__(
        self, items: Items, count: Callable[[str], int], clock: Callable[[], float]
    ) -> None:
        self._items, self._count, self.clock = items, count, clock

    async def card(self, shelf: Shelf) -> FactCard:
        """What is known at a glance, in one round trip."""
        item = await self._card(shelf)
        return _read(item)

    async def find(self, shelf: Shelf, fact: str) -> Filed | None:
        place = fact_place(shelf.user, fact)
        item = (await self._items.items_at(shelf, [place])).get(place)
        return _filed(item) if item else None

    async def load(self, shelf: Shelf) -> Kept:
        """All facts.  The card is read first: whatever changes meanwhile changes its version."""
        card = await self._card(shelf)
        filed = {item.key: _filed(item) async for item in self._all(shelf)}
        return Kept(filed, _read(card), card.version if card else 0)

    async def save(
        self,
        shelf: Shelf,
        kept: Kept,
        facts: Mapping[str, Fact],
        also: Sequence[Change] = (),
        since: float | None = None,
    ) -> bool:
        """Make the facts what they are now, with other changes; False if any were changed since.

        What they are made from was read at ``since``: see Items.change_items.
        """
        changes = [*_changes(shelf, kept, facts)]
        if changes:
            changes.append(self._card_change(shelf, kept, facts))
        if not changes and not also:
            return True
        return await self._items.change_items(shelf, [*changes, *also], since)

    async def change(
        self,
        shelf: Shelf,
        make: Callable[[Facts], T],
        since: float | None = None,
        check: Callable[[Kept], None] = anything,
    ) -> T:
        """Let ``make`` change the facts, which it gets as they are, and store what it has made.

        ``check`` raises where they are not what the change is meant for.  Both may be called more
        than once.  What ``make`` adds was read at ``since``: see ``save``.  Raises Busy, and what
        they raise.
        """
        for _ in range(ATTEMPTS):
            kept = await self.load(shelf)
            check(kept)
            facts = kept.facts
            made = make(facts)
            if await self.save(shelf, kept, facts, since=since):
                return made
        raise Busy

    def _card_change(self, shelf: Shelf, kept: Kept, facts: Mapping[str, Fact]) -> Change:
        place = card_place(shelf.user, FACTS)
        card = card_of(facts.values(), kept.card, self._count, self.clock())
        return _put(place, card, kept.seen)

    async def _card(self, shelf: Shelf) -> Item | None:
        place = card_place(shelf.user, FACTS)
        return (await self._items.items_at(shelf, [place])).get(place)

    def _all(self, shelf: Shelf) -> AsyncIterator[Item]:
        return all_items(self._items, shelf, (PEOPLE, shelf.user, FACTS), PAGE)


def _changes(shelf: Shelf, kept: Kept, facts: Mapping[str, Fact]) -> list[Change]:
    """What is new or different is put, and what is gone is deleted."""
    changes = [
        _put(fact_place(shelf.user, id), fact, kept.filed[id].version if id in kept.filed else 0)
        for id, fact in facts.items()
        if id not in kept.filed or kept.filed[id].fact != fact
    ]
    for id in kept.filed.keys() - facts.keys():
        namespace, key = fact_place(shelf.user, id)
        changes.append(Change(namespace=namespace, key=key, value=None))
    return changes


def _put(place: Place, value: Fact | FactCard, after: int) -> Change:
    encoded = msgspec.json.encode(value)
    return Change(namespace=place.namespace, key=place.key, value=encoded, after=after)


def _filed(item: Item) -> Filed:
    fact = msgspec.json.decode(item.value, type=Fact)
    return Filed(fact, item.version, item.created_at, item.updated_at)


def _read(item: Item | None) -> FactCard:
    return read_card(bytes(item.value)) if item else FactCard()
