"""What is known of a person, and of how to answer, chosen for a prompt.

``look`` is the only I/O, begun while the session is being loaded; what fits is chosen afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from proxy.learning.likeness import QueryText
from proxy.memory.items import PEOPLE, Item, ItemOwner, Items, Place
from proxy.memory.model import Recalled
from proxy.settings import ProfileSettings
from proxy.settings.written import LearnedSettings

CountText = Callable[[str], int]


def framed(kind: str, note: str, lines: str) -> str:
    """A block as text, near enough to count its tokens by before it is rendered."""
    return f'<memory version="1" kind="{kind}">\n{note}\n{lines}\n</memory>\n\n'


class Block(msgspec.Struct, frozen=True):
    """A block of memory: its kind, what it says of itself, its lines, and where they are from.

    ``tokens`` is the cost of the whole block with its tags, as counted by the ``count`` that chose
    it.
    """

    kind: str
    note: str
    lines: str
    tokens: int
    sources: tuple[Recalled, ...] = ()


class Known(msgspec.Struct, frozen=True):
    """What goes into one prompt, in the order in which it is to stand there.

    ``head`` is for the system message, ``tail`` for the last user message.
    """

    head: tuple[Block, ...] = ()
    tail: tuple[Block, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.head or self.tail)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.head + self.tail

    @property
    def tokens(self) -> int:
        return sum([part.tokens for part in self.head + self.tail])


class Cards(msgspec.Struct, frozen=True):
    """What a look has found, by kind: short extracts kept beside the items, as they are stored."""

    settings: ProfileSettings
    found: Mapping[str, bytes] = msgspec.field(default_factory=dict)


COUNTED = 1_000
"""Blocks whose tokens a process remembers."""


CARDS = "card"
"""Third label of the namespace of a person's cards."""


class Where(NamedTuple):
    """A card's place on its shelf."""

    shelf: ItemOwner
    place: Place


def card_place(user: str, kind: str) -> Place:
    """Where a card of a person is kept."""
    return Place((PEOPLE, user, CARDS), kind)


class Allowance(msgspec.Struct, frozen=True):
    """At most so many ``tokens``, as ``count`` counts them; ``now`` in Unix seconds."""

    tokens: int
    count: CountText
    now: float

    def within(self, most: int) -> Allowance:
        """The same, if it is not more than this."""
        return replace(self, tokens=min(self.tokens, most))


class CardKind(Protocol):
    """One kind of what is known, kept on a card: a short extract beside the items themselves."""

    @property
    def name(self) -> str: ...

    @property
    def shared(self) -> bool:
        """Is it everybody's, in the system message, and not a person's?"""
        ...

    def settings(self, profile: ProfileSettings) -> LearnedSettings:
        """Its part of a profile."""
        ...

    def where(self, tenant: str, user: str | None, profile: ProfileSettings) -> Where | None:
        """Where its card is; None where there can be none."""
        ...

    def choose(
        self, card: bytes, profile: ProfileSettings, question: QueryText, room: Allowance
    ) -> Block | None:
        """What of the card's value goes into a prompt; pure, fast.

        Raises msgspec.DecodeError for a card that is none.
        """
        ...


class PromptCards:
    """``kinds`` in the order in which they may take from the budget.

    ``clock`` gives Unix seconds.
    """

    def __init__(self, items: Items, kinds: Sequence[CardKind], clock: Callable[[], float]) -> None:
        self._items, self._kinds, self._time = items, tuple(kinds), clock
        self._counted: LRUCache[tuple[CountText, int], int] = LRUCache(COUNTED)

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        """One round trip to each shelf.  Raises StoreError."""
        wanted: dict[ItemOwner, dict[str, Place]] = {}
        for kind in self._kinds:
            on = kind.settings(settings).enabled
            where = kind.where(tenant, user, settings) if on else None
            if where is not None:
                wanted.setdefault(where.shelf, {})[kind.name] = where.place
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

    async def _at(self, shelf: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        return await self._items.items_at(shelf, places)

    def choose(self, cards: Cards, question: str, budget: int, count: CountText) -> Known:
        """What fits into ``budget`` tokens and each kind's own ``max_tokens``; pure, fast."""
        if not cards.found:
            return Known()
        now = self._time()
        asked = QueryText(question, now, cards.settings.recall.zone)
        counted = partial(self._count, count)
        head: list[Block] = []
        tail: list[Block] = []
        for kind in self._kinds:
            card = cards.found.get(kind.name)
            room = Allowance(budget, counted, now).within(kind.settings(cards.settings).max_tokens)
            block = kind.choose(card, cards.settings, asked, room) if card else None
            if block is not None:
                budget -= block.tokens
                (head if kind.shared else tail).append(block)
        return Known(tuple(head), tuple(tail))

    def _count(self, count: CountText, text: str) -> int:
        """Tokens of a block: it is the same from turn to turn, and counting takes a while.

        They are kept by its hash, so that nothing that could be read is.
        """
        known = (count, hash(text))
        tokens = self._counted.get(known)
        if tokens is None:
            tokens = self._counted[known] = count(text)
        return tokens


FRAME = 48
"""Tokens of a block beside its lines, about."""


class Priced(Protocol):
    """Something that costs ``tokens`` in a prompt."""

    @property
    def tokens(self) -> int: ...


PricedT = TypeVar("PricedT", bound=Priced)


def affordable(
    scored: Iterable[tuple[float, PricedT]], room: int
) -> Iterator[tuple[float, PricedT]]:
    """Those that fit into ``room`` tokens together, in this order; what does not is skipped."""
    for score, one in scored:
        if one.tokens <= room:
            room -= one.tokens
            yield score, one


class Fitted(NamedTuple):
    """The first ``parts`` parts as lines, and the tokens of a block of them."""

    parts: int
    lines: str
    tokens: int


def fitted(
    kind: str, note: str, parts: Sequence[str], joint: str, room: Allowance
) -> Fitted | None:
    """As many of the first parts as there is room for in a block; None if there is for none."""
    while parts:
        lines = joint.join(parts)
        tokens = room.count(framed(kind, note, lines))
        if tokens <= room.tokens:
            return Fitted(len(parts), lines, tokens)
        parts = parts[: len(parts) * room.tokens // (tokens + 1)]
    return None


def whole_block(kind: str, note: str, lines: Sequence[str], room: Allowance) -> Block | None:
    """The first lines that fit, of what is one thing and has no parts to name."""
    found = fitted(kind, note, lines, "\n", room)
    if found is None:
        return None
    source = Recalled(kind=kind, message="", session="", seq=0, tokens=found.tokens)
    return Block(kind, note, found.lines, found.tokens, (source,))
