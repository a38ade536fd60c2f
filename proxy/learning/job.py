"""The job of learning from people: what a person has said is read once, and oldest first, whatever
session it was said in.

A session asks for it; then all sessions of its person that ask are read together, by one reader at
a time.  A batch is what fits into one request.  What an extractor has learned and how far it has
read are stored in one step, so that nothing is learned twice or half, whenever the process ends.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial

import msgspec
from msgspec.structs import replace

from proxy.background.completion import (
    BudgetSpent,
    CompletionError,
    Denied,
    Failed,
    Refused,
    Unreadable,
    try_again,
)
from proxy.background.runner import LEASE, Backoff, LeaseLost, held
from proxy.learning.batch import Batch, Extractor, Improver, LearningContext
from proxy.learning.failures import BatchFailures, Improvement, batch_name
from proxy.learning.marks import MarkSweep
from proxy.learning.reading import Reader
from proxy.memory.archive import Session
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.items import ItemOwner, Items
from proxy.memory.model import Due, SessionKey, Work
from proxy.memory.store import Queue, StoreError
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)

ATTEMPTS = 10
"""How often an extractor begins again because others have changed the same."""

SOON = 5.0
"""Seconds after which a session is looked at again that others were too busy with."""

BUSY = 15.0
"""Seconds after which one is looked at again whose person is being read: it is read then, too."""

REFUSED = 3
"""Batches refused one after the other, after which the others are left for another time."""

LISTED = 500
MOST_SESSIONS = 10_000
"""Sessions of a person that are looked at for what they ask, the latest first: at once, and in all.
The others are read when they come due themselves."""


def person_key(shelf: ItemOwner) -> SessionKey:
    """Under which the queue keeps who reads a person: no session can be called so."""
    digest = hashlib.sha256(shelf.user.encode()).hexdigest()
    return SessionKey(shelf.tenant, f" {digest}")


def improvement_key(improvement: Improvement) -> SessionKey:
    """The same of who improves something; no person's digest is as long."""
    digest = hashlib.sha256(improvement.subject.encode()).hexdigest()
    return SessionKey(improvement.shelf.tenant, f" {improvement.feature} {digest}")


@asynccontextmanager
async def alone(queue: Queue, key: SessionKey, clock: Callable[[], float]) -> AsyncIterator[bool]:
    """Whether nobody else does what has this key, in all processes, for as long as this lasts.

    A piece of work stands for who does, so that a killed one's place is free when its lease runs
    out.  Raises LeaseLost, and StoreError.
    """
    now = clock()
    due = Due(kind="learning", profile="", at=now)
    await queue.enqueue(key, due)
    work = Work(tenant=key.tenant, session=key.session, kind="learning", profile="", due=now)
    claimed = await queue.claim(work, now, now + LEASE)
    if claimed is None:
        yield False
        return
    try:
        async with held(queue, claimed, clock):
            yield True
    finally:
        await queue.finish(claimed, clock())


class Tried(msgspec.Struct):
    """What came of the steps of a job: all are tried, then what went wrong is raised."""

    failures: list[CompletionError | StoreError] = msgspec.field(default_factory=list)
    again: bool = False

    async def step(self, step: Callable[[], Awaitable[bool]]) -> None:
        try:
            self.again |= not await step()
        except (CompletionError, StoreError) as failure:
            self.failures.append(failure)

    def end(self, attempts: int, wait: float) -> None:
        """Raise what went wrong, if anything did.  A refusal alone ends the job; else it is tried
        again, after a denial in so many seconds: nobody else asks for what was said where its
        session is not gone on with."""
        denied = next((each for each in self.failures if isinstance(each, Denied)), None)
        if denied is not None:
            try_again(denied, attempts, wait)
        if self.failures:
            raise min(self.failures, key=lambda failure: isinstance(failure, Refused))


class NotLearned(Exception):
    """A batch was neither learned nor skipped."""

    def __init__(self, batch: Batch, failure: CompletionError) -> None:
        super().__init__(str(failure))
        self.batch, self.failure = batch, failure

    def others(self, contexts: Sequence[LearningContext]) -> list[LearningContext]:
        """The sessions to read on with: those that ask like the ones in the batch wait until they
        come due themselves.  Raises the failure where it is that of the first one, too."""
        (own, *rest), ranges = contexts, {range_.key for range_ in self.batch.ranges}
        if own.key in ranges or isinstance(self.failure, BudgetSpent):
            raise self.failure
        failing = {each.request_group for each in rest if each.key in ranges}
        return [own, *(each for each in rest if each.request_group not in failing)]


