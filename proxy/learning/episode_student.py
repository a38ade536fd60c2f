"""Learns which exchanges went well from what users write next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proxy.background.completion import Completer
from proxy.learning.asking import assignment
from proxy.learning.episode import FEATURE, Episode, episode_id, episode_of
from proxy.learning.episode_prompt import (
    MOST_PAIRS,
    SCHEMA,
    Pair,
    answers_before,
    good_in,
    prompt,
    seems_pleased,
)
from proxy.learning.episode_shelf import EpisodeShelf, Held
from proxy.learning.exchanges import Exchanges
from proxy.learning.feedback import feedback_on
from proxy.learning.lesson import Lesson, Unreadable
from proxy.memory.items import Items
from proxy.memory.reading import WHOLE_LOG
from proxy.settings import ProfileSettings


@dataclass(frozen=True, slots=True)
class EpisodeStudent:
    """See :class:`proxy.learning.lesson.Student`.

    One request for a lesson at most, and none where nobody seems to be pleased.  What has been
    judged by a person is left alone.  ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    items: Items
    episodes: EpisodeShelf
    exchanges: Exchanges
    completer: Completer
    count: Callable[[str], int]
    clock: Callable[[], float]
    feature: str = FEATURE

    def wants(self, settings: ProfileSettings) -> bool:
        return settings.episodes.enabled and settings.episodes.by_model

    def room(self, settings: ProfileSettings) -> int:
        return settings.episodes.max_input_tokens

    def ready(self, tenant: str, settings: ProfileSettings) -> bool:
        return self.completer.ready(assignment(tenant, FEATURE, settings.episodes))

    async def learn(self, lesson: Lesson) -> bool:
        held = await self.episodes.held(lesson.shelf)
        pairs = await self._pairs(lesson, held)
        good = await self._good(lesson, pairs) if pairs else []
        new = await self._episodes(lesson, good)
        changes = [lesson.mark(FEATURE)]
        if new:
            changes += self.episodes.changes(lesson.shelf, held, new, ())
        if not await self.items.change_items(lesson.shelf, changes, lesson.since):
            return False
        if new:
            await self._take_back(lesson)
        return True

    async def _take_back(self, lesson: Lesson) -> None:
        """A session that was deleted meanwhile takes its episodes with it."""
        session = await self.exchanges.history.session(lesson.key)
        if session is None or session.created_at != lesson.then.began:
            await self.episodes.forget(lesson.shelf, lesson.key.session, None, False)

    async def _pairs(self, lesson: Lesson, held: Held) -> list[Pair]:
        pleased = [said for said in lesson.said if seems_pleased(said)]
        if not pleased:
            return []
        log = (await self.exchanges.history.load(lesson.key, WHOLE_LOG)).log
        found = list(answers_before(pleased, log))[-MOST_PAIRS:]
        known = {episode.id for episode in held.episodes}
        answers = [answer for _, _, answer in found]
        shelf, session = lesson.shelf, lesson.key.session
        judged = await feedback_on(self.items, shelf.tenant, shelf.user, session, answers)
        texts = await self.exchanges.texts(lesson.key, [question for _, question, _ in found])
        return [
            Pair(texts[question], answer, said)
            for said, question, answer in found
            if texts.get(question)
            and answer not in judged
            and episode_id(session, answer) not in known
        ]

    async def _good(self, lesson: Lesson, pairs: list[Pair]) -> list[Pair]:
        chosen = lesson.settings.episodes
        asked = assignment(lesson.key.tenant, FEATURE, chosen, prompt(pairs), lesson.model, SCHEMA)
        good = good_in((await self.completer.complete(asked)).text, pairs)
        if good is None:
            raise Unreadable('there is no JSON object with "good" in it')
        return good

    async def _episodes(self, lesson: Lesson, good: list[Pair]) -> list[Episode]:
        session = await self.exchanges.history.session(lesson.key) if good else None
        found: list[Episode] = []
        for pair in good:
            exchange = await self.exchanges.answered(lesson.key, pair.answer)
            if exchange is not None and session is not None:
                now, ttl = self.clock(), session.details.ttl
                found.append(episode_of(exchange, "learned", self.count, now, ttl))
        return found
