"""Facts saved and looked up in the middle of a chat, for the model's own tools."""

from __future__ import annotations

from typing import NamedTuple

from proxy.learning.fact import MOST_CHARACTERS, USER, Fact, new_id, one_line
from proxy.learning.fact_book import FactBook, Facts
from proxy.learning.fact_claim import Claim
from proxy.learning.fact_rules import Notes
from proxy.learning.quarantine import is_instruction
from proxy.learning.source import Source
from proxy.memory.items import Shelf
from proxy.recall.question import read
from proxy.settings.written import FactsSettings


class Noted(NamedTuple):
    """A fact that was found: its id, its text, and how like the question it is, 0 to 1."""

    id: str
    text: str
    score: float


class Notebook:
    """All methods raise StoreError; ``settings`` bound what is kept."""

    def __init__(self, book: FactBook, settings: FactsSettings) -> None:
        self._book, self._settings = book, settings

    async def save(
        self, shelf: Shelf, text: str, source: Source, since: float | None = None
    ) -> Fact:
        """Keep a statement; one that says the same already is confirmed.

        It was read at ``since``: see Items.change_items.  Text that tells the assistant what to do
        is kept in quarantine, where it does nothing.
        Raises ValueError for a text that is empty or longer than 500 characters, and Busy.
        """
        plain = one_line(text)
        if not 0 < len(plain) <= MOST_CHARACTERS:
            raise ValueError(f"must have 1 to {MOST_CHARACTERS} characters")
        return await self._book.change(
            shelf, lambda facts: self._enter(facts, plain, source), since
        )

    async def find(self, shelf: Shelf, query: str, limit: int) -> list[Noted]:
        """Facts in force that share words with a question, best first.  One round trip."""
        card = await self._book.card(shelf)
        now = self._book.clock()
        scores = card.words.likeness(read(query, (), now)).tolist()
        found = [
            Noted(line.id, line.line.removeprefix("- "), score)
            for score, line in zip(scores, card.lines, strict=True)
            if score > 0 and (line.expires_at is None or line.expires_at > now)
        ]
        return sorted(found, key=lambda noted: -noted.score)[:limit]

    def _enter(self, facts: Facts, text: str, source: Source) -> Fact:
        notes = Notes(facts, self._settings, new_id, self._book.clock(), "saved")
        claim = Claim(
            op="add",
            text=text,
            about=USER,
            state="quarantined" if is_instruction(text) else "current",
            valid_from=source.at,
            until=None,
            source=source,
            fact=None,
        )
        fact = notes.enter(claim)
        notes.within(self._settings.max_facts)
        return fact
