"""Where a passage stands in history, and what is found there."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.memory.archive import Message
from proxy.memory.model import Card
from proxy.recall.choose import Passage
from proxy.recall.found import Found, Kind
from proxy.recall.packing import check_of
from proxy.recall.score import Ranked


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands: the session's name and number, the seq, and the check of its message,
    or, where that was recalled once already, the id."""

    session: str
    number: int
    seq: int
    check: int = 0
    message: str = ""

    def leads_to(self, card: Card) -> bool:
        """Whether this message is the one that is meant, and says what it said."""
        if self.message:
            return card.id == self.message
        return check_of(card.id, card.digest) == self.check


@dataclass(frozen=True, slots=True)
class Source:
    """A message that is still there, and its text."""

    place: Place
    message: Message
    text: str

    def passage(self, number: int) -> Passage:
        card = self.message.card
        place = self.place
        return Passage(
            number, place.number, place.seq, card.role, self.text, card.tokens, card.created_at
        )

    def found(self, kind: Kind, text: str, tokens: int, why: Ranked | None = None) -> Found:
        """This message, or the part of it that is ``text``, as something recalled."""
        card = self.message.card
        return Found(
            kind=kind,
            text=text,
            message=card.id,
            session=self.place.session,
            seq=self.place.seq,
            role=card.role,
            tokens=tokens,
            created_at=card.created_at,
            score=round(why.score, 4) if why else 0.0,
            parts={name: round(part, 4) for name, part in why.parts.items() if part} if why else {},
        )
