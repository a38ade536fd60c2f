"""What is known, looked up and chosen part by part: see :class:`proxy.learning.known.Knowledge`."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import NamedTuple, Protocol

from proxy.learning.known import Block, Cards, CountText, Known
from proxy.learning.likeness import Asked
from proxy.memory.items import Item, Items, Place, Shelf
from proxy.recall.question import Question, Sought, read
from proxy.settings import ProfileSettings

INSTRUCTIONS = "instructions"
"""The kind that goes into the system message."""


COUNTED = 1_000
"""Blocks whose tokens a process remembers."""


class Where(NamedTuple):
    """A card's place on its shelf."""

    shelf: Shelf
    place: Place


class Part(Protocol):
    """One kind of what is known, kept on a card: a short extract beside the items themselves."""

    @property
    def kind(self) -> str: ...

    def wants(self, settings: ProfileSettings) -> bool:
        """Is it switched on in this profile?"""
        ...

    def where(self, tenant: str, user: str | None, settings: ProfileSettings) -> Where | None:
        """Where its card is; None where there can be none."""
        ...

    def choose(
        self,
        card: bytes,
        settings: ProfileSettings,
        question: Asked,
        budget: int,
        count: CountText,
    ) -> Block | None:
        """What of the card's value goes into a prompt; pure, fast.

        A block costs at most ``budget`` tokens, of which the feature's own maximum may take less.
        Raises msgspec.DecodeError for a card that is none.
        """
        ...


class Late:
    """A question that is read when a part needs that: where all fits, none does."""

    def __init__(self, text: str, now: float) -> None:
        self._text, self._now = text, now

    @cached_property
    def _question(self) -> Question:
        return read(self._text, (), self._now)

    @property
    def empty(self) -> bool:
        return self._question.empty

    @property
    def words(self) -> tuple[Sought, ...]:
        return self._question.words

    @property
    def days(self) -> tuple[bytes, ...]:
        return self._question.days

    @property
    def names(self) -> tuple[bytes, ...]:
        return self._question.names


class CardFile:
    """Implements Knowledge.  ``parts`` in the order in which they may take from the budget.

    ``clock`` gives Unix seconds.
    """

    def __init__(self, items: Items, parts: Sequence[Part], clock: Callable[[], float]) -> None:
        self._items, self._parts, self._time = items, tuple(parts), clock
        self._counted: OrderedDict[tuple[CountText, str], int] = OrderedDict()

    def wanted(self, settings: ProfileSettings) -> bool:
        return any(part.wants(settings) for part in self._parts)

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        wanted: dict[Shelf, dict[str, Place]] = {}
        for part in self._parts:
            where = part.where(tenant, user, settings) if part.wants(settings) else None
            if where is not None:
                wanted.setdefault(where.shelf, {})[part.kind] = where.place
        looks = (self._at(shelf, places.values()) for shelf, places in wanted.items())
        found = await asyncio.gather(*looks)
        return Cards(
            settings,
            {
                kind: bytes(items[place].value)
                for places, items in zip(wanted.values(), found, strict=True)
                for kind, place in places.items()
                if place in items
            },
        )

    async def _at(self, shelf: Shelf, places: Collection[Place]) -> dict[Place, Item]:
        return await self._items.items_at(shelf, places)

    def choose(self, cards: Cards, question: str, budget: int, count: CountText) -> Known:
        if not cards.found:
            return Known()
        asked = Late(question, self._time())
        remembered = partial(self._count, count)
        blocks: list[Block] = []
        for part in self._parts:
            card = cards.found.get(part.kind)
            block = part.choose(card, cards.settings, asked, budget, remembered) if card else None
            if block is not None:
                budget -= block.tokens
                blocks.append(block)
        first = next((block for block in blocks if block.kind == INSTRUCTIONS), None)
        return Known(first, tuple(block for block in blocks if block is not first))

    def _count(self, count: CountText, text: str) -> int:
        """Tokens of a block: it is the same from turn to turn, and counting takes a while."""
        tokens = self._counted.get((count, text))
        if tokens is None:
            tokens = self._counted[count, text] = count(text)
            if len(self._counted) > COUNTED:
                self._counted.popitem(last=False)
        return tokens
