"""Takes what people say of answers: keeps it, and lets examples and instructions follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from proxy.learning.batch import Exchanges
from proxy.learning.collection import put_change
from proxy.learning.episodes.episode import episode_id, make_episode
from proxy.learning.episodes.store import EpisodeStore
from proxy.learning.feedback import (
    Feedback,
    Score,
    drop_feedback,
    feedback_on,
    feedback_place,
)
from proxy.learning.instructions.pending import FeedbackForgetter, PendingFeedback
from proxy.memory.archive import Session
from proxy.memory.items import ItemOwner, Items
from proxy.memory.model import Due, Exchange, SessionKey, exchange_of
from proxy.settings import ProfileSettings


class Queue(Protocol):
    async def enqueue(self, key: SessionKey, due: Due) -> None: ...


class NoMessage(LookupError):
    """There is no such message in this session."""


class FeedbackService(msgspec.Struct, frozen=True):
    """``profile_of`` gives a profile by its name, "" the default one.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.  All methods raise StoreError.
    """

    items: Items
    exchanges: Exchanges
    episodes: EpisodeStore
    pending: PendingFeedback
    instructions_forgetting: FeedbackForgetter
    queue: Queue
    profile_of: Callable[[str], ProfileSettings | None]
    count: Callable[[str], int]
    clock: Callable[[], float]

    async def given(self, session: Session, key: SessionKey, message: str) -> Feedback | None:
        """What was last said of a message.  Raises NoMessage."""
        await self._exchange(key, message)
        user = session.user or ""
        found = await feedback_on(self.items, key.tenant, user, key.session, [message])
        return found.get(message)

    async def take(
        self, session: Session, key: SessionKey, message: str, score: Score, comment: str
    ) -> Feedback:
        """Keep what is said of a message, in place of what was.  Raises NoMessage, and Busy.

        The message is looked for again at the end: who erases it meanwhile either finds what was
        kept here, or it is found missing here.
        """
        since = self.clock()
        exchange = await self._exchange(key, message)
        feedback = Feedback(
            session=key.session,
            message=message,
            exchange=exchange.id,
            score=score,
            comment=comment,
            profile=exchange.profile,
            created_at=self.clock(),
        )
        if not await self._keep(session, key, feedback, since):
            raise NoMessage
        settings = self.profile_of(exchange.profile)
        if session.user:
            await drop_feedback(self.items, key, None, [message])
            await self._exemplify(session, key, feedback, settings, since)
        if settings is not None and settings.instructions.enabled:
            await self._instruct(session, key, feedback, settings)
        await self._still_there(session, key, message)
        return feedback

    async def _still_there(self, session: Session, key: SessionKey, message: str) -> None:
        """Raises NoMessage, with all that was kept about it taken back."""
        try:
            await self._exchange(key, message)
        except NoMessage:
            await drop_feedback(self.items, key, session.user, [message])
            if session.user:
                owner = ItemOwner(key.tenant, session.user)
                await self.episodes.drop(owner, episode_id(key.session, message))
            await self.instructions_forgetting.session(key, message)
            raise

    async def _exchange(self, key: SessionKey, message: str) -> Exchange:
        found = await self.exchanges.history.exchange(key, exchange_of(message))
        if found is None or message not in found[1]:
            raise NoMessage
        return found[0]

    async def _keep(
        self, session: Session, key: SessionKey, feedback: Feedback, since: float
    ) -> bool:
        user = session.user or ""
        place = feedback_place(user, feedback.session, feedback.message)
        ttl = session.details.ttl
        change = put_change(place, feedback, None, feedback.created_at + ttl if ttl else None)
        return await self.items.change_items(ItemOwner(key.tenant, user), [change], since)

    async def _exemplify(
        self,
        session: Session,
        key: SessionKey,
        feedback: Feedback,
        settings: ProfileSettings | None,
        since: float,
    ) -> None:
        """A good answer becomes an example, and one that is not found good any more is none."""
        owner = ItemOwner(key.tenant, session.user or "")
        if feedback.score < 1:
            await self.episodes.drop(owner, episode_id(key.session, feedback.message))
        elif settings is not None and settings.episodes.enabled:
            found = await self.exchanges.answered_question(key, feedback.message)
            if found is not None:
                ttl, now = session.details.ttl, feedback.created_at
                episode = make_episode(found, "feedback", self.count, now, ttl)
                await self.episodes.keep(owner, episode, since)

    async def _instruct(
        self, session: Session, key: SessionKey, feedback: Feedback, settings: ProfileSettings
    ) -> None:
        """A judgement or a comment waits for the next reflection, which is due if it is enough."""
        if not feedback.score and not feedback.comment:
            return
        owner, chosen = ItemOwner(key.tenant), settings.instructions
        await self.pending.note(owner, chosen.name, session.user or "", feedback)
        waiting = await self.pending.waiting(owner, chosen.name)
        if waiting.value.due(chosen.after_feedback):
            due = Due(kind="learning", profile=feedback.profile, at=feedback.created_at)
            await self.queue.enqueue(key, due)
