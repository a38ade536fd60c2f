"""Saves and searches facts for the tools of models, in chats and over MCP."""

from __future__ import annotations

from datetime import tzinfo
from typing import NamedTuple
from unicodedata import normalize

from proxy.learning.evidence import Source, is_instruction
from proxy.learning.facts.claim import Claim
from proxy.learning.facts.fact import (
    MAX_STATEMENT,
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
from proxy.learning.similarity import QueryText
from proxy.memory.items import ItemOwner
from proxy.settings.learned import FactsSettings


class FoundFact(NamedTuple):
    """A fact that was found: its id, its text, and its score, 0 to 1."""

    id: str
    text: str
    score: float


class FactTools:
    """All methods raise StoreError; ``settings`` say how long facts hold, ``zone`` is the time zone
    of days in texts, None for UTC."""

    def __init__(
        self, facts: FactStore, settings: FactsSettings, zone: tzinfo | None = None
    ) -> None:
        self._facts, self._settings, self._zone = facts, settings, zone

    async def save(
        self, owner: ItemOwner, text: str, source: Source, since: float | None = None
    ) -> Fact:
        """Save a statement as a fact; a fact that says the same already is confirmed instead.

        It was read at ``since``: see Items.change_items.  A text that instructs the assistant is
        quarantined, so that it is not used.
        Raises ValueError for a text that is empty or longer than 500 characters, TooManyFacts, and
        Busy.
        """
        plain = one_line(text)
        if not 0 < len(plain) <= MAX_STATEMENT:
            raise ValueError(f"must have 1 to {MAX_STATEMENT} characters")
        return await self._facts.change(
            owner, lambda facts: self._save_fact(facts, plain, source), since
        )

    async def add(
        self, owner: ItemOwner, text: str, about: str, *, always_new: bool = False
    ) -> Fact:
        """Save a statement without a source message, as :meth:`save` does; a fact in the same words
        stays unchanged, unless ``always_new``.

        ``text`` and ``about`` are one line each.  Raises TooManyFacts, and Busy.
        """

        def noted(facts: Facts) -> Fact:
            new = self._new(text, about)
            duplicate = None if always_new else _duplicate(facts, new)
            if duplicate is None:
                facts[new.id] = new
                check_max_given(facts)
            return duplicate or new

        return await self._facts.change(owner, noted)

    async def find(self, owner: ItemOwner, query: str, limit: int) -> list[FoundFact]:
        """Current facts that share words with a query, best first.  One round trip."""
        card = await self._facts.card(owner)
        now = self._facts.clock()
        scores = card.term_lists.scores(QueryText(query, now, self._zone))
        found = [
            FoundFact(line.id, line.render(self._zone).removeprefix("- "), score)
            for score, line in zip(scores, card.lines, strict=True)
            if score > 0 and line.is_valid(now)
        ]
        return sorted(found, key=lambda fact: -fact.score)[:limit]

    def _save_fact(self, facts: Facts, text: str, source: Source) -> Fact:
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
    """A fact with the same text and subject, current or in the new one's state."""
    wanted, states, now = _words(new), (new.state, "current"), new.last_confirmed
    same = (
        fact
        for fact in facts.values()
        if fact.state in states and _words(fact) == wanted and not fact.is_expired(now)
    )
    return next(same, None)


def _words(fact: Fact) -> tuple[str, str]:
    """Its text and subject in Unicode normal form, so that composed accents compare equal."""
    return normalize("NFC", fact.text), normalize("NFC", fact.about)
