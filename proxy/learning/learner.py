"""The job of learning from a session: each student reads on from where it has read to.

A lesson is what fits into one request, oldest first.  What a student has learned and how far it has
read are stored in one step, so that nothing is learned twice or half, whenever the process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from proxy.background.completion import CompletionError, Denied, Refused
from proxy.learning.lesson import (
    Lesson,
    Occasion,
    Reflector,
    Student,
    Unreadable,
    mark_of,
    mark_place,
)
from proxy.learning.reader import Reader
from proxy.memory.items import Items, Shelf
from proxy.memory.model import SessionKey
from proxy.memory.reading import NEWEST_TURN
from proxy.memory.store import StoreError
from proxy.memory.work import Work
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)

ATTEMPTS = 10
"""How often a student begins again because others have changed the same."""

SOON = 5.0
"""Seconds after which a session is looked at again that others were too busy with."""

UNREADABLE_ATTEMPTS = 3
"""How often a piece of work is put off for answers that nobody can read; then they are skipped."""

REFUSED = 3
"""Lessons refused one after the other, after which the others are left for another time."""


@dataclass(slots=True)
class Learner:
    """See :class:`proxy.background.job.Job`; the kind is "learning".

    ``profile_of`` gives a profile by its name, "" the default one.  ``skipped`` is told the feature
    whose model has refused a lesson, or could not answer it.  ``clock`` gives Unix seconds.
    """

    reader: Reader
    items: Items
    profile_of: Callable[[str], ProfileSettings | None]
    clock: Callable[[], float]
    students: Sequence[Student] = ()
    reflectors: Sequence[Reflector] = ()
    skipped: Callable[[str], None] = field(default=lambda feature: None)

    def ready(self, work: Work) -> bool:
        settings = self.profile_of(work.profile)
        parts: tuple[Student | Reflector, ...] = (*self.students, *self.reflectors)
        return settings is None or all(
            part.ready(work.tenant, settings) for part in parts if part.wants(settings)
        )

    async def run(self, work: Work) -> float | None:
        """All students learn, whatever comes of the others; then what went wrong is raised."""
        since = self.clock()
        settings, key = self.profile_of(work.profile), SessionKey(work.tenant, work.session)
        session = await self.reader.history.session(key) if settings else None
        if settings is None or session is None:
            return None
        last = (await self.reader.history.load(key, NEWEST_TURN)).last
        model = (last.asked or last.model) if last else None
        occasion = Occasion(session, key, work.profile, settings, model, since)
        failures: list[CompletionError | StoreError] = []
        again = False
        for step in self._steps(occasion, work.attempts):
            try:
                again |= not await step()
            except (CompletionError, StoreError) as failure:
                failures.append(failure)
        if failures:  # a refusal alone is the end of it; everything else is tried again
            raise min(failures, key=lambda failure: isinstance(failure, Refused))
        return self.clock() + SOON if again else None

    def _steps(self, occasion: Occasion, attempts: int) -> list[Callable[[], Awaitable[bool]]]:
        settings = occasion.settings
        students = [s for s in self.students if occasion.session.user and s.wants(settings)]
        reflectors = [r for r in self.reflectors if r.wants(settings)]
        return [
            *(partial(self._teach, student, occasion, attempts) for student in students),
            *(partial(reflector.reflect, occasion) for reflector in reflectors),
        ]

    async def _teach(self, student: Student, occasion: Occasion, attempts: int) -> bool:
        """Let a student read on; False if others were in its way again and again.

        If the session was erased meanwhile, nothing of this occasion is stored any more.
        """
        for _ in range(ATTEMPTS):
            if await self._read_on(student, occasion, attempts):
                return True
            session = await self.reader.history.session(occasion.key)
            if session is None or session.created_at != occasion.session.created_at:
                return False
        return False

    async def _read_on(self, student: Student, occasion: Occasion, attempts: int) -> bool:
        """Lesson by lesson; False as soon as others have changed what it builds on."""
        shelf = Shelf(occasion.key.tenant, occasion.session.user or "")
        place = mark_place(shelf.user, student.feature, occasion.key.session)
        item = (await self.items.items_at(shelf, [place])).get(place)
        mark, version = mark_of(item, occasion.session.created_at), item.version if item else 0
        room = student.room(occasion.settings)
        refused = 0
        async with aclosing(self.reader.lessons(occasion, mark, version, room)) as lessons:
            async for lesson in lessons:
                learned, refusal = await self._learn(student, lesson, attempts)
                refused = refused + 1 if refusal else 0
                if refusal and refused >= REFUSED:
                    raise refusal
                if not learned:
                    return False
        return True

    async def _learn(
        self, student: Student, lesson: Lesson, attempts: int
    ) -> tuple[bool, CompletionError | None]:
        """Learn a lesson, or skip it: whether that is stored, and why it was skipped."""
        try:
            return await student.learn(lesson), None
        except Denied:
            raise
        except Refused as refusal:
            return await self._skip(student, lesson, refusal), refusal
        except Unreadable as failure:
            if attempts < UNREADABLE_ATTEMPTS:
                raise
            return await self._skip(student, lesson, failure), None

    async def _skip(self, student: Student, lesson: Lesson, failure: CompletionError) -> bool:
        """One lesson that cannot be learned must not be in the way of all that follow."""
        logger.warning("a lesson of %s is skipped: %s", student.feature, failure)
        self.skipped(student.feature)
        read = [lesson.mark(student.feature)]
        return await self.items.change_items(lesson.shelf, read, lesson.since)
