"""Learning facts: one request a batch, whose answer is checked before anything is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from proxy.learning.batch import ATTEMPTS, Batch
from proxy.learning.evidence import DeletedSources
from proxy.learning.extract import KindModel, Unusable
from proxy.learning.facts.claim import (
    RETRY_NOTE,
    SCHEMA,
    Claim,
    Operation,
    checked_claims,
    parse_operations,
    prompt,
)
from proxy.learning.facts.fact import FACTS, Fact, new_id
from proxy.learning.facts.rules import apply_claims
from proxy.learning.facts.statements import describes_user, names_family
from proxy.learning.facts.store import FactStore, StoredFacts
from proxy.learning.similarity import QueryText
from proxy.memory.items import ItemOwner

NO_JSON = "the answer about facts is not the JSON that was asked for"

MAX_SHOWN = 30
"""The most facts that the model is shown: of more, those most like the messages."""

MAX_KIN = 10
"""The most facts about names and family, which are always shown."""

COMPARED_CHARACTERS = 300
"""Characters of each message that facts are compared with."""


class FactExtractor(msgspec.Struct, frozen=True):
    """See :class:`proxy.learning.batch.Extractor`.

    ``on_nothing_found`` is called when two answers had no fact of messages that clearly have one.
    """

    model: KindModel
    facts: FactStore
    on_nothing_found: Callable[[], None] = lambda: None
    ids: Callable[[], str] = new_id

    async def learn(self, batch: Batch) -> bool:
        if not batch.has_own_words:
            return await batch.store(self.facts.items, FACTS)
        stored = await self.facts.load(batch.owner)
        now = self.facts.clock()
        shown = await asyncio.to_thread(_facts_for_prompt, stored, batch, now)
        operations = await self._operations(batch, shown, len(_valid_facts(stored, now)))
        found = await asyncio.to_thread(checked_claims, operations, batch, shown)
        return await self._save(batch, stored, found)

    async def take_back(self, owner: ItemOwner, gone: DeletedSources) -> None:
        await self.facts.forget(owner, gone.has, False)

    async def _save(self, batch: Batch, stored: StoredFacts, found: Sequence[Claim]) -> bool:
        """Store the claims; after changes of others it tries again without another request.

        Comparing thousands of facts with each claim takes long, so it runs in a thread.
        """
        for _ in range(ATTEMPTS):
            settings, now = batch.settings.facts, self.facts.clock()
            facts = await asyncio.to_thread(
                apply_claims, stored.facts, found, settings, self.ids, now
            )
            changes = self.facts.changes(batch.owner, stored, facts)
            if await batch.store(self.facts.items, FACTS, changes):
                return True
            if not await batch.is_unread(self.facts.items, FACTS):
                return False
            stored = await self.facts.load(batch.owner)
        return False

    async def _operations(
        self, batch: Batch, shown: Sequence[Fact], total: int
    ) -> tuple[Operation, ...]:
        """The operations that the model answers when it is shown some of ``total`` facts.

        After an empty or unreadable answer it is asked once more.
        """
        telling = describes_user(batch.messages)

        def read(answer: str) -> tuple[Operation, ...]:
            found = parse_operations(answer)
            if found is None:
                raise Unusable(NO_JSON, readable=False)
            if telling and not found:
                raise Unusable("there is nothing in it")
            return found

        settings = batch.settings
        text = prompt(batch.messages, shown, total, settings.facts.focus, settings.recall.zone)
        found = await self.model.extract(batch, text, read, _retry_prompt, SCHEMA)
        if found is None:
            self.on_nothing_found()
        return found or ()


def _retry_prompt(prompt: str, answer: str, wrong: Unusable) -> str:
    return prompt + RETRY_NOTE if wrong.readable else prompt


def _valid_facts(stored: StoredFacts, now: float) -> list[Fact]:
    """The current facts that hold now or later."""
    current = [fact for fact in stored.facts.values() if fact.state == "current"]
    return [fact for fact in current if fact.until is None or fact.until > now]


def _facts_for_prompt(stored: StoredFacts, batch: Batch, now: float) -> list[Fact]:
    """The facts that the messages may be about: name and family, and those most like them."""
    valid = _valid_facts(stored, now)
    if len(valid) > MAX_SHOWN:
        asked = "\n".join(message.own_text[:COMPARED_CHARACTERS] for message in batch.messages)
        scores = stored.card.value.term_lists.scores(
            QueryText(asked, now, batch.settings.recall.zone)
        )
        lines = zip(stored.card.value.lines, scores, strict=True)
        likeness = {line.id: score for line, score in lines}
        latest = sorted(valid, key=lambda fact: -fact.last_confirmed)
        kin = [fact for fact in latest if names_family(fact.text)][:MAX_KIN]
        latest.sort(key=lambda fact: -likeness.get(fact.id, 0.0))
        valid = list({fact.id: fact for fact in (*kin, *latest)}.values())[:MAX_SHOWN]
    return sorted(valid, key=lambda fact: (fact.valid_from, fact.id))
