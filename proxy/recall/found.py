"""What recall found, and how it is written into a prompt.  Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple

from proxy.recall.wanted import CountText

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

    def fitted(self, own: str, count: CountText, budget: int, frame: int) -> Fitted:
        """As much of it as fits into ``budget`` tokens, in this order, what does not is skipped.

        ``frame`` is what a block costs beside its lines.
        """
        wishes, left = _wishes_within(self.wishes, count, budget, frame)
        passages, left = _passages_within(self.passages, own, count, left, frame)
        return Fitted(Recollection(tuple(passages), tuple(wishes)), budget - left)


class Fitted(NamedTuple):
    """What fits, and the tokens of all its lines and frames."""

    recollection: Recollection
    tokens: int


def _wishes_within(
    found: Sequence[Found], count: CountText, left: int, frame: int
) -> tuple[list[Found], int]:
    kept: list[Found] = []
    for wish in found:
        cost = count(f"{_wish(wish)}\n") + (0 if kept else frame)
        if cost <= left:
            left -= cost
            kept.append(wish)
    return kept, left


def _passages_within(
    found: Sequence[Found], own: str, count: CountText, left: int, frame: int
) -> tuple[list[Found], int]:
    kept: list[Found] = []
    sessions: set[str] = set()
    for one in found:
        cost = count(f"{_line(one)}\n") + (0 if kept else frame)
        if one.session not in sessions:
            cost += count(f"{_heading(one.created_at, own=one.session == own)}\n")
        if cost <= left:
            left -= cost
            kept.append(one)
            sessions.add(one.session)
    return kept, left


def passage_lines(found: Sequence[Found], own: str) -> str:
    """Passages as they were said: by session and in time, under a line with the day.

    ``own`` is the session that is asked in.  Lines of a message but its first are indented, so that
    none can pass for another message.
    """
    began: dict[str, float] = {}
    for one in found:
        began[one.session] = min(one.created_at, began.get(one.session, one.created_at))
    ordered = sorted(found, key=lambda f: (began[f.session], f.session, f.seq))
    lines: list[str] = []
    for session, group in groupby(ordered, key=lambda f: f.session):
        lines.append(_heading(began[session], own=session == own))
        lines += map(_line, group)
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
