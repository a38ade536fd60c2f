"""What is known of a person, and of how to answer, as it goes into a prompt.

``look`` is the only I/O, begun while the session is being loaded; what fits is chosen afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proxy.memory.model import Recalled
from proxy.settings import ProfileSettings

CountText = Callable[[str], int]


def framed(kind: str, note: str, lines: str) -> str:
    """What a block is written as, or as good as: to count its tokens before it is."""
    return f'<memory version="1" kind="{kind}">\n{note}\n{lines}\n</memory>\n\n'


@dataclass(frozen=True, slots=True)
class Block:
    """A block of memory: its kind, what it says of itself, its lines, and where they are from.

    Kinds are "instructions" (for the system message), "profile", "facts", "episodes" (for the last
    user message).  ``tokens`` is the cost of the whole block with its tags, as counted by the
    ``count`` that chose it.
    """

    kind: str
    note: str
    lines: str
    tokens: int
    sources: tuple[Recalled, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What goes into one prompt.  ``tail`` in the order in which it is to stand there."""

    instructions: Block | None = None
    tail: tuple[Block, ...] = ()

    def __bool__(self) -> bool:
        return self.instructions is not None or bool(self.tail)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.tail if self.instructions is None else (self.instructions, *self.tail)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.blocks)


@dataclass(frozen=True, slots=True)
class Cards:
    """What a look has found, by kind: short extracts kept beside the items, as they are stored."""

    settings: ProfileSettings
    found: Mapping[str, bytes] = field(default_factory=dict)


class Knowledge(Protocol):
    """What the gateway asks."""

    def wanted(self, settings: ProfileSettings) -> bool:
        """Does the profile have anything that is learned?"""
        ...

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        """One round trip to each shelf.  Raises StoreError."""
        ...

    def choose(self, cards: Cards, question: str, budget: int, count: CountText) -> Known:
        """What fits into ``budget`` tokens and each feature's own ``max_tokens``; pure, fast.

        Instructions first, then the profile, then the facts that fit the question best (all of
        them, if all fit), then episodes like the question.
        """
        ...
