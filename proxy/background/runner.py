"""Runs the queue's work in every process that serves chats: one Job for each kind of work.

The queue is shared and work is claimed with a lease, so that only one process at a time runs a kind
of work for a session.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple, Protocol

import msgspec
from cachetools import LRUCache

from proxy.background.completion import (
    CompletionError,
    Failed,
    NoCredential,
    NoModel,
    NotYet,
    Paused,
    Refused,
)
from proxy.logs import hashed
from proxy.memory.model import Kind, Work
from proxy.memory.store import Queue, StoreError


class Job(Protocol):
    """Does one kind of work.  A piece of work only names the session; the job finds what to do."""

    def is_ready(self, work: Work) -> bool:
        """Whether this process can do it: the credential that it needs is known."""
        ...

    async def run(self, work: Work) -> float | None:
        """Do everything that is due.

        Returns when to run again (Unix seconds), None if not before it is queued again.  Raises
        Refused (never tried again), Failed, NoCredential, NoModel, NotYet, StoreError (all put
        off); work done before an exception is kept.
        """
        ...


Outcome = Literal["finished", "refused", "failed", "put_off", "lost"]
"""``put_off``: tried again, no failure.  ``lost``: the lease was lost to another process."""

OTHER_PROCESS_SECONDS = 60.0
"""Seconds until work whose credential no process has is tried again."""

NO_MODEL_SECONDS = 3600.0
"""Seconds until work without a model is tried again; the next turn makes it due earlier."""

MAX_DELAY_SECONDS = 3600.0
"""The longest time (seconds) until work is tried again that has to wait: meanwhile the settings may
have changed."""

DOUBLINGS = 30


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait after failures: ``first_seconds``, then twice as long each time, at most
    ``max_seconds``."""

    first_seconds: float
    max_seconds: float

    def seconds(self, attempts: int, chance: float) -> float:
        """After ``attempts`` earlier failures; ``chance`` (0 to 1) takes off up to a quarter."""
        longest = min(self.first_seconds * 2.0 ** min(attempts, DOUBLINGS), self.max_seconds)
        return longest * (1 - chance / 4)


class JobResult(NamedTuple):
    """How a job ended.  ``due``: when to run again (Unix seconds), None: when queued again.
    ``backs_off``: the same result again waits longer."""

    outcome: Outcome
    due: float | None = None
    backs_off: bool = False


def result_of_error(error: BaseException, now: float, wait: float) -> JobResult:
    """The result that an exception of a job means; ``wait``: seconds to wait after a failure."""
    match error:
        case Refused():
            return JobResult("refused")
        case Paused(until=until):  # else all that waits for a model would look again together
            return JobResult(
                "put_off", max(min(until, now + MAX_DELAY_SECONDS), now + wait), backs_off=True
            )
        case NotYet(until=until):
            return JobResult("put_off", min(until, now + MAX_DELAY_SECONDS))
        case NoCredential():
            return JobResult("put_off", now + OTHER_PROCESS_SECONDS)
        case NoModel():
            return JobResult("put_off", now + NO_MODEL_SECONDS)
        case Failed(retry_after=retry_after) if retry_after is not None:
            return JobResult("failed", now + max(wait, retry_after), backs_off=True)
        case _:
            return JobResult("failed", now + wait, backs_off=True)


LEASE = 60.0
"""Seconds after which the work of a killed process can be claimed again."""

RENEWAL = 20.0
"""Seconds between renewals."""

RETRY = 5.0
"""Seconds between attempts at a failed renewal, and before the end of the lease at which the job is
cancelled: no other process may begin while it runs."""


class LeaseLost(Exception):
    """The lease has expired: another process may run the work."""


@asynccontextmanager
async def lease_held(queue: Queue, work: Work, clock: Callable[[], float]) -> AsyncIterator[None]:
    """Renew the lease of claimed work while the block runs; if that fails, cancel the block.
    Raises LeaseLost."""
    try:
        async with asyncio.timeout(None) as deadline:
            renewing = _renew(queue, work, clock, deadline)
            keeper = asyncio.create_task(renewing, name="background lease")
            try:
                yield
            finally:
                keeper.cancel()
                await asyncio.wait({keeper})
    except TimeoutError:
        if deadline.expired():
            raise LeaseLost from None
        raise


async def _renew(
    queue: Queue, work: Work, clock: Callable[[], float], deadline: asyncio.Timeout
) -> None:
    """Renew the lease until that fails, then make the timeout ``deadline`` expire."""
    until, pause = clock() + LEASE, RENEWAL
    while clock() + RETRY < until:
        await asyncio.sleep(pause)
        now = clock()
        try:
            if not await queue.extend(work, now + LEASE):
                break
            until, pause = now + LEASE, RENEWAL
        except StoreError:
            pause = RETRY
    deadline.reschedule(0)


logger = logging.getLogger(__name__)

POLL = 1.0
"""Seconds between polls of the queue, plus or minus a fifth so that processes do not poll in
step."""

CACHED_SECONDS = POLL / 2
"""Seconds for which a poll's result is cached: the tenants of all waiting work."""

