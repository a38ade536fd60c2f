"""The results of recall, and how they are rendered into a prompt.  Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from proxy.memory.archive import Message
from proxy.memory.model import Card, Recalled
from proxy.recall.lexicon.loader import vocabulary
from proxy.recall.query.dates import DAY
from proxy.recall.query.query import CountText
from proxy.recall.query.speakers import speaker_term
from proxy.recall.ranking.packing import NOTE_FLAGS, check_of, scale_tokens
from proxy.recall.ranking.score import Ranked
from proxy.recall.ranking.select import Passage

LABEL = -1
"""Tokens of a line compared to its message: the role is shorter than a message's framing."""

HEADING = 1.7
"""Characters per token of a line with a day."""

SURELY_TOO_LARGE = 1.5
"""A passage with an estimate of more than so many times the tokens left is skipped; others are
counted."""

GAP = "..."
"""The line for omitted turns between two passages of a session."""

SAME_DAY = "[same day]"
"""The line before another session of the same day."""

Kind = Literal["passage", "instruction", "preference"]


class RecallHit(msgspec.Struct, frozen=True):
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
    parts: Mapping[str, float] = {}
    place: int = 0
    """The number of a standing instruction among those of its message."""
    flags: int = 0
    """The ``NOTE_FLAGS`` of the passage's row."""
    note: str = ""
    """A note that is written behind the text."""
    utc_offset: float = 0.0
    """Offset of the user's zone from UTC at that time, in seconds."""

    @property
    def local_time(self) -> float:
        """``created_at`` in the user's time zone, as seconds as if that were UTC."""
        return self.created_at + self.utc_offset

    @property
    def id(self) -> str:
        return self.message if self.kind == "passage" else f"{self.message}:{self.place}"

    @property
    def recalled(self) -> Recalled:
        """What the exchange stores of it, so that further rounds of its turn recall the same."""
        return Recalled(
            kind=self.kind,
            message=self.message,
            session=self.session,
            seq=self.seq,
            tokens=self.tokens,
            score=self.score,
            parts=self.parts,
            flags=self.flags,
        )


class Recollection(msgspec.Struct, frozen=True):
    """What to put into a prompt: passages, best first, and standing instructions, newest first.

    May be more than fits, since tokens are estimates until the lines are rendered.
    """

    passages: tuple[RecallHit, ...] = ()
    standing: tuple[RecallHit, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.passages or self.standing)

    @property
    def all(self) -> tuple[RecallHit, ...]:
        return (*self.standing, *self.passages)

    def within_budget(self, own: str, cost: Cost, budget: int) -> Recollection:
        """What fits into ``budget`` tokens, in this order; what does not fit is skipped.  ``own``
        is the session of the prompt."""
        standing, left = _standing_within(self.standing, cost, budget)
        return Recollection(_passages_within(self.passages, own, cost, left), standing)

    def with_more(self, more: Recollection, own: str, cost: Cost, left: int) -> Recollection:
        """With the passages of ``more`` that fit into the ``left`` tokens in addition, in the order
        of ``more``; itself if none does."""
        places = {(one.session, one.seq) for one in self.passages}
        others = [one for one in more.passages if (one.session, one.seq) not in places]
        fitting = [one for one in others if one.tokens <= SURELY_TOO_LARGE * left]
        headed = {(one.session, _heading(one, own)) for one in self.passages}
        added = _passages_within(fitting, own, cost, left, headed)
        if not added:
            return self
        places.update((one.session, one.seq) for one in added)
        passages = tuple(one for one in more.passages if (one.session, one.seq) in places)
        return Recollection(passages, self.standing)


class Cost(msgspec.Struct, frozen=True):
    """The tokens of the parts of a prompt.

    ``frame`` are those of a block without its lines.  Without ``count`` the lines are estimated:
    counting each takes longer than the search.
    """

    frame: int
    count: CountText | None = None

    def line(self, one: RecallHit, written: Callable[[RecallHit], str]) -> int:
        if self.count is not None:
            return self.count(f"{written(one)}\n")
        return one.tokens + LABEL + (self.heading(one.note) if one.note else 0)

    def heading(self, text: str) -> int:
        return int(len(text) / HEADING) if self.count is None else self.count(f"{text}\n")


def _standing_within(
    found: Sequence[RecallHit], cost: Cost, left: int
) -> tuple[tuple[RecallHit, ...], int]:
    """The instructions that fit into ``left`` tokens, in this order, and the tokens left after
    them."""
    fitting: list[RecallHit] = []
    for each in found:
        tokens = cost.line(each, _instruction) + (0 if fitting else cost.frame)
        if tokens <= left:
            left -= tokens
            fitting.append(each)
    return tuple(fitting), left