class LearningJob(msgspec.Struct):
    """See :class:`proxy.background.runner.Job`; the kind is "learning".

    ``profile_of`` gives a profile by its name, "" the default one.  ``skipped`` is told the feature
    whose model has refused a batch, or could not answer it.  ``clock`` gives Unix seconds;
    ``backoff`` is how long a batch waits that its model's upstream has failed.
    """

    reader: Reader
    items: Items
    queue: Queue
    profile_of: Callable[[str], ProfileSettings | None]
    clock: Callable[[], float]
    backoff: Backoff
    extractors: Sequence[Extractor] = ()
    improvers: Sequence[Improver] = ()
    skipped: Callable[[str], None] = msgspec.field(default=lambda feature: None)
    _failures: BatchFailures = msgspec.field(default_factory=BatchFailures)
    _sweep: MarkSweep = msgspec.field(default_factory=MarkSweep)

    def ready(self, work: Work) -> bool:
        settings = self.profile_of(work.profile)
        parts: tuple[Extractor | Improver, ...] = (*self.extractors, *self.improvers)
        return settings is None or all(
            part.model.ready(work.tenant, settings) for part in parts if part.model.wants(settings)
        )

    async def run(self, work: Work) -> float | None:
        """All extractors learn, whatever comes of the others; then what went wrong is raised."""
        since, key = self.clock(), SessionKey(work.tenant, work.session)
        session = await self.reader.history.session(key)
        context = await self._context(session, work.tenant, work.profile, since)
        if context is None:
            return None
        tried = Tried()
        busy = await self._waits(context) and not await self._read_alone(context, tried)
        for improver in self.improvers:
            if improver.model.wants(context.settings):
                await tried.step(partial(self._improve, improver, context))
        tried.end(work.attempts, self.backoff.most)
        wait = SOON if tried.again else BUSY
        return self.clock() + wait if tried.again or busy else None

    async def _context(
        self, session: Session | None, tenant: str, profile: str, since: float
    ) -> LearningContext | None:
        """None where there is nothing to read any more, or nobody wants it."""
        settings = self.profile_of(profile)
        if session is None or settings is None:
            return None
        key = SessionKey(tenant, session.id)
        last = (await self.reader.history.load(key, NEWEST_TURN)).last
        model = (last.asked or last.model) if last else None
        return LearningContext(session, key, profile, settings, model, since)

    async def _waits(self, context: LearningContext) -> bool:
        """Has this session something that has not been read?"""
        if not context.session.user:
            return False
        wanting = [s.model.feature for s in self.extractors if s.model.wants(context.settings)]
        for feature in wanting:
            if await self.reader.unread(self.items, feature, [context]):
                return True
        return False

    async def _read_alone(self, context: LearningContext, tried: Tried) -> bool:
        """Read what waits of the person; False if somebody else does that now."""
        try:
            async with alone(self.queue, person_key(context.shelf), self.clock) as may:
                if may:
                    await self._read(context, tried)
                return may
        except LeaseLost:
            tried.again = True
            return True

    async def _read(self, context: LearningContext, tried: Tried) -> None:
        """Read all that waits of the person, with all extractors."""
        own, *others = _with_models([context, *[each async for each in self._others(context)]])
        for extractor in self.extractors:
            if extractor.model.wants(context.settings):
                reading = [own, *(x for x in others if _can(extractor, x))]
                await tried.step(partial(self._read_all, extractor, reading))
        await self._sweep.step(self.items, self.reader.history, context.shelf, self.clock())

    async def _others(self, context: LearningContext) -> AsyncIterator[LearningContext]:
        """The other sessions of the person that ask for learning."""
        shelf, after, seen = context.shelf, None, 0
        while seen < MOST_SESSIONS:
            listed = self.reader.history.sessions
            page = await listed(shelf.tenant, shelf.user, after, LISTED)
            ids = [session.id for session in page.items if session.id != context.session.id]
            asked = await self.queue.asked_for(shelf.tenant, ids, "learning")
            for session in page.items:
                if session.id in asked:
                    profile, since = asked[session.id], context.since or 0.0
                    other = await self._context(session, shelf.tenant, profile, since)
                    if other is not None:
                        yield other
            seen, after = seen + len(page.items), page.after
            if after is None:
                return

    async def _read_all(self, extractor: Extractor, contexts: Sequence[LearningContext]) -> bool:
        """Let an extractor read on; False if others were in its way again and again.

        Of a session that was erased meanwhile, nothing more is read.
        """
        own = contexts[0]
        for _ in range(ATTEMPTS):
            if await self._read_past(extractor, contexts):
                return True
            contexts = [each for each in contexts if await self._is_there(each)]
            if own not in contexts:
                return False
        return False

    async def _is_there(self, context: LearningContext) -> bool:
        session = await self.reader.history.session(context.key)
        return session is not None and session.created_at == context.session.created_at

    async def _read_past(self, extractor: Extractor, contexts: Sequence[LearningContext]) -> bool:
        """Read on, whatever is the matter with the models of other sessions."""
        while True:
            try:
                return await self._read_on(extractor, contexts)
            except NotLearned as stopped:
                contexts = stopped.others(contexts)

    async def _read_on(self, extractor: Extractor, contexts: Sequence[LearningContext]) -> bool:
        """Batch by batch; False as soon as others have changed what it builds on.

        Raises NotLearned, and StoreError.
        """
        unread = await self.reader.unread(self.items, extractor.model.feature, contexts)
        room = partial(_room, extractor)
        refused = 0
        async with aclosing(self.reader.batches(unread, room)) as batches:
            async for batch in batches:
                try:
                    learned, refusal = await self._learn(extractor, batch)
                except CompletionError as failure:
                    raise NotLearned(batch, failure) from failure
                refused = refused + 1 if refusal else 0
                if refusal and refused >= REFUSED:
                    raise NotLearned(batch, refusal)
                if not learned:
                    return False
        return True

    async def _learn(
        self, extractor: Extractor, batch: Batch
    ) -> tuple[bool, CompletionError | None]:
        """Learn a batch, or skip it: whether that is stored, and why it was skipped.

        How often it has failed counts for whichever session of the person asks.
        """
        name = batch_name(extractor.model.feature, batch)
        self._failures.check(name, self.clock())
        try:
            learned = await extractor.learn(batch)
            self._failures.learned(name)
            if learned:
                await self._take_back(extractor, batch)
            return learned, None
        except Denied:
            raise
        except Refused as refusal:
            return await self._skip(extractor, batch, refusal), refusal
        except Unreadable as failure:
            if self._failures.unreadable(name, self.backoff, self.clock()):
                raise
            return await self._skip(extractor, batch, failure), None
        except Failed as failure:
            self._failures.failed(name, failure, self.backoff, self.clock())
            raise

    async def _take_back(self, extractor: Extractor, batch: Batch) -> None:
        """Nothing stays of what was deleted while the model read it.

        Looked at after the write: who deletes what they have read of sees all that came of it.
        """
        gone = await self.reader.gone(batch)
        if gone is not None:
            await extractor.take_back(batch.shelf, gone)

    async def _skip(self, extractor: Extractor, batch: Batch, failure: CompletionError) -> bool:
        """One batch that cannot be learned must not be in the way of all that follow."""
        logger.warning("a batch of %s is skipped: %s", extractor.model.feature, failure)
        self.skipped(extractor.model.feature)
        read = batch.mark_changes(extractor.model.feature)
        return await self.items.change_items(batch.shelf, read, batch.since)

    async def _improve(self, improver: Improver, context: LearningContext) -> bool:
        """Improve what is to be made better now, if anything; False: to be tried again.

        One session does that at a time.  What another is at, or has failed at, it tries again
        itself.
        """
        subject = await improver.subject(context)
        if subject is None:
            return True
        what = Improvement(ItemOwner(context.tenant), improver.model.feature, subject)
        if self._failures.wait(what, self.clock()) > 0:
            return True
        try:
            async with alone(self.queue, improvement_key(what), self.clock) as may:
                return await self._improve_alone(improver, context, what) if may else True
        except LeaseLost:
            return False

    async def _improve_alone(
        self, improver: Improver, context: LearningContext, what: Improvement
    ) -> bool:
        try:
            improved = await improver.improve(context)
        except Denied as denied:
            failure = Failed(str(denied), self.backoff.most)
            self._failures.failed(what, failure, self.backoff, self.clock())
            raise
        except Failed as failure:
            self._failures.failed(what, failure, self.backoff, self.clock())
            raise
        self._failures.forget(what)
        return improved


def _with_models(contexts: Sequence[LearningContext]) -> list[LearningContext]:
    """The sessions, each with a model, if any has one: one that was imported, and not gone on with,
    has named none, and is read with that of another."""
    known = next((each.model for each in contexts if each.model), None)
    return [each if each.model else replace(each, model=known) for each in contexts]


def _can(extractor: Extractor, context: LearningContext) -> bool:
    """Is there a credential to read this session with, and a wish to?"""
    model, settings = extractor.model, context.settings
    return model.wants(settings) and model.ready(context.tenant, settings)


def _room(extractor: Extractor, context: LearningContext) -> int:
    return extractor.model.room(context.settings)
