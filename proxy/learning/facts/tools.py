"""Facts that models save and look up: in the middle of a chat, or from outside of any."""

from __future__ import annotations

from datetime import tzinfo
from typing import NamedTuple
from unicodedata import normalize

from proxy.learning.evidence import Source, is_instruction
from proxy.learning.facts.claim import Claim
from proxy.learning.facts.fact import (
    MOST_CHARACTERS,
    USER,
    Fact,
    Facts,
    State,
    check_max_given,
    new_id,
    one_line,
    with_expiry,
)
from proxy.learning.facts.rules import ClaimMerger
from proxy.learning.facts.store import FactStore
from proxy.learning.likeness import QueryText
from proxy.memory.items import ItemOwner
from proxy.settings.written import FactsSettings


class FoundFact(NamedTuple):
    """A fact that was found: its id, its text, and its score, 0 to 1."""

    id: str
    text: str
    score: float


class FactTools:
    """All methods raise StoreError; ``settings`` say how long facts hold, ``zone`` is where
    days are told, None for UTC."""

    def __init__(
        self, facts: FactStore, settings: FactsSettings, zone: tzinfo | None = None
    ) -> None:
        self._facts, self._settings, self._zone = facts, settings, zone

    async def save(
        self, owner: ItemOwner, text: str, source: Source, since: float | None = None
    ) -> Fact:
        """Keep a statement; one that says the same already is confirmed.

        It was read at ``since``: see Items.change_items.  Text that tells the assistant what to do
        is kept in quarantine, where it does nothing.
        Raises ValueError for a text that is empty or longer than 500 characters, TooManyFacts, and
        Busy.
        """
        plain = one_line(text)
        if not 0 < len(plain) <= MOST_CHARACTERS:
            raise ValueError(f"must have 1 to {MOST_CHARACTERS} characters")
        return await self._facts.change(
            owner, lambda facts: self._enter(facts, plain, source), since
        )

    async def note(self, owner: ItemOwner, text: str, about: str, *, afresh: bool = False) -> Fact:
        """Keep a statement that no message is the source of, as :meth:`save` does; one in the same
        words stays as it is, unless it is to be kept ``afresh``.

        ``text`` and ``about`` are one line each.  Raises TooManyFacts, and Busy.
        """

        def noted(facts: Facts) -> Fact:
            new = self._new(text, about)
            duplicate = None if afresh else _duplicate(facts, new)
            if duplicate is None:
                facts[new.id] = new
                check_max_given(facts)
            return duplicate or new

        return await self._facts.change(owner, noted)

    async def find(self, owner: ItemOwner, query: str, limit: int) -> list[FoundFact]:
        """Facts in force that share words with a question, best first.  One round trip."""
        card = await self._facts.card(owner)
        now = self._facts.clock()
        scores = card.term_lists.scores(QueryText(query, now, self._zone))
        found = [
            FoundFact(line.id, line.render(self._zone).removeprefix("- "), score)
            for score, line in zip(scores, card.lines, strict=True)
            if score > 0 and line.is_valid(now)
        ]
        return sorted(found, key=lambda fact: -fact.score)[:limit]

    def _enter(self, facts: Facts, text: str, source: Source) -> Fact:
        before = len(facts)
        merger = ClaimMerger(facts, self._settings, new_id, self._facts.clock(), "saved")
        claim = Claim(
            op="add",
            text=text,
            about=USER,
            state=_state(text),
            valid_from=None,
            until=None,
            source=source,
            fact=None,
        )
        fact = merger.merge(claim)
        if len(facts) > before:  # else it was there already
            check_max_given(facts)
        return fact

    def _new(self, text: str, about: str) -> Fact:
        now = self._facts.clock()
        fact = Fact(
            id=new_id(),
            text=text,
            about=about,
            state=_state(text, about),
            valid_from=now,
            last_confirmed=now,
            origin="saved",
        )
        return with_expiry(fact, self._settings)


def _state(text: str, about: str = USER) -> State:
    return "quarantined" if is_instruction(text) or is_instruction(about) else "current"


def _duplicate(facts: Facts, new: Fact) -> Fact | None:
    """A fact in the same words, of the same: there as the new one would be, or current."""
    wanted, states = _words(new), (new.state, "current")
    same = (
        fact
        for fact in facts.values()
        if fact.state in states and _words(fact) == wanted and not fact.expired(new.last_confirmed)
    )
    return next(same, None)


def _words(fact: Fact) -> tuple[str, str]:
    """What it says and of whom, however accents are written: as letters, or behind them."""
    return normalize("NFC", fact.text), normalize("NFC", fact.about)