def _passages_within(
    found: Sequence[RecallHit],
    own: str,
    cost: Cost,
    left: int,
    headed: Collection[tuple[str, str]] = (),
) -> tuple[RecallHit, ...]:
    """The passages that fit into ``left`` tokens, in this order.  ``headed``: the sessions, each
    with the line of its day, that are in the block already."""
    fitting: list[RecallHit] = []
    written = set(headed)
    for one in found:
        heading = _heading(one, own)
        tokens = cost.line(one, _line) + (0 if written else cost.frame)
        tokens += cost.heading(GAP if (one.session, heading) in written else heading)
        if tokens <= left:
            left -= tokens
            fitting.append(one)
            written.add((one.session, heading))
    return tuple(fitting)


def writing_order(found: Sequence[RecallHit]) -> list[int]:
    """The indexes of passages in the order in which they are written: by session and in time."""
    began: dict[str, float] = {}
    for one in found:
        began[one.session] = min(one.created_at, began.get(one.session, one.created_at))
    keys = [(began[one.session], one.session, one.seq) for one in found]
    return sorted(range(len(found)), key=keys.__getitem__)


def passage_lines(found: Sequence[RecallHit], own: str) -> str:
    """The lines of passages: by session and in time, after a line with the day.

    ``own`` is the session of the prompt.  ``GAP`` marks omitted turns between two passages of a
    session.  All lines of a message but the first are indented, so that none can pass for another
    message.
    """
    ordered = [found[n] for n in writing_order(found)]
    headings = [_heading(one, own) for one in ordered]
    lines: list[str] = []
    for place, line in enumerate(_lines(ordered)):
        lines += _between(ordered, headings, place)
        lines.append(line)
    return "\n".join(lines)


def _between(found: Sequence[RecallHit], headings: Sequence[str], place: int) -> Iterable[str]:
    """The lines before a passage: none if it directly follows the one before."""
    if place == 0 or headings[place - 1] != headings[place]:
        return (headings[place],)
    before, one = found[place - 1], found[place]
    if before.session != one.session:
        return (SAME_DAY,)
    return (GAP,) if one.seq - before.seq > 1 else ()


# Names that are roles: a text that begins with one could pass for a message of the other role.
_ROLES = {
    speaker_term(f"{name.capitalize()}: ") for name in vocabulary(lambda each: each.own_words.roles)
}


def _lines(found: Sequence[RecallHit]) -> Iterator[str]:
    """The text of each passage after its role; without the role if it begins with the name of a
    speaker whose role an earlier line has shown."""
    names = [speaker_term(one.text) for one in found]
    said_as = {(one.role, name) for one, name in zip(found, names, strict=True) if name}
    roles = Counter(name for _, name in said_as)
    introduced: set[bytes] = set()
    for one, name in zip(found, names, strict=True):
        yield _noted(one) if name in introduced else _line(one)
        if name and roles[name] == 1 and name not in _ROLES:
            introduced.add(name)


def standing_lines(found: Sequence[RecallHit]) -> str:
    """Standing instructions, one a line."""
    return "\n".join(map(_instruction, found))


@lru_cache(maxsize=1024)
def _day(number: float, here: bool) -> str:
    day = time.strftime("%Y-%m-%d %a", time.gmtime(number * DAY))
    return f"[{day}, this conversation]" if here else f"[{day}]"


def _heading(one: RecallHit, own: str) -> str:
    return _day(one.local_time // DAY, one.session == own)


def _line(one: RecallHit) -> str:
    return f"{one.role}: {_noted(one)}"


def _noted(one: RecallHit) -> str:
    return f"{_indented(one.text)} [{one.note}]" if one.note else _indented(one.text)


def _instruction(one: RecallHit) -> str:
    return f"- {_indented(one.text)}"


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())


class PassagePlace(msgspec.Struct, frozen=True, gc=False):
    """Where a passage is in history: the session's name and number, the seq, and the check of its
    message, or, in a replay, the message's id."""

    session: str
    number: int
    seq: int
    check: int = 0
    message: str = ""

    def is_of(self, card: Card) -> bool:
        """Whether this is still the message that was indexed, unchanged."""
        return card.id == self.message if self.message else check_of(card) == self.check


class PassageSource(msgspec.Struct, frozen=True, gc=False):
    """The message at a place, the author's own text in it, and the share of the whole text that
    this is."""

    place: PassagePlace
    message: Message
    text: str
    share: float = 1.0

    def passage(self, number: int) -> Passage:
        card, place = self.message.card, self.place
        tokens = scale_tokens(card.tokens, self.share)
        return Passage(number, place.number, place.seq, card.role, self.text, tokens)

    def hit(self, kind: Kind, text: str, tokens: int, why: Ranked | None = None) -> RecallHit:
        """The hit for this message, or for the part of it in ``text``."""
        card, place = self.message.card, self.place
        score, parts = (round(why.score, 4), why.parts) if why else (0.0, {})
        flags = why.flags & NOTE_FLAGS if why else 0
        return RecallHit(
            kind,
            text,
            card.id,
            place.session,
            place.seq,
            card.role,
            tokens,
            card.created_at,
            score,
            parts,
            flags=flags,
        )
