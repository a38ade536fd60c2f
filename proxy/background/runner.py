"""Runs what the queue holds, in every process that serves chats: one job for each kind of work.

The queue is shared: whoever claims a piece of work runs it, so that a session has one runner for
each kind of work at a time, whatever the number of processes.
"""

from __future__ import annotations

import asyncio
import logging
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
    Refused,
)
from proxy.logs import hashed
from proxy.memory.model import Kind, Work
from proxy.memory.store import Queue, StoreError


class Job(Protocol):
    """Knows what there is to do for a session; a piece of work only says where to look."""

    def ready(self, work: Work) -> bool:
        """Can this process do it: is the credential there that it needs?"""
        ...

    async def run(self, work: Work) -> float | None:
        """Do all there is to do now.

        The time (Unix seconds) to look again, None: not before it is asked for again.  What has
        been done stays done whatever is raised: Refused (never tried again), Failed, NoCredential,
        NoModel, NotYet, StoreError (all put off).
        """
        ...


Outcome = Literal["finished", "refused", "failed", "put_off", "lost"]
"""``put_off`` is nobody's failure; ``lost``: the lease was, and the work is somebody else's."""

NOT_HERE = 60.0
"""Seconds until work is looked at again whose credential no process has."""

NO_MODEL = 3600.0
"""Seconds until work is looked at again that has no model: it is due before where its session or
person goes on."""

NOT_YET = 3600.0
"""Seconds until work is looked at again for which it is too early, however long it has to wait: a
budget may have been raised meanwhile."""

DOUBLINGS = 30


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait after failures: ``first`` seconds, twice as long each time, to ``most``."""

    first: float
    most: float

    def seconds(self, attempts: int, chance: float) -> float:
        """After ``attempts`` earlier failures; ``chance`` (0 to 1) takes off up to a quarter."""
        longest = min(self.first * 2.0 ** min(attempts, DOUBLINGS), self.most)
        return longest * (1 - chance / 4)


class Ending(NamedTuple):
    """``due`` in Unix seconds is when to look again; None: not before it is asked for."""

    outcome: Outcome
    due: float | None = None


def ending_of(error: BaseException, now: float, wait: float) -> Ending:
    """What an exception of a job means; ``wait`` are the seconds to wait after a failure."""
    match error:
        case Refused():
            return Ending("refused")
        case NotYet(until=until):
            return Ending("put_off", min(until, now + NOT_YET))
        case NoCredential():
            return Ending("put_off", now + NOT_HERE)
        case NoModel():
            return Ending("put_off", now + NO_MODEL)
        case Failed(retry_after=least) if least is not None:
            return Ending("failed", now + max(wait, least))
        case _:
            return Ending("failed", now + wait)


LEASE = 60.0
"""Seconds after which the work of a killed process is another's."""

RENEWAL = 20.0
"""Seconds between renewals."""

RETRY = 5.0
"""Seconds to the next try where the store did not renew, and how long before its end a lease is
given up: nobody must begin while the job still runs."""


class LeaseLost(Exception):
    """The work is somebody else's now."""


@asynccontextmanager
async def held(queue: Queue, work: Work, clock: Callable[[], float]) -> AsyncIterator[None]:
    """Renew a claim that was just made until ``LEASE``; what runs inside is cancelled without it.

    Raises LeaseLost.
    """
    try:
        async with asyncio.timeout(None) as patience:
            renewing = _renew(queue, work, clock, patience)
            keeper = asyncio.create_task(renewing, name="background lease")
            try:
                yield
            finally:
                keeper.cancel()
                await asyncio.wait({keeper})
    except TimeoutError:
        if patience.expired():
            raise LeaseLost from None
        raise


async def _renew(
    queue: Queue, work: Work, clock: Callable[[], float], patience: asyncio.Timeout
) -> None:
    """Renew for as long as that is possible, then end the patience with the job."""
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
    patience.reschedule(0)


logger = logging.getLogger(__name__)

POLL = 1.0
"""Seconds between looks at the queue, more or less a fifth: processes must not keep step."""

SEEN = POLL / 2
"""Seconds for which a look past all that waits of some tenants is believed."""

PATIENCE = 5.0
"""Seconds for which work that cannot be done here is left to other processes."""

AT_ONCE = 64
"""Pieces of work that are looked at together."""

