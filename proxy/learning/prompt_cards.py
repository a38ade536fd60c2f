"""What is known of a person, and of how to answer, chosen for a prompt.

``look`` is the only I/O, begun while the session is being loaded; what fits is chosen afterwards.

The texts are few and short (facts, examples) and lie together on a card, so that all of them are
compared at once, without an index.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from proxy.memory.items import PEOPLE, Item, ItemOwner, Items, Place
from proxy.memory.model import Recalled
from proxy.recall.query.question import Question, Sought, read
from proxy.recall.query.words import analyse
from proxy.settings import ProfileSettings
from proxy.settings.written import LearnedSettings

SIZE = 4
"""Bytes that are kept of a term: a card is loaded with every request."""

IMAGINED = 40
"""Texts without any of the words, beside those there are: of two texts both may have a word that
still says something."""

NOWHERE = 1 / 20
"""A word that no text has counts as one in this share of them."""

Scores = NDArray[np.float64]


def terms_in(text: str, time: float) -> bytes:
    """What a text of that time (Unix seconds) is found by, packed."""
    return b"".join(sorted(term[:SIZE] for term in analyse(text, time).terms))


class Asked(Protocol):
    """A question, read; see :class:`proxy.recall.query.question.Question`."""

    @property
    def empty(self) -> bool: ...
    @property
    def words(self) -> tuple[Sought, ...]: ...
    @property
    def days(self) -> tuple[bytes, ...]: ...
    @property
    def names(self) -> tuple[bytes, ...]: ...


class Words:
    """The terms of several texts: ``sizes`` are the numbers of terms, ``packed`` is all of them."""

    def __init__(self, sizes: Sequence[int], packed: bytes) -> None:
        self._texts = len(sizes)
        self._terms = np.frombuffer(packed, "<u4")
        self._owner = np.repeat(np.arange(self._texts), sizes)

    @classmethod
    def of(cls, packed: Iterable[bytes]) -> Words:
        parts = list(packed)
        return cls([len(part) // SIZE for part in parts], b"".join(parts))

    def likeness(self, question: Asked) -> Scores:
        """For each text the share, 0 to 1, of what the question asks for that it has.

        What is only near a word in meaning does not count: a text is a line, all of which is shown.
        """
        sought = [(word.terms, word.weight) for word in question.words if not word.near]
        sought += [((day,), 1.0) for day in (*question.days, *question.names)]
        if not sought:
            return np.zeros(self._texts)
        having = self._having([terms for terms, _ in sought])
        worth = np.array([weight for _, weight in sought]) * self._rarity(having.sum(axis=0))
        whole = worth.sum()
        return np.asarray(having @ worth / whole if whole else np.zeros(self._texts))

    def _having(self, sought: Sequence[Sequence[bytes]]) -> NDArray[np.bool_]:
        """Which text (row) has one of the terms that each of these (columns) is sought by."""
        packed = b"".join(term[:SIZE] for terms in sought for term in terms)
        which = np.repeat(np.arange(len(sought)), [len(terms) for terms in sought])
        at, of = np.nonzero(self._terms[:, None] == np.frombuffer(packed, "<u4")[None, :])
        having = np.zeros((self._texts, len(sought)), np.bool_)
        having[self._owner[at], which[of]] = True
        return having

    def _rarity(self, having: NDArray[np.int64]) -> Scores:
        """The idf of Lucene's BM25, which is never negative."""
        texts = self._texts + IMAGINED
        having_it = np.where(having > 0, having, NOWHERE * texts)
        return np.asarray(np.log1p((texts - having_it + 0.5) / (having_it + 0.5)))


CountText = Callable[[str], int]


def framed(kind: str, note: str, lines: str) -> str:
    """What a block is written as, or as good as: to count its tokens before it is."""
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
        self, card: bytes, profile: ProfileSettings, question: Asked, room: Allowance
    ) -> Block | None:
        """What of the card's value goes into a prompt; pure, fast.

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


class PromptCards:
    """``kinds`` in the order in which they may take from the budget.

    ``clock`` gives Unix seconds.
    """

    def __init__(self, items: Items, kinds: Sequence[CardKind], clock: Callable[[], float]) -> None:
        self._items, self._kinds, self._time = items, tuple(kinds), clock
        self._counted: OrderedDict[tuple[CountText, int], int] = OrderedDict()

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
        asked, counted = Late(question, now), partial(self._count, count)
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
            if len(self._counted) > COUNTED:
                self._counted.popitem(last=False)
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
