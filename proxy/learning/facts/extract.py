"""Learning facts: one request a batch, whose answer is checked before anything is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from proxy.learning.batch import ATTEMPTS, Batch
from proxy.learning.evidence import DeletedSources
from proxy.learning.extract import KindModel, Unusable
from proxy.learning.facts.claim import (
    AGAIN,
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
from proxy.learning.likeness import QueryText
from proxy.memory.items import ItemOwner, Items

NO_JSON = "the answer about facts is not the JSON that was asked for"

SHOWN = 30
"""Facts that the model is shown: all if they are no more, else those most like the messages."""

MOST_KIN = 10
"""Of these, names and family that are shown whatever the messages are about."""

CUE = 300
"""Characters of each message that say what it is about."""


class FactExtractor(msgspec.Struct, frozen=True):
    """See :class:`proxy.learning.batch.Extractor`.

    ``nothing`` is called when nothing was found, twice, in messages that clearly tell something.
    """

    model: KindModel
    items: Items
    facts: FactStore
    nothing: Callable[[], None] = lambda: None
    ids: Callable[[], str] = new_id

    async def learn(self, batch: Batch) -> bool:
        if not batch.has_own_words:
            read = batch.mark_changes(FACTS)
            return await self.items.change_items(batch.owner, read, batch.since)
        kept = await self.facts.load(batch.owner)
        now = self.facts.clock()
        shown = await asyncio.to_thread(_shown, kept, batch, now)
        operations = await self._operations(batch, shown, len(_held(kept, now)))
        found = await asyncio.to_thread(checked_claims, operations, batch, shown)
        return await self._enter(batch, kept, found)

    async def take_back(self, owner: ItemOwner, gone: DeletedSources) -> None:
        await self.facts.forget(owner, gone.has, False)

    async def _enter(self, batch: Batch, kept: StoredFacts, found: Sequence[Claim]) -> bool:
        """Store what was learned; others' changes are no reason to ask the model again.

        Of thousands of facts each is compared with each claim: no chat waits for that.
        """
        for _ in range(ATTEMPTS):
            settings, now = batch.settings.facts, self.facts.clock()
            facts = await asyncio.to_thread(
                apply_claims, kept.facts, found, settings, self.ids, now
            )
            read = batch.mark_changes(FACTS)
            if await self.facts.save(batch.owner, kept, facts, read, batch.since):
                return True
            if not await batch.is_unread(self.items, FACTS):
                return False
            kept = await self.facts.load(batch.owner)
        return False

    async def _operations(
        self, batch: Batch, shown: Sequence[Fact], held: int
    ) -> tuple[Operation, ...]:
        """What the model answers, who is shown some of the ``held`` facts.

        It is asked once more where that is nothing, or nothing readable.
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
        text = prompt(batch.messages, shown, held, settings.facts.focus, settings.recall.zone)
        found = await self.model.extract(batch, text, read, _again, SCHEMA)
        if found is None:
            self.nothing()
        return found or ()


def _again(prompt: str, answer: str, wrong: Unusable) -> str:
    return prompt + AGAIN if wrong.readable else prompt


def _held(kept: StoredFacts, now: float) -> list[Fact]:
    """What holds, or will."""
    held = [fact for fact in kept.facts.values() if fact.state == "current"]
    return [fact for fact in held if fact.until is None or fact.until > now]


def _shown(kept: StoredFacts, batch: Batch, now: float) -> list[Fact]:
    """The facts that the messages may be about: name and family, and those most like them."""
    held = _held(kept, now)
    if len(held) > SHOWN:
        asked = "\n".join(said.own_text[:CUE] for said in batch.messages)
        scores = kept.card.value.term_lists.scores(
            QueryText(asked, now, batch.settings.recall.zone)
        )
        lines = zip(kept.card.value.lines, scores, strict=True)
        likeness = {line.id: score for line, score in lines}
        latest = sorted(held, key=lambda fact: -fact.last_confirmed)
        kin = [fact for fact in latest if names_family(fact.text)][:MOST_KIN]
        latest.sort(key=lambda fact: -likeness.get(fact.id, 0.0))
        held = list({fact.id: fact for fact in (*kin, *latest)}.values())[:SHOWN]
    return sorted(held, key=lambda fact: (fact.valid_from, fact.id))
