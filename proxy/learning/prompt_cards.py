"""Selects learned memory for a prompt from the cards of a person and a tenant.

``look`` is the only I/O, begun while the session is being loaded; ``choose`` selects what fits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from proxy.learning.similarity import QueryText
from proxy.memory.items import PEOPLE, ItemOwner, Items, Place
from proxy.memory.model import Recalled
from proxy.settings import ProfileSettings
from proxy.settings.learned import LearnedSettings

CountText = Callable[[str], int]


def render_block(kind: str, note: str, lines: str) -> str:
    """A block as text, close enough to its final form to count its tokens."""
    return f'<memory version="1" kind="{kind}">\n{note}\n{lines}\n</memory>\n\n'


class Block(msgspec.Struct, frozen=True):
    """A block of memory in a prompt: its kind, introductory ``note``, lines, and their sources.

    ``tokens`` is the count of the whole block with its tags.
    """

    kind: str
    note: str
    lines: str
    tokens: int
    sources: tuple[Recalled, ...] = ()


class KnownBlocks(msgspec.Struct, frozen=True):
    """The blocks of learned memory for one prompt, in their order.

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
        return sum([block.tokens for block in self.blocks])


class Cards(msgspec.Struct, frozen=True):
    """The cards that were found, encoded, by kind."""

    settings: ProfileSettings
    found: Mapping[str, bytes] = msgspec.field(default_factory=dict)


MAX_CACHED_COUNTS = 1_000
"""Blocks whose token counts a process caches."""


CARDS = "card"
"""Third label of the namespace of a person's cards."""


class CardPlace(NamedTuple):
    """Whose card it is, and its place among that owner's items."""

    owner: ItemOwner
    place: Place


def card_place(user: str, kind: str) -> Place:
    """Where a person's card is stored."""
    return Place((PEOPLE, user, CARDS), kind)


class TokenBudget(msgspec.Struct, frozen=True):
    """A limit of ``tokens``, counted by ``count``; ``now`` in Unix seconds."""

    tokens: int
    count: CountText
    now: float

    def within(self, most: int) -> TokenBudget:
        """The same with at most ``most`` tokens."""
        return replace(self, tokens=min(self.tokens, most))


class CardKind(Protocol):
    """A kind of learned memory with a card: a short extract stored beside the items."""

    @property
    def name(self) -> str: ...

    @property
    def shared(self) -> bool:
        """Whether it is the tenant's, for the system message, and not a person's."""
        ...

    def settings(self, profile: ProfileSettings) -> LearnedSettings:
        """Its part of a profile."""
        ...

    def card_place(
        self, tenant: str, user: str | None, profile: ProfileSettings
    ) -> CardPlace | None:
        """Where its card is stored; None without a user whose card it could be."""
        ...

    def choose(
        self, card: bytes, profile: ProfileSettings, query: QueryText, budget: TokenBudget
    ) -> Block | None:
        """The block for a prompt from the card's value, None if nothing fits; pure, fast.

        Raises msgspec.DecodeError for an invalid card.
        """
        ...


class PromptCards:
    """``kinds`` in the order in which they may take from the budget.

    ``clock`` gives Unix seconds.
    """

    def __init__(self, items: Items, kinds: Sequence[CardKind], clock: Callable[[], float]) -> None:
        self._items, self._kinds, self._time = items, tuple(kinds), clock
        self._counted: LRUCache[tuple[CountText, int], int] = LRUCache(MAX_CACHED_COUNTS)

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        """Load the cards, in one round trip for each owner.  Raises StoreError."""
        wanted: dict[ItemOwner, dict[str, Place]] = {}
        for kind in self._kinds:
            on = kind.settings(settings).enabled
            where = kind.card_place(tenant, user, settings) if on else None
            if where is not None:
                wanted.setdefault(where.owner, {})[kind.name] = where.place
        looks = (self._items.items_at(owner, x.values()) for owner, x in wanted.items())
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

    def choose(self, cards: Cards, query: str, budget: int, count: CountText) -> KnownBlocks:
        """The blocks that fit into ``budget`` tokens and each kind's ``max_tokens``; pure, fast."""
        if not cards.found:
            return KnownBlocks()
        now = self._time()
        query_text = QueryText(query, now, cards.settings.recall.zone)
        counted = partial(self._count, count)
        head: list[Block] = []
        tail: list[Block] = []
        for kind in self._kinds:
            card = cards.found.get(kind.name)
            limit = TokenBudget(budget, counted, now).within(
                kind.settings(cards.settings).max_tokens
            )
            block = kind.choose(card, cards.settings, query_text, limit) if card else None
            if block is not None:
                budget -= block.tokens
                (head if kind.shared else tail).append(block)
        return KnownBlocks(tuple(head), tuple(tail))

    def _count(self, count: CountText, text: str) -> int:
        """The tokens of a block, cached since it is the same from turn to turn.

        The key is its hash, so that no text is held in memory.
        """
        known = (count, hash(text))
        tokens = self._counted.get(known)
        if tokens is None:
            tokens = self._counted[known] = count(text)
        return tokens


FRAME_TOKENS = 48
"""Estimated tokens of a block without its lines."""


class Priced(Protocol):
    """Something that costs ``tokens`` in a prompt."""

    @property
    def tokens(self) -> int: ...


PricedT = TypeVar("PricedT", bound=Priced)


def within_budget(
    scored: Iterable[tuple[float, PricedT]], budget: int
) -> Iterator[tuple[float, PricedT]]:
    """Those that fit into ``budget`` tokens together, in order, skipping each that does not."""
    for score, one in scored:
        if one.tokens <= budget:
            budget -= one.tokens
            yield score, one


PartT = TypeVar("PartT")


class Fitted(NamedTuple):
    """The first ``parts`` parts as text, and the tokens of a block of them."""

    parts: int
    lines: str
    tokens: int


def fit_block(
    kind: str,
    note: str,
    parts: Sequence[PartT],
    render: Callable[[Sequence[PartT]], str],
    budget: TokenBudget,
) -> Fitted | None:
    """As many of the first parts as fit into a block; None if none does."""
    while parts:
        lines = render(parts)
        tokens = budget.count(render_block(kind, note, lines))
        if tokens <= budget.tokens:
            return Fitted(len(parts), lines, tokens)
        parts = parts[: len(parts) * budget.tokens // (tokens + 1)]
    return None


def whole_block(kind: str, note: str, lines: Sequence[str], budget: TokenBudget) -> Block | None:
    """A block of the first lines that fit, with itself as its only source; None if none does."""
    found = fit_block(kind, note, lines, "\n".join, budget)
    if found is None:
        return None
    source = Recalled(kind=kind, message="", session="", seq=0, tokens=found.tokens)
    return Block(kind, note, found.lines, found.tokens, (source,))
