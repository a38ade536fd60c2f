"""The card of facts: what a prompt needs of those that hold, kept ready.  Pure.

It is read with every request and written with every change of a fact, so that its version is that
of all facts together: who changes facts must have seen the card before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec

from proxy.learning.fact import USER, Fact
from proxy.learning.fact_dates import date_text
from proxy.learning.likeness import SIZE, Words, terms_in
from proxy.memory.items import PEOPLE, Place

CARDS = "card"


def card_place(user: str, kind: str) -> Place:
    """Where a card of a person is kept."""
    return Place((PEOPLE, user, CARDS), kind)


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A fact as it stands in a prompt; ``terms`` is the number of its terms on the card."""

    id: str
    line: str
    about_user: bool
    tokens: int
    last_confirmed: float
    expires_at: float | None
    terms: int


class FactCard(msgspec.Struct, frozen=True):
    """Facts in the order since when they hold, and the terms of all of them."""

    lines: tuple[Line, ...] = ()
    terms: bytes = b""

    @property
    def words(self) -> Words:
        return Words([line.terms for line in self.lines], self.terms)

    def terms_by_line(self) -> Mapping[tuple[str, str], bytes]:
        """The terms of each line, by id and text."""
        found: dict[tuple[str, str], bytes] = {}
        at = 0
        for line in self.lines:
            end = at + SIZE * line.terms
            found[line.id, line.line] = self.terms[at:end]
            at = end
        return found


_decoder = msgspec.json.Decoder(FactCard)


def read_card(value: bytes) -> FactCard:
    """Raises msgspec.DecodeError."""
    return _decoder.decode(value)


def card_of(
    facts: Iterable[Fact], before: FactCard, count: Callable[[str], int], now: float
) -> FactCard:
    """The card of the facts that hold; what the one ``before`` knows of a text is taken over."""
    known = before.terms_by_line()
    counted = {line.line: line.tokens for line in before.lines}
    held = sorted((f for f in facts if f.holds(now)), key=attrgetter("valid_from", "id"))
    lines: list[Line] = []
    terms: list[bytes] = []
    for fact in held:
        written = line_of(fact)
        own = known.get((fact.id, written))
        own = terms_in(f"{fact.text} {_other(fact)}", fact.valid_from) if own is None else own
        tokens = counted.get(written) or count(f"{written}\n")
        terms.append(own)
        lines.append(
            Line(
                id=fact.id,
                line=written,
                about_user=fact.about == USER,
                tokens=tokens,
                last_confirmed=fact.last_confirmed,
                expires_at=fact.expires_at,
                terms=len(own) // SIZE,
            )
        )
    return FactCard(tuple(lines), b"".join(terms))


def line_of(fact: Fact) -> str:
    """``- text (2023-05-07)``, with whom it is about where the text does not say that."""
    whom = _other(fact)
    named = whom.split(",")[0].lower() in fact.text.lower()
    told = fact.text if named else f"{whom}: {fact.text}"
    return f"- {told} ({date_text(fact.valid_from)})"


def lines_text(lines: Sequence[Line]) -> str:
    return "\n".join(line.line for line in lines)


def _other(fact: Fact) -> str:
    return "" if fact.about == USER else fact.about
