"""The learning job: reads each message of a person once, oldest first, across their sessions.

It is queued for a session; then all queued sessions of the person are read together, by one
process at a time.  A batch is what fits into one request.  What was learned and the read marks are
stored in one step, so that nothing is learned twice or in part, whenever the process ends.
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
    retry_denied,
)
from proxy.background.runner import LEASE, Backoff, LeaseLost, lease_held
from proxy.learning.batch import Batch, Extractor, Improver, LearningContext, MarkSweep
from proxy.learning.failures import BatchFailures, ImprovementKey, batch_key
from proxy.learning.reading import Reader
from proxy.memory.archive import Session
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.items import ItemOwner, Items
from proxy.memory.model import SessionKey, Work, WorkRequest
from proxy.memory.store import Queue, StoreError
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)

ATTEMPTS = 10
"""How often an extractor starts again after conflicts with others' changes."""

RETRY_AFTER_CONFLICT = 5.0
"""Seconds until the next run after too many conflicts."""

RETRY_WHILE_READ = 15.0
"""Seconds until the next run if another process is reading the person."""

MAX_REFUSED = 3
"""Consecutive refused batches after which the job stops reading."""

PAGE = 500
MAX_SESSIONS = 10_000
"""Sessions of a person that are checked for queued learning, the latest first: in a page, and in
all.  Others are read when their own work is due."""


def person_key(owner: ItemOwner) -> SessionKey:
    """The queue key of the lease on reading a person; no session can have this id."""
    digest = hashlib.sha256(owner.user.encode()).hexdigest()
    return SessionKey(owner.tenant, f" {digest}")


def improvement_key(improvement: ImprovementKey) -> SessionKey:
    """The queue key of the lease on an improvement; longer than any ``person_key``."""
    digest = hashlib.sha256(improvement.subject.encode()).hexdigest()
    return SessionKey(improvement.owner.tenant, f" {improvement.feature} {digest}")


@asynccontextmanager
async def exclusive(
    queue: Queue, key: SessionKey, clock: Callable[[], float]
) -> AsyncIterator[bool]:
    """Hold the lease on a key while the block runs; False if another process holds it.

    It is a piece of work in the queue, so that the lease of a killed process expires.  Raises
    LeaseLost and StoreError.
    """
    now = clock()
    due = WorkRequest(kind="learning", profile="", due_at=now)
    await queue.enqueue(key, due)
    work = Work(tenant=key.tenant, session=key.session, kind="learning", profile="", due=now)
    claimed = await queue.claim(work, now, now + LEASE)
    if claimed is None:
        yield False
        return
    try:
        async with lease_held(queue, claimed, clock):
            yield True
    finally:
        await queue.finish(claimed, clock())


class StepResults(msgspec.Struct):
    """The failures of a job's steps: all steps are run, then a failure is raised.  ``again``: a
    step asked to be run again."""

    failures: list[CompletionError | StoreError] = msgspec.field(default_factory=list)
    again: bool = False

    async def step(self, step: Callable[[], Awaitable[bool]]) -> None:
        try:
            self.again |= not await step()
        except (CompletionError, StoreError) as failure:
            self.failures.append(failure)

    def end(self, attempts: int, wait: float) -> None:
        """Raise a failure, if there was any.  A refusal is raised only if all failures are, as
        it ends the job; after a denial the job is tried again in ``wait`` seconds, as a session
        that is not continued is never queued again."""
        denied = next((each for each in self.failures if isinstance(each, Denied)), None)
        if denied is not None:
            retry_denied(denied, attempts, wait)
        if self.failures:
            raise min(self.failures, key=lambda failure: isinstance(failure, Refused))


class NotLearned(Exception):
    """A batch was neither learned nor skipped."""

    def __init__(self, batch: Batch, failure: CompletionError) -> None:
        super().__init__(str(failure))
        self.batch, self.failure = batch, failure

    def others(self, contexts: Sequence[LearningContext]) -> list[LearningContext]:
        """The sessions to continue with, without those of the failed batch's request groups.
        Raises the failure if the first session, for which the job runs, is in the batch."""
        (own, *rest), ranges = contexts, {range_.key for range_ in self.batch.ranges}
        if own.key in ranges or isinstance(self.failure, BudgetSpent):
            raise self.failure
        failing = {each.request_group for each in rest if each.key in ranges}
        return [own, *(each for each in rest if each.request_group not in failing)]


