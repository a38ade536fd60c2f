"""What is known of a person, asked on behalf of chat requests; never fails the chat."""

from __future__ import annotations

import asyncio
import logging

from proxy.gateway.situation import Situation
from proxy.learning.known import Cards, CountText, Knowledge, Known
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)


class NothingKnown:
    """See :class:`proxy.learning.known.Knowledge`: where nothing is learned."""

    def wanted(self, settings: ProfileSettings) -> bool:
        return False

    async def look(self, tenant: str, user: str | None, settings: ProfileSettings) -> Cards:
        return Cards(settings)

    def choose(self, cards: Cards, question: str, budget: int, count: CountText) -> Known:
        return Known()


class Informing:
    """Looks while the session is being loaded; chooses once it is known how much room is left."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def begin(self, situation: Situation) -> asyncio.Task[Cards | None] | None:
        """A look under way; None where the profile learns nothing."""
        if not self._knowledge.wanted(situation.profile):
            return None
        return asyncio.create_task(self._look(situation), name="look")

    async def _look(self, situation: Situation) -> Cards | None:
        identity, profile = situation.identity, situation.profile
        try:
            async with asyncio.timeout(profile.recall.timeout):
                return await self._knowledge.look(situation.key.tenant, identity.user, profile)
        except (StoreError, TimeoutError) as failure:
            logger.warning(
                "nothing known goes into the prompt: %s", str(failure) or "no answer in time"
            )
            return None

    def choose(self, cards: Cards, question: str, budget: int, count: CountText) -> Known:
        """What fits into ``budget`` tokens."""
        try:
            return self._knowledge.choose(cards, question, budget, count)
        except Exception:  # the boundary to what models wrote: whatever it is, the chat goes on
            logger.exception("nothing known goes into the prompt")
            return Known()
