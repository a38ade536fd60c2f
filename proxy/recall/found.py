"""What recall found, and how it is written into a prompt.  Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from proxy.recall.wanted import CountText

LABEL = -1
"""What a line costs more than its message would: the role is shorter than a message's frame."""

HEADING = 1.4
"""Characters to a token of the line with a day."""

Kind = Literal["passage", "instruction", "preference"]


@dataclass(frozen=True, slots=True)
class Found:
    """A message, or the part of it in ``text``, that is to be recalled.

    ``tokens`` are those of ``text``, ``created_at`` is in Unix seconds, ``score`` is 0 to about 1.
    """

    kind: Kind
    text: str
    message: str
    session: str
    seq: int
    role: str
    tokens: int
    created_at: float
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    place: int = 0
    """Which of the wishes in its message this is."""

    @property
    def id(self) -> str:
        return self.message if self.kind == "passage" else f"{self.message}:{self.place}"


@dataclass(frozen=True, slots=True)
class Recollection:
    """What is to go into one prompt: passages, best first, and standing wishes, newest first.

    There may be more than fits: tokens are estimates until the lines are written.
    """

    passages: tuple[Found, ...] = ()
    wishes: tuple[Found, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.passages or self.wishes)

    @property
    def all(self) -> tuple[Found, ...]:
        return (*self.wishes, *self.passages)

    def fitted(self, own: str, cost: Cost, budget: int) -> Recollection:
        """As much of it as fits into ``budget`` tokens, in this order; what does not is skipped."""
        wishes, left = _wishes_within(self.wishes, cost, budget)
        return Recollection(_passages_within(self.passages, own, cost, left), wishes)


@dataclass(frozen=True, slots=True)
class Cost:
    """What the parts of a prompt cost in tokens.

    ``frame`` is a block beside its lines.  Without ``count`` the lines are estimated: counting
    them one by one takes longer than to find them.
    """

    frame: int
    count: CountText | None = None

    def line(self, one: Found, text: str) -> int:
        return one.tokens + LABEL if self.count is None else self.count(f"{text}\n")

    def heading(self, text: str) -> int:
        return int(len(text) / HEADING) if self.count is None else self.count(f"{text}\n")


def _wishes_within(found: Sequence[Found], cost: Cost, left: int) -> tuple[tuple[Found, ...], int]:
    kept: list[Found] = []
    for wish in found:
        tokens = cost.line(wish, _wish(wish)) + (0 if kept else cost.frame)
        if tokens <= left:
            left -= tokens
            kept.append(wish)
    return tuple(kept), left


def _passages_within(found: Sequence[Found], own: str, cost: Cost, left: int) -> tuple[Found, ...]:
    kept: list[Found] = []
    sessions: set[str] = set()
    for one in found:
        tokens = cost.line(one, _line(one)) + (0 if kept else cost.frame)
        if one.session not in sessions:
            tokens += cost.heading(_heading(one.created_at, own=one.session == own))
        if tokens <= left:
            left -= tokens
            kept.append(one)
            sessions.add(one.session)
    return tuple(kept)


def order_of(found: Sequence[Found]) -> list[int]:
    """The indexes of passages in the order in which they are written: by session and in time."""
    began: dict[str, float] = {}
    for one in found:
        began[one.session] = min(one.created_at, began.get(one.session, one.created_at))
    keys = [(began[one.session], one.session, one.seq) for one in found]
    return sorted(range(len(found)), key=keys.__getitem__)


def passage_lines(found: Sequence[Found], own: str) -> str:
    """Passages as they were said: by session and in time, under a line with the day.

    ``own`` is the session that is asked in.  Lines of a message but its first are indented, so that
    none can pass for another message.
    """
    ordered = [found[n] for n in order_of(found)]
    lines: list[str] = []
    for session, group in groupby(ordered, key=lambda f: f.session):
        said = list(group)
        lines.append(_heading(min(one.created_at for one in said), own=session == own))
        lines += map(_line, said)
    return "\n".join(lines)


def wish_lines(found: Sequence[Found]) -> str:
    """Standing wishes, one a line."""
    return "\n".join(map(_wish, found))


def _heading(at: float, *, own: bool) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(at))
    return f"[{day}, this conversation]" if own else f"[{day}]"


def _line(one: Found) -> str:
    return f"{one.role}: {_indented(one.text)}"


def _wish(one: Found) -> str:
    return f"- {_indented(one.text)}"


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())