class LearningJob(msgspec.Struct):
    """See :class:`proxy.background.runner.Job`; the kind is "learning".

    ``profile_of`` gives a profile by its name, "" the default one.  ``on_skipped`` is called with
    the feature of each skipped batch.  ``clock`` gives Unix seconds; ``backoff`` is the wait of a
    batch after a failure of its model's upstream.
    """

    reader: Reader
    items: Items
    queue: Queue
    profile_of: Callable[[str], ProfileSettings | None]
    clock: Callable[[], float]
    backoff: Backoff
    extractors: Sequence[Extractor] = ()
    improvers: Sequence[Improver] = ()
    on_skipped: Callable[[str], None] = msgspec.field(default=lambda feature: None)
    _failures: BatchFailures = msgspec.field(default_factory=BatchFailures)
    _sweep: MarkSweep = msgspec.field(default_factory=MarkSweep)

    def is_ready(self, work: Work) -> bool:
        settings = self.profile_of(work.profile)
        parts: tuple[Extractor | Improver, ...] = (*self.extractors, *self.improvers)
        return settings is None or all(
            part.model.is_ready(work.tenant, settings)
            for part in parts
            if part.model.wants(settings)
        )

    async def run(self, work: Work) -> float | None:
        """Run all extractors and improvers, then raise a failure if there was any."""
        since, key = self.clock(), work.key
        session = await self.reader.history.session(key)
        context = await self._context(session, work.tenant, work.profile, since)
        if context is None:
            return None
        results = StepResults()
        busy = await self._has_unread(context) and not await self._read_exclusively(
            context, results
        )
        for improver in self.improvers:
            if improver.model.wants(context.settings):
                await results.step(partial(self._improve, improver, context))
        results.end(work.attempts, self.backoff.max_seconds)
        wait = RETRY_AFTER_CONFLICT if results.again else RETRY_WHILE_READ
        return self.clock() + wait if results.again or busy else None

    async def _context(
        self, session: Session | None, tenant: str, profile: str, since: float
    ) -> LearningContext | None:
        """None if there is no such session or profile any more."""
        settings = self.profile_of(profile)
        if session is None or settings is None:
            return None
        key = SessionKey(tenant, session.id)
        last = (await self.reader.history.load(key, NEWEST_TURN)).last
        model = (last.requested_model or last.model) if last else None
        return LearningContext(session, key, profile, settings, model, since)

    async def _has_unread(self, context: LearningContext) -> bool:
        """Whether a feature has unread messages in this session."""
        if not context.session.user:
            return False
        wanting = [s.model.feature for s in self.extractors if s.model.wants(context.settings)]
        for feature in wanting:
            if await self.reader.unread(self.items, feature, [context]):
                return True
        return False

    async def _read_exclusively(self, context: LearningContext, results: StepResults) -> bool:
        """Read the person's sessions; False if another process is reading them."""
        try:
            async with exclusive(self.queue, person_key(context.owner), self.clock) as may:
                if may:
                    await self._read(context, results)
                return may
        except LeaseLost:
            results.again = True
            return True

    async def _read(self, context: LearningContext, results: StepResults) -> None:
        """Read the person's queued sessions with all extractors."""
        own, *others = _with_models([context, *[each async for each in self._others(context)]])
        for extractor in self.extractors:
            if extractor.model.wants(context.settings):
                reading = [own, *(x for x in others if _may_read(extractor, x))]
                await results.step(partial(self._read_all, extractor, reading))
        await self._sweep.step(self.items, self.reader.history, context.owner, self.clock())

    async def _others(self, context: LearningContext) -> AsyncIterator[LearningContext]:
        """The person's other sessions that learning is queued for."""
        owner, after, seen = context.owner, None, 0
        while seen < MAX_SESSIONS:
            listed = self.reader.history.sessions
            page = await listed(owner.tenant, owner.user, after, PAGE)
            ids = [session.id for session in page.items if session.id != context.session.id]
            asked = await self.queue.requested_profiles(owner.tenant, ids, "learning")
            for session in page.items:
                if session.id in asked:
                    profile, since = asked[session.id], context.since or 0.0
                    other = await self._context(session, owner.tenant, profile, since)
                    if other is not None:
                        yield other
            seen, after = seen + len(page.items), page.after
            if after is None:
                return

    async def _read_all(self, extractor: Extractor, contexts: Sequence[LearningContext]) -> bool:
        """Read all batches with an extractor; False after too many conflicts.

        Sessions that were erased meanwhile are left out.
        """
        own = contexts[0]
        for _ in range(ATTEMPTS):
            if await self._read_available(extractor, contexts):
                return True
            contexts = [
                each
                for each in contexts
                if await self.reader.still_exists(each.key, each.session.created_at)
            ]
            if own not in contexts:
                return False
        return False

    async def _read_available(
        self, extractor: Extractor, contexts: Sequence[LearningContext]
    ) -> bool:
        """Read all batches, without the sessions whose models fail."""
        while True:
            try:
                return await self._read_on(extractor, contexts)
            except NotLearned as stopped:
                contexts = stopped.others(contexts)

    async def _read_on(self, extractor: Extractor, contexts: Sequence[LearningContext]) -> bool:
        """Read batch by batch; False at the first conflict with others' changes.  Raises
        NotLearned, and StoreError."""
        unread = await self.reader.unread(self.items, extractor.model.feature, contexts)
        budget_of = extractor.model.message_budget
        batches_of = self.reader.batches(unread, lambda context: budget_of(context.settings))
        refused = 0
        async with aclosing(batches_of) as batches:
            async for batch in batches:
                try:
                    learned, refusal = await self._learn(extractor, batch)
                except CompletionError as failure:
                    raise NotLearned(batch, failure) from failure
                refused = refused + 1 if refusal else 0
                if refusal and refused >= MAX_REFUSED:
                    raise NotLearned(batch, refusal)
                if not learned:
                    return False
        return True

    async def _learn(
        self, extractor: Extractor, batch: Batch
    ) -> tuple[bool, CompletionError | None]:
        """Learn or skip a batch: whether that was stored, and the refusal because of which it was
        skipped.

        Failures are counted by batch, for whichever session of the person the job runs.
        """
        key = batch_key(extractor.model.feature, batch)
        self._failures.check(key, self.clock())
        try:
            learned = await extractor.learn(batch)
            self._failures.reset_backoff(key)
            if learned:
                await self._take_back(extractor, batch)
            return learned, None
        except Denied:
            raise
        except Refused as refusal:
            return await self._skip(extractor, batch, refusal), refusal
        except Unreadable as failure:
            if self._failures.count_unreadable(key, self.backoff, self.clock()):
                raise
            return await self._skip(extractor, batch, failure), None
        except Failed as failure:
            self._failures.count_failure(key, failure, self.backoff, self.clock())
            raise

    async def _take_back(self, extractor: Extractor, batch: Batch) -> None:
        """Undo what was learned from messages that were deleted while the model read them.

        Checked after the write: a later deletion finds what was learned by itself.
        """
        gone = await self.reader.deleted_of(batch)
        if gone is not None:
            await extractor.take_back(batch.owner, gone)

    async def _skip(self, extractor: Extractor, batch: Batch, failure: CompletionError) -> bool:
        """Mark a batch as read that cannot be learned, so that the next ones are."""
        logger.warning("a batch of %s is skipped: %s", extractor.model.feature, failure)
        self.on_skipped(extractor.model.feature)
        return await batch.store(self.items, extractor.model.feature)

    async def _improve(self, improver: Improver, context: LearningContext) -> bool:
        """Improve what is due, if anything; False if it is to be tried again.

        One job does that at a time; an improvement that failed is retried by the job that tried it.
        """
        subject = await improver.subject(context)
        if subject is None:
            return True
        what = ImprovementKey(ItemOwner(context.tenant), improver.model.feature, subject)
        if self._failures.seconds_left(what, self.clock()) > 0:
            return True
        try:
            async with exclusive(self.queue, improvement_key(what), self.clock) as may:
                return await self._improve_exclusively(improver, context, what) if may else True
        except LeaseLost:
            return False

    async def _improve_exclusively(
        self, improver: Improver, context: LearningContext, what: ImprovementKey
    ) -> bool:
        try:
            improved = await improver.improve(context)
        except Denied as denied:
            failure = Failed(str(denied), self.backoff.max_seconds)
            self._failures.count_failure(what, failure, self.backoff, self.clock())
            raise
        except Failed as failure:
            self._failures.count_failure(what, failure, self.backoff, self.clock())
            raise
        self._failures.clear(what)
        return improved


def _with_models(contexts: Sequence[LearningContext]) -> list[LearningContext]:
    """The sessions, each with a model if any has one: those without one (imported and never
    continued) get that of another."""
    known = next((each.model for each in contexts if each.model), None)
    return [each if each.model else replace(each, model=known) for each in contexts]


def _may_read(extractor: Extractor, context: LearningContext) -> bool:
    """Whether the kind is enabled for this session and there is a credential to call the model."""
    model, settings = extractor.model, context.settings
    return model.wants(settings) and model.is_ready(context.tenant, settings)
