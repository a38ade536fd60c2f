"""The job of learning from a session: each extractor reads on from where it has read to.

A batch is what fits into one request, oldest first.  What an extractor has learned and how far it
has read are stored in one step, so that nothing is learned twice or half, whenever the process
ends.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from proxy.background.completion import CompletionError, Denied, Refused
from proxy.learning.batch import (
    Batch,
    Extractor,
    Improver,
    LearningContext,
    Reader,
    mark_of,
    mark_place,
)
from proxy.learning.extract import Unreadable
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.items import ItemOwner, Items
from proxy.memory.model import SessionKey, Work
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)

ATTEMPTS = 10
"""How often an extractor begins again because others have changed the same."""

SOON = 5.0
"""Seconds after which a session is looked at again that others were too busy with."""

UNREADABLE_ATTEMPTS = 3
"""How often a piece of work is put off for answers that nobody can read; then they are skipped."""

REFUSED = 3
"""Batches refused one after the other, after which the others are left for another time."""


@dataclass(slots=True)
class LearningJob:
    """See :class:`proxy.background.runner.Job`; the kind is "learning".

    ``profile_of`` gives a profile by its name, "" the default one.  ``skipped`` is told the feature
    whose model has refused a batch, or could not answer it.  ``clock`` gives Unix seconds.
    """

    reader: Reader
    items: Items
    profile_of: Callable[[str], ProfileSettings | None]
    clock: Callable[[], float]
    extractors: Sequence[Extractor] = ()
    improvers: Sequence[Improver] = ()
    skipped: Callable[[str], None] = field(default=lambda feature: None)

    def ready(self, work: Work) -> bool:
        settings = self.profile_of(work.profile)
        parts: tuple[Extractor | Improver, ...] = (*self.extractors, *self.improvers)
        return settings is None or all(
            part.model.ready(work.tenant, settings) for part in parts if part.model.wants(settings)
        )

    async def run(self, work: Work) -> float | None:
        """All extractors learn, whatever comes of the others; then what went wrong is raised."""
        since = self.clock()
        settings, key = self.profile_of(work.profile), SessionKey(work.tenant, work.session)
        session = await self.reader.history.session(key) if settings else None
        if settings is None or session is None:
            return None
        last = (await self.reader.history.load(key, NEWEST_TURN)).last
        model = (last.asked or last.model) if last else None
        context = LearningContext(session, key, work.profile, settings, model, since)
        failures: list[CompletionError | StoreError] = []
        again = False
        for step in self._steps(context, work.attempts):
            try:
                again |= not await step()
            except (CompletionError, StoreError) as failure:
                failures.append(failure)
        if failures:  # a refusal alone is the end of it; everything else is tried again
            raise min(failures, key=lambda failure: isinstance(failure, Refused))
        return self.clock() + SOON if again else None

    def _steps(
        self, context: LearningContext, attempts: int
    ) -> list[Callable[[], Awaitable[bool]]]:
        settings = context.settings
        extractors = [
            s for s in self.extractors if context.session.user and s.model.wants(settings)
        ]
        improvers = [r for r in self.improvers if r.model.wants(settings)]
        return [
            *(partial(self._read_all, extractor, context, attempts) for extractor in extractors),
            *(partial(improver.improve, context) for improver in improvers),
        ]

    async def _read_all(
        self, extractor: Extractor, context: LearningContext, attempts: int
    ) -> bool:
        """Let an extractor read on; False if others were in its way again and again.

        If the session was erased meanwhile, nothing of this context is stored any more.
        """
        for _ in range(ATTEMPTS):
            if await self._read_on(extractor, context, attempts):
                return True
            session = await self.reader.history.session(context.key)
            if session is None or session.created_at != context.session.created_at:
                return False
        return False

    async def _read_on(self, extractor: Extractor, context: LearningContext, attempts: int) -> bool:
        """Batch by batch; False as soon as others have changed what it builds on."""
        shelf = ItemOwner(context.key.tenant, context.session.user or "")
        place = mark_place(shelf.user, extractor.model.feature, context.key.session)
        item = (await self.items.items_at(shelf, [place])).get(place)
        mark, version = mark_of(item, context.session.created_at), item.version if item else 0
        room = extractor.model.room(context.settings)
        refused = 0
        async with aclosing(self.reader.batches(context, mark, version, room)) as batches:
            async for batch in batches:
                learned, refusal = await self._learn(extractor, batch, attempts)
                refused = refused + 1 if refusal else 0
                if refusal and refused >= REFUSED:
                    raise refusal
                if not learned:
                    return False
        return True

    async def _learn(
        self, extractor: Extractor, batch: Batch, attempts: int
    ) -> tuple[bool, CompletionError | None]:
        """Learn a batch, or skip it: whether that is stored, and why it was skipped."""
        try:
            return await extractor.learn(batch), None
        except Denied:
            raise
        except Refused as refusal:
            return await self._skip(extractor, batch, refusal), refusal
        except Unreadable as failure:
            if attempts < UNREADABLE_ATTEMPTS:
                raise
            return await self._skip(extractor, batch, failure), None

    async def _skip(self, extractor: Extractor, batch: Batch, failure: CompletionError) -> bool:
        """One batch that cannot be learned must not be in the way of all that follow."""
        logger.warning("a batch of %s is skipped: %s", extractor.model.feature, failure)
        self.skipped(extractor.model.feature)
        read = [batch.mark(extractor.model.feature)]
        return await self.items.change_items(batch.shelf, read, batch.since)
