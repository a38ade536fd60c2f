"""Stores people's feedback on answers, and updates episodes and instructions from it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from proxy.learning.batch import Exchanges
from proxy.learning.collection import put_change
from proxy.learning.episodes.episode import episode_id, make_episode
from proxy.learning.episodes.store import EpisodeStore
from proxy.learning.feedback import Feedback, Score, drop_feedback, feedback_on, feedback_place
from proxy.learning.instructions.pending import FeedbackForgetter, PendingFeedback
from proxy.memory.archive import Session
from proxy.memory.items import ItemOwner
from proxy.memory.model import Exchange, SessionKey, WorkRequest, exchange_of
from proxy.memory.store import Queue
from proxy.settings import ProfileSettings


class NoMessage(LookupError):
    """There is no such message in this session."""


class FeedbackService(msgspec.Struct, frozen=True):
    """``profile_of`` gives a profile by its name, "" the default one.

    All methods raise StoreError.
    """

    exchanges: Exchanges
    episodes: EpisodeStore
    pending: PendingFeedback
    feedback_forgetter: FeedbackForgetter
    queue: Queue
    profile_of: Callable[[str], ProfileSettings | None]

    async def latest(self, session: Session, key: SessionKey, message: str) -> Feedback | None:
        """The latest feedback on a message, None without any.  Raises NoMessage."""
        await self._exchange(key, message)
        user = session.user or ""
        found = await feedback_on(self.episodes.items, key.tenant, user, key.session, [message])
        return found.get(message)

    async def record(
        self, session: Session, key: SessionKey, message: str, score: Score, comment: str
    ) -> Feedback:
        """Store feedback on a message, in place of earlier feedback.  Raises NoMessage and Busy.

        The message is checked once more at the end, so that feedback on one that was erased
        meanwhile is removed either by the erasure or here.
        """
        since = self.episodes.clock()
        exchange = await self._exchange(key, message)
        feedback = Feedback(
            session=key.session,
            message=message,
            exchange=exchange.id,
            score=score,
            comment=comment,
            profile=exchange.profile,
            created_at=self.episodes.clock(),
        )
        if not await self._store(session, key, feedback, since):
            raise NoMessage
        settings = self.profile_of(exchange.profile)
        if session.user:
            await drop_feedback(self.episodes.items, key, None, [message])
            await self._update_episode(session, key, feedback, settings, since)
        if settings is not None and settings.instructions.enabled:
            await self._queue_reflection(session, key, feedback, settings)
        await self._check_still_there(session, key, message)
        return feedback

    async def _check_still_there(self, session: Session, key: SessionKey, message: str) -> None:
        """If the message is gone, delete what was stored about it and raise NoMessage."""
        try:
            await self._exchange(key, message)
        except NoMessage:
            await drop_feedback(self.episodes.items, key, session.user, [message])
            if session.user:
                owner = ItemOwner(key.tenant, session.user)
                await self.episodes.drop(owner, episode_id(key.session, message))
            await self.feedback_forgetter.forget_session(key, message)
            raise

    async def _exchange(self, key: SessionKey, message: str) -> Exchange:
        found = await self.exchanges.history.exchange(key, exchange_of(message))
        if found is None or message not in found[1]:
            raise NoMessage
        return found[0]

    async def _store(
        self, session: Session, key: SessionKey, feedback: Feedback, since: float
    ) -> bool:
        user = session.user or ""
        place = feedback_place(user, feedback.session, feedback.message)
        ttl = session.details.ttl
        change = put_change(place, feedback, None, feedback.created_at + ttl if ttl else None)
        return await self.episodes.items.change_items(ItemOwner(key.tenant, user), [change], since)

    async def _update_episode(
        self,
        session: Session,
        key: SessionKey,
        feedback: Feedback,
        settings: ProfileSettings | None,
        since: float,
    ) -> None:
        """Make an episode of a good answer; delete that of an answer that is not good any more."""
        owner = ItemOwner(key.tenant, session.user or "")
        if feedback.score < 1:
            await self.episodes.drop(owner, episode_id(key.session, feedback.message))
        elif settings is not None and settings.episodes.enabled:
            found = await self.exchanges.answered_question(key, feedback.message)
            if found is not None:
                ttl, now = session.details.ttl, feedback.created_at
                episode = make_episode(found, "feedback", self.episodes.count, now, ttl)
                await self.episodes.add(owner, episode, since)

    async def _queue_reflection(
        self, session: Session, key: SessionKey, feedback: Feedback, settings: ProfileSettings
    ) -> None:
        """Add feedback with a score or a comment to the pending one; queue learning if due."""
        if not feedback.score and not feedback.comment:
            return
        owner, chosen = ItemOwner(key.tenant), settings.instructions
        await self.pending.add(owner, chosen.name, session.user or "", feedback)
        waiting = await self.pending.reflection(owner, chosen.name)
        if waiting.value.is_due(chosen.after_feedback):
            due = WorkRequest(kind="learning", profile=feedback.profile, due_at=feedback.created_at)
            await self.queue.enqueue(key, due)