OVERDUE_SECONDS = 5.0
"""Seconds for which work that cannot be done here is left to other processes."""

BATCH = 64
"""Pieces of work read from the queue at a time."""

MAX_BATCHES = 64
"""Batches read in one poll."""

MAX_REMEMBERED = 10_000
"""Tenants, and kinds of their work, whose last turn is remembered."""

MAX_LOGGED = 1000
LOGGED_SECONDS = 600.0
"""Reasons of failures that are remembered, and the time before one is logged again: for hours it
may be the same for thousands of sessions."""

CANCEL_SECONDS = 1.0
"""Seconds that a cancelled job has to put its work off."""

STORE_BACKOFF = Backoff(first_seconds=2 * POLL, max_seconds=30.0)
"""Backoff between polls while the store fails."""


class Runner:
    """Runs at most ``concurrency`` jobs, at most half of them (at least one) for one tenant.

    Scheduling is round-robin: no tenant gets a second place while another waits for its first, and
    the first goes to the tenant whose last turn was longest ago, not to the work that is due
    longest.  The kinds of a tenant's work take turns too, within a batch.

    ``clock`` is in Unix seconds, ``chance`` returns numbers from 0 to 1; ``on_ended`` is called
    with the outcome of each job.
    """

    def __init__(
        self,
        queue: Queue,
        jobs: Mapping[Kind, Job],
        concurrency: int,
        backoff: Backoff,
        clock: Callable[[], float],
        on_ended: Callable[[Kind, Outcome], None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._queue, self._jobs, self._backoff = queue, jobs, backoff
        self._concurrency, self._tenant_limit = concurrency, max(1, concurrency // 2)
        self._clock, self._on_ended, self._chance = clock, on_ended, chance
        self._running: set[asyncio.Task[None]] = set()
        self._running_of: Counter[str] = Counter()
        self._tenant_turns: LRUCache[str, int] = LRUCache(MAX_REMEMBERED)
        self._kind_turns: LRUCache[tuple[str, Kind], int] = LRUCache(MAX_REMEMBERED)
        self._logged: LRUCache[str, float] = LRUCache(MAX_LOGGED)
        self._turns = 0
        self._polling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._polled_at = self._poll_at = self._not_before = self._cached_until = 0.0
        self._cached_tenants = frozenset[str]()
        self._failures = 0
        self._closing = False

    def __repr__(self) -> str:
        return f"<Runner [running: {len(self._running)}]>"

    def open(self) -> None:
        self._polling = asyncio.create_task(self._run(), name="background")

    async def close(self, seconds: float) -> None:
        """Start no more jobs; cancel those that do not end within ``seconds``, to be run later."""
        self._closing = True
        self._changed.set()
        if self._polling is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.wait({self._polling})
                if self._running:
                    await asyncio.wait(self._running)
        tasks = [self._polling, *self._running]
        for _ in range(2):  # the second time for jobs that wait for the store to put them off
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)

    def wake_at(self, at: float) -> None:
        """Poll ``at`` this time (Unix seconds), when something is due, unless earlier."""
        self._cached_until = min(self._cached_until, at)
        self._poll_by(at)

    def _poll_by(self, at: float) -> None:
        self._poll_at = min(self._poll_at, at)
        self._changed.set()

    # Polling

    async def _run(self) -> None:
        while not self._closing:
            # Set before the poll, so that ``wake_at`` during the poll has an effect.
            self._polled_at = self._clock()
            self._poll_at = self._polled_at + POLL * (0.8 + 0.4 * self._chance())
            try:
                await self._poll()
                self._end_pause()
            except StoreError as failure:
                self._pause(failure)
            except Exception:  # a background task has no caller: poll again later
                logger.exception("work in the background was not found")
                self._pause(None)
            await self._wait_for_poll()

    def _end_pause(self) -> None:
        if self._failures:
            logger.info("work in the background goes on")
        self._failures, self._not_before = 0, 0.0

    def _pause(self, failure: StoreError | None) -> None:
        if failure is not None and not self._failures:
            logger.warning("work in the background waits for the store: %s", failure)
        wait = STORE_BACKOFF.seconds(self._failures, self._chance())
        self._failures, self._not_before = self._failures + 1, self._clock() + wait

    async def _wait_for_poll(self) -> None:
        """Wait until the next poll, which is now where the clock was set back behind the last one:
        what was computed from it may be hours ahead."""
        while not self._closing:
            self._changed.clear()
            now = self._clock()
            seconds = max(self._poll_at, self._not_before) - now
            if seconds <= 0 or now < self._polled_at:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()

    async def _poll(self) -> None:
        """Fill the free places: first one job of each tenant, then more.  Raises StoreError."""
        if await self._serve(1):
            await self._serve(self._tenant_limit)

    async def _serve(self, per_tenant: int) -> bool:
        """Start jobs up to ``per_tenant`` per tenant; False if nothing is due.

        Each batch excludes tenants that have their places or were in an earlier batch, so that a
        tenant with much work does not hide the others.
        """
        excluded = frozenset(x for x, running in self._running_of.items() if running >= per_tenant)
        for _ in range(MAX_BATCHES):
            if len(self._running) >= self._concurrency or self._has_only(excluded):
                break
            batch = await self._queue.waiting(self._clock(), BATCH, excluded)
            for work in self._round_robin(batch):
                await self._try_begin(work, per_tenant)
            excluded |= {work.tenant for work in batch}
            if len(batch) < BATCH:
                self._cached_tenants = excluded
                self._cached_until = self._clock() + CACHED_SECONDS
                break
        return bool(excluded)

    def _has_only(self, tenants: frozenset[str]) -> bool:
        """Whether all waiting work was of these tenants at the last poll: reading past all of it is
        slow, and the end of each job polls."""
        recent = 0 < self._cached_until - self._clock() <= CACHED_SECONDS
        return recent and bool(tenants) and tenants >= self._cached_tenants

    def _round_robin(self, batch: Sequence[Work]) -> list[Work]:
        """The order in which to start: tenants with the fewest running jobs first, then those whose
        last turn was longest ago.  Within a tenant: the kind whose last turn was longest ago, then
        by due time."""
        running, turns = Counter(self._running_of), list[tuple[int, int, int]]()
        for at, work in sorted(enumerate(batch), key=lambda item: self._last_of_kind(item[1])):
            turns.append((running[work.tenant], self._tenant_turns.get(work.tenant, 0), at))
            running[work.tenant] += 1
        return [batch[at] for *_, at in sorted(turns)]

    def _last_of_kind(self, work: Work) -> int:
        return self._kind_turns.get((work.tenant, work.kind), 0)

    async def _try_begin(self, work: Work, per_tenant: int) -> None:
        """Start a piece of work if there is a place; put it off if no process can do it."""
        full = len(self._running) >= self._concurrency
        if full or self._running_of[work.tenant] >= per_tenant:
            return
        now, is_ready = self._clock(), self._is_ready(work)
        if self._closing or not (is_ready or now - work.due >= OVERDUE_SECONDS):
            return
        claimed = await self._queue.claim(work, now, now + LEASE)
        if claimed is None:
            return
        if is_ready:
            self._begin(claimed)
        else:
            await self._queue.postpone(claimed, now + OTHER_PROCESS_SECONDS, failed=False)

    def _is_ready(self, work: Work) -> bool:
        job = self._jobs.get(work.kind)
        try:
            return job is not None and job.is_ready(work)
        except Exception:  # must not stop the others: the job is run, and fails by itself
            logger.exception("a job does not know whether it can run")
            return True

    # Running

    def _begin(self, work: Work) -> None:
        self._running_of[work.tenant] += 1
        self._turns += 1
        self._tenant_turns[work.tenant] = self._turns
        self._kind_turns[work.tenant, work.kind] = self._turns
        task = asyncio.create_task(self._execute(work), name="background job")
        self._running.add(task)
        task.add_done_callback(lambda task: self._on_task_done(task, work.tenant))

    def _on_task_done(self, task: asyncio.Task[None], tenant: str) -> None:
        self._running.discard(task)
        self._running_of[tenant] -= 1
        if not self._running_of[tenant]:
            del self._running_of[tenant]
        self._poll_by(self._clock())

    async def _execute(self, work: Work) -> None:
        result = await self._run_job(work)
        self._on_ended(work.kind, result.outcome)
        try:
            if result.outcome == "lost":
                return
            if result.due is None:
                await self._queue.finish(work, self._clock())
            else:
                await self._queue.postpone(work, result.due, failed=result.backs_off)
        except StoreError as failure:  # the lease expires, and the work is claimed again
            logger.warning("work in the background is left as it is: %s", failure)

    async def _run_job(self, work: Work) -> JobResult:
        """Run a job.  Raises nothing, so that the work is always finished or put off."""
        try:
            async with lease_held(self._queue, work, self._clock):
                return JobResult("finished", await self._jobs[work.kind].run(work))
        except LeaseLost:
            logger.warning("a job was stopped, %s: its lease was lost", _described(work))
            return JobResult("lost")
        except asyncio.CancelledError as error:
            if self._closing:
                return JobResult("put_off", self._clock())
            return self._result_after(error, work)
        except (CompletionError, StoreError, TimeoutError) as error:
            self._log(f"{_described(work)}: {str(error) or 'no answer in time'}")
            return self._result_after(error, work)
        except Exception as error:  # a background task has no caller: it is tried again later
            logger.exception("a job failed, %s", _described(work))
            return self._result_after(error, work)

    def _log(self, failure: str) -> None:
        now = self._clock()
        if not 0 <= now - self._logged.get(failure, -math.inf) < LOGGED_SECONDS:
            self._logged[failure] = now
            logger.warning("a job was not done, %s", failure)

    def _result_after(self, error: BaseException, work: Work) -> JobResult:
        wait = self._backoff.seconds(work.attempts, self._chance())
        return result_of_error(error, self._clock(), wait)


def _described(work: Work) -> str:
    """The kind of work and the tenant's hash, for logs."""
    return f"{work.kind} of {hashed(work.tenant)}"