LOOKS = 64
"""After which a look ends, however many tenants there are whose work cannot be done here."""

REMEMBERED = 10_000
"""Tenants, and kinds of their work, of which is known whose turn was last."""

TIDYING = 1.0
"""Seconds that a cancelled job has to put its work off."""

STORE = Backoff(first=2 * POLL, most=30.0)
"""Between looks while the store is down."""


class Runner:
    """Runs at most ``concurrency`` jobs, and of one tenant at most half of them, at least one.

    No tenant has two places while another waits for its first; that goes to whose turn was longest
    ago, however much of the others' has been due for longer.  So do the kinds of a tenant's work
    take turns, as far as a look sees them.

    ``clock`` is in Unix seconds, ``chance`` gives numbers from 0 to 1; ``on_ended`` is told what
    became of each job.
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
        self._most, self._most_of_one = concurrency, max(1, concurrency // 2)
        self._clock, self._on_ended, self._chance = clock, on_ended, chance
        self._running: set[asyncio.Task[None]] = set()
        self._busy: Counter[str] = Counter()
        self._begun: LRUCache[str, int] = LRUCache(REMEMBERED)
        self._begun_kinds: LRUCache[tuple[str, Kind], int] = LRUCache(REMEMBERED)
        self._turns = 0
        self._looking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._looked = self._look_at = self._not_before = self._all_until = 0.0
        self._all = frozenset[str]()
        self._failures = 0
        self._closing = False

    def __repr__(self) -> str:
        return f"<Runner [running: {len(self._running)}]>"

    def open(self) -> None:
        self._looking = asyncio.create_task(self._run(), name="background")

    async def close(self, seconds: float) -> None:
        """Begin nothing more; what does not end within ``seconds`` is cancelled, to be done later
        or elsewhere."""
        self._closing = True
        self._changed.set()
        if self._looking is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.wait({self._looking})
                if self._running:
                    await asyncio.wait(self._running)
        left = [self._looking, *self._running]
        for _ in range(2):  # the second time ends what waits for the store to put its work off
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=TIDYING)

    def awake(self, at: float) -> None:
        """Something is due ``at`` (Unix seconds): look then, not when the next look would be."""
        self._all_until = min(self._all_until, at)
        self._look_again(at)

    def _look_again(self, at: float) -> None:
        self._look_at = min(self._look_at, at)
        self._changed.set()

    # Looking

    async def _run(self) -> None:
        while not self._closing:
            # Set before the look, so that who calls during the look is heard.
            self._looked = self._clock()
            self._look_at = self._looked + POLL * (0.8 + 0.4 * self._chance())
            try:
                await self._look()
                self._go_on()
            except StoreError as failure:
                self._pause(failure)
            except Exception:  # a background task has no caller: what failed is looked for again
                logger.exception("work in the background was not found")
                self._pause(None)
            await self._rest()

    def _go_on(self) -> None:
        if self._failures:
            logger.info("work in the background goes on")
        self._failures, self._not_before = 0, 0.0

    def _pause(self, failure: StoreError | None) -> None:
        if failure is not None and not self._failures:
            logger.warning("work in the background waits for the store: %s", failure)
        wait = STORE.seconds(self._failures, self._chance())
        self._failures, self._not_before = self._failures + 1, self._clock() + wait

    async def _rest(self) -> None:
        """Wait until it is time to look, as it is where the clock was put back behind the last
        look: what was reckoned by it may be hours ahead."""
        while not self._closing:
            self._changed.clear()
            now = self._clock()
            seconds = max(self._look_at, self._not_before) - now
            if seconds <= 0 or now < self._looked:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()

    async def _look(self) -> None:
        """Begin what there are places for: first one piece of each tenant.  Raises StoreError."""
        if await self._serve(1):
            await self._serve(self._most_of_one)

    async def _serve(self, most: int) -> bool:
        """Let each tenant have so many places; False if nothing is due.

        Those that have them are passed over, and then those that were looked at, so that whoever
        is behind a tenant with many pieces is found, too.
        """
        passed = frozenset(tenant for tenant, busy in self._busy.items() if busy >= most)
        for _ in range(LOOKS):
            if len(self._running) >= self._most or self._are_all(passed):
                break
            found = await self._queue.waiting(self._clock(), AT_ONCE, passed)
            for work in self._in_turn(found):
                await self._consider(work, most)
            passed |= {work.tenant for work in found}
            if len(found) < AT_ONCE:
                self._all, self._all_until = passed, self._clock() + SEEN
                break
        return bool(passed)

    def _are_all(self, tenants: frozenset[str]) -> bool:
        """Was there nothing but theirs a moment ago?  To read past all of it takes time, and each
        job that ends looks."""
        recent = 0 < self._all_until - self._clock() <= SEEN
        return recent and bool(tenants) and tenants >= self._all

    def _in_turn(self, found: Sequence[Work]) -> list[Work]:
        """One of each tenant, then another: first of those that have the fewest running, of these
        first whose turn was longest ago; each tenant's own first of the kind whose turn was, then
        in the order in which they are due."""
        places, turns = Counter(self._busy), list[tuple[int, int, int]]()
        for at, work in sorted(enumerate(found), key=lambda each: self._last_of_kind(each[1])):
            turns.append((places[work.tenant], self._begun.get(work.tenant, 0), at))
            places[work.tenant] += 1
        return [found[at] for *_, at in sorted(turns)]

    def _last_of_kind(self, work: Work) -> int:
        return self._begun_kinds.get((work.tenant, work.kind), 0)

    async def _consider(self, work: Work, most: int) -> None:
        """Begin a piece of work if there is a place for it; put it off if no process can do it."""
        if len(self._running) >= self._most or self._busy[work.tenant] >= most:
            return
        now, here = self._clock(), self._can(work)
        if self._closing or not (here or now - work.due >= PATIENCE):
            return
        claimed = await self._queue.claim(work, now, now + LEASE)
        if claimed is None:
            return
        if here:
            self._begin(claimed)
        else:
            await self._queue.put_off(claimed, now + NOT_HERE, failed=False)

    def _can(self, work: Work) -> bool:
        job = self._jobs.get(work.kind)
        try:
            return job is not None and job.ready(work)
        except Exception:  # one bad piece must not stop the others: it fails by itself
            logger.exception("a job does not know whether it can run")
            return True

    # Running

    def _begin(self, work: Work) -> None:
        self._busy[work.tenant] += 1
        self._turns += 1
        self._begun[work.tenant] = self._begun_kinds[work.tenant, work.kind] = self._turns
        task = asyncio.create_task(self._carry_out(work), name="background job")
        self._running.add(task)
        task.add_done_callback(lambda task: self._ended(task, work.tenant))

    def _ended(self, task: asyncio.Task[None], tenant: str) -> None:
        self._running.discard(task)
        self._busy[tenant] -= 1
        if not self._busy[tenant]:
            del self._busy[tenant]
        self._look_again(self._clock())

    async def _carry_out(self, work: Work) -> None:
        ending = await self._run_job(work)
        self._on_ended(work.kind, ending.outcome)
        try:
            if ending.outcome == "lost":
                return
            if ending.due is None:
                await self._queue.finish(work, self._clock())
            else:
                await self._queue.put_off(work, ending.due, failed=ending.outcome == "failed")
        except StoreError as failure:  # the lease runs out, and somebody looks again
            logger.warning("work in the background is left as it is: %s", failure)

    async def _run_job(self, work: Work) -> Ending:
        """What came of a job.  Raises nothing: the work is never left as it is but by the store."""
        try:
            async with held(self._queue, work, self._clock):
                return Ending("finished", await self._jobs[work.kind].run(work))
        except LeaseLost:
            logger.warning("a job was stopped, %s: its lease was lost", _named(work))
            return Ending("lost")
        except asyncio.CancelledError as error:
            if self._closing:
                return Ending("put_off", self._clock())
            return self._after(error, work)
        except (CompletionError, StoreError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            logger.warning("a job was not done, %s: %s", _named(work), reason)
            return self._after(error, work)
        except Exception as error:  # a background task has no caller: it is tried again later
            logger.exception("a job failed, %s", _named(work))
            return self._after(error, work)

    def _after(self, error: BaseException, work: Work) -> Ending:
        wait = self._backoff.seconds(work.attempts, self._chance())
        return ending_of(error, self._clock(), wait)


def _named(work: Work) -> str:
    """What work it is, and of which tenant, as the lines of requests have it."""
    return f"{work.kind} of {hashed(work.tenant)}"
