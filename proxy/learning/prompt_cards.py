"""Blocks of learned memory in a prompt; they are chosen from cards, extracts beside the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import msgspec

from proxy.memory.items import PEOPLE, Place
from proxy.memory.model import Recalled
from proxy.recall.text_cache import text_cache
from proxy.settings import ProfileSettings

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


CACHED_CARDS = 32
"""Cards of each kind whose contents a process caches."""

MAX_CACHED_BYTES = 128 * 1024
"""Larger cards are read again with each request."""

P = ParamSpec("P")
T = TypeVar("T")


def card_cache(compute: Callable[Concatenate[bytes, P], T]) -> Callable[Concatenate[bytes, P], T]:
    """Decorates a pure function of a card and more: cards are the same from turn to turn."""
    cached = cast("Callable[Concatenate[bytes, P], T]", text_cache(CACHED_CARDS)(compute))

    def known(card: bytes, /, *args: P.args, **kwargs: P.kwargs) -> T:
        small = len(card) <= MAX_CACHED_BYTES
        return (cached if small else compute)(card, *args, **kwargs)

    return known


CARDS = "card"
"""Third label of the namespace of a person's cards."""


def card_place(user: str, kind: str) -> Place:
    return Place((PEOPLE, user, CARDS), kind)


class TokenBudget(msgspec.Struct, frozen=True):
    """A limit of ``tokens``, counted by ``count``; ``now`` in Unix seconds."""

    tokens: int
    count: CountText
    now: float


FRAME_TOKENS = 48
"""Estimated tokens of a block without its lines."""


def within_budget(places: Iterable[int], tokens: Sequence[int], budget: int) -> list[int]:
    """Those of the indexes ``places`` whose ``tokens`` fit into the budget together, in order,
    skipping each that does not."""
    found = []
    for place in places:
        if tokens[place] <= budget:
            budget -= tokens[place]
            found.append(place)
    return found


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
    budget: int,
    count: CountText,
) -> Fitted | None:
    """As many of the first parts as fit into a block of ``budget`` tokens; None if none does."""
    while parts:
        lines = render(parts)
        tokens = count(render_block(kind, note, lines))
        if tokens <= budget:
            return Fitted(len(parts), lines, tokens)
        parts = parts[: len(parts) * budget // (tokens + 1)]
    return None


def whole_block(
    kind: str, note: str, lines: Sequence[str], tokens: int, count: CountText
) -> Block | None:
    """A block of the first lines that fit into ``tokens`` tokens, with itself as its only source;
    None if none does."""
    found = fit_block(kind, note, lines, "\n".join, tokens, count)
    if found is None:
        return None
    source = Recalled(kind=kind, message="", session="", seq=0, tokens=found.tokens)
    return Block(kind, note, found.lines, found.tokens, (source,))
