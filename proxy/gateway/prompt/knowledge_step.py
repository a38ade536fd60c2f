"""Looks up learned memory for chat requests; never fails the chat."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from proxy.gateway.context import RequestContext
from proxy.learning.learned import PromptCards
from proxy.learning.prompt_cards import Cards, CountText, KnownBlocks
from proxy.memory.limit import TimeLimit
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)


class LoadedKnowledge(msgspec.Struct, frozen=True):
    """The cards of a user, and the choice for ``question`` within the profile's maximum."""

    cards: Cards
    question: str
    known: KnownBlocks


class KnowledgeStep:
    """Looks up and chooses while the session loads; chooses again if there is less room then."""

    def __init__(self, knowledge: PromptCards) -> None:
        self._knowledge = knowledge

    def begin(
        self, context: RequestContext, question: str, count: CountText, *, wanted: bool
    ) -> asyncio.Future[LoadedKnowledge | None]:
        """Start the lookup; already done, with None, if not ``wanted`` or nothing is learned."""
        if wanted and context.profile_rules.learns:
            return asyncio.create_task(self._load_cards(context, question, count), name="look")
        no_knowledge = asyncio.get_running_loop().create_future()
        no_knowledge.set_result(None)
        return no_knowledge

    async def _load_cards(
        self, context: RequestContext, question: str, count: CountText
    ) -> LoadedKnowledge | None:
        user, profile = context.identity.user, context.profile
        try:
            async with TimeLimit(profile.recall.timeout):
                cards = await self._knowledge.look(context.key.tenant, user, profile)
        except (StoreError, TimeoutError) as failure:
            reason = str(failure) or "no answer in time"
            logger.warning("nothing known goes into the prompt: %s", reason)
            return None
        known = self._choose(cards, question, context.profile_rules.max_learned_tokens, count)
        return LoadedKnowledge(cards, question, known)

    def choose(
        self, loaded: LoadedKnowledge, question: str, budget: int, count: CountText
    ) -> KnownBlocks:
        """The choice within ``budget`` tokens."""
        if question == loaded.question and loaded.known.tokens <= budget:
            return loaded.known
        return self._choose(loaded.cards, question, budget, count)

    def _choose(self, cards: Cards, question: str, budget: int, count: CountText) -> KnownBlocks:
        try:
            return self._knowledge.choose(cards, question, budget, count)
        except Exception:  # the boundary to what models wrote: the chat continues without it
            logger.exception("nothing known goes into the prompt")
            return KnownBlocks()
