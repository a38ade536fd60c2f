"""Runs the indexer in a running proxy, shortly after messages are recorded.

A session's turns are batched until it is quiet: indexing ten costs little more than one.  A query
that could find them has them indexed first: see ``flush``.  Sessions that need no index yet are
batched for longer: see ``defer``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from cachetools import LRUCache

from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import Owner
from proxy.recall.indexing.indexer import Indexer

logger = logging.getLogger(__name__)

DELAY = 0.25
"""Seconds for which a session must be quiet before its new messages are indexed."""

MAX_DELAYS = 4
"""After so many delays they are indexed even if the session is not quiet."""

DEFERRED_EXCHANGES = 8
"""Exchanges after which a deferred session is indexed."""

RETRY = 2.0
"""Seconds to wait after a failure of the store."""

MAX_REMEMBERED = 10_000
"""Owners and sessions in memory."""

MAX_QUEUED = 50_000
"""Queued work; what is dropped is found when its owner's index is next used."""

CHECK_INTERVAL = 600.0
"""Seconds after which an owner's index is checked again, for what other hosts have missed."""

CONCURRENCY = 4
"""Sessions that are indexed concurrently: most of the time is spent waiting for the store."""


class EditedMessage(NamedTuple):
    """An edited message."""

    key: SessionKey
    seq: int


Work = SessionKey | Owner | EditedMessage


class QueuedRounds(NamedTuple):
    """The rounds in which a piece of work was first and last queued."""

    first: int
    last: int


class LateSessions:
    """Sessions with messages that are known not to be indexed yet, by owner."""

    def __init__(self) -> None:
        self._owners: OrderedDict[SessionKey, Owner] = OrderedDict()
        self._late: dict[Owner, Counter[SessionKey]] = {}

    def set_owner(self, key: SessionKey, owner: Owner) -> None:
        """Set the owner of a session, as its requests name it."""
        if self._owners.get(key) != owner:
            self._drop(key)
        self._owners[key] = owner
        self._owners.move_to_end(key)
        if len(self._owners) > MAX_REMEMBERED:
            self._drop(next(iter(self._owners)))

    def of_owner(self, owner: Owner) -> tuple[SessionKey, ...]:
        return tuple(self._late.get(owner, ()))

    def has(self, key: SessionKey) -> bool:
        owner = self._owners.get(key)
        return owner is not None and key in self._late.get(owner, ())

    def add(self, work: Work) -> None:
        if isinstance(work, SessionKey) and (owner := self._owners.get(work)):
            self._late.setdefault(owner, Counter())[work] += 1

    def done(self, work: Work) -> None:
        """Queued work has been indexed."""
        if not isinstance(work, SessionKey):
            return
        owner = self._owners.get(work)
        late = self._late.get(owner) if owner else None
        if late and late[work] > 1:
            late[work] -= 1
        else:
            self._clear(work)

    def _drop(self, key: SessionKey) -> None:
        self._clear(key)
        self._owners.pop(key, None)

    def _clear(self, key: SessionKey) -> None:
        owner = self._owners.get(key)
        late = self._late.get(owner) if owner else None
        if owner and late:
            late.pop(key, None)
            if not late:
                del self._late[owner]


class IndexUpdater:
    """Indexes queued work in the background; the same work is queued only once.

    Failed work is retried; unfinished work of a process that ends is found when its owner's index
    is next used.
    """

    def __init__(
        self,
        indexer: Indexer,
        clock: Callable[[], float],
        on_indexed: Callable[[int], None],
        delay: float = DELAY,
    ) -> None:
        self._indexer, self._clock, self._on_indexed = indexer, clock, on_indexed
        self._delay = delay
        self._waiting: OrderedDict[Work, QueuedRounds] = OrderedDict()
        self._due: deque[Work] = deque()
        self._late = LateSessions()
        self._deferred: OrderedDict[SessionKey, int] = OrderedDict()
        """Deferred sessions, with the number of exchanges that are not indexed."""
        self._round = 0
        self._checked_at: LRUCache[Owner, float] = LRUCache(MAX_REMEMBERED)
        self._stale: set[Owner] = set()
        self._locks: Locks[Work] = Locks()
        """Serialises the same work: of two concurrent writers one would have to repeat it."""
        self._next: dict[SessionKey, asyncio.Task[bool]] = {}
        """Tasks of ``flush`` that have not begun yet, to be shared."""
        self._flushing: set[asyncio.Task[bool]] = set()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<IndexUpdater [waiting: {len(self._waiting)}]>"

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="indexing")

    async def close(self, timeout: float) -> None:
        """Finish queued work, within ``timeout`` seconds."""
        if self._task is None:
            return
        under_way = (self._task, *self._flushing)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._next.clear()
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(timeout):
                await self._drain()

    def on_recorded(self, key: SessionKey) -> None:
        """An exchange of this session was recorded."""
        late = self._deferred.get(key)
        if late is None:
            self._add(key)
            return
        if not late:
            self._late.add(key)
        self._deferred[key] = late + 1
        if late + 1 == DEFERRED_EXCHANGES:
            self._stop_deferring(key)

    def on_edited(self, key: SessionKey, seqs: Sequence[int]) -> None:
        """Messages of this session were edited."""
        for seq in seqs:
            self._add(EditedMessage(key, seq))

    def check_soon(self, owner: Owner) -> None:
        """Queue a check of an owner's index against history, at most every ``CHECK_INTERVAL``."""
        now = self._clock()
        if now - self._checked_at.get(owner, -CHECK_INTERVAL) < CHECK_INTERVAL:
            return
        self._checked_at[owner] = now
        self._add(owner)

    def on_query(self, key: SessionKey, owner: Owner) -> None:
        """A query in this session, which belongs to this owner."""
        self.check_soon(owner)
        self._late.set_owner(key, owner)
        self._stop_deferring(key)

    def _stop_deferring(self, key: SessionKey) -> None:
        if self._deferred.pop(key, 0):
            self._late.done(key)
            self._add(key)

    def defer(self, key: SessionKey, owner: Owner) -> None:
        """Index a session without user only after ``DEFERRED_EXCHANGES`` exchanges or before the
        next query: all that recall could find is in its prompt.  Most such sessions end before
        that."""
        self._late.set_owner(key, owner)
        self._deferred.setdefault(key, 0)
        self._deferred.move_to_end(key)
        if len(self._deferred) > MAX_REMEMBERED:
            forgotten, late = self._deferred.popitem(last=False)
            if late:
                self._late.done(forgotten)

    def has_unindexed(self, key: SessionKey) -> bool:
        """Whether a session is known to have messages that are not indexed yet."""
        return self._late.has(key)

    async def flush(self, owner: Owner, but: SessionKey | None = None) -> None:
        """Index the queued work of an owner's sessions now, except of session ``but``.

        Concurrent callers share the work, and cancelling them does not stop it.  If the store
        refuses writes (it is full), the work stays queued and the query uses the index as it is.
        """
        for key in self._late.of_owner(owner):
            if key != but and not await asyncio.shield(self._next.get(key) or self._begin(key)):
                return

    def _begin(self, key: SessionKey) -> asyncio.Task[bool]:
        task = self._next[key] = asyncio.create_task(
            self._flush_session(key), name="indexing at once"
        )
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)
        return task

    async def _flush_session(self, key: SessionKey) -> bool:
        """Index a session; returns whether the store took it.  Raises nothing: all callers may have
        been cancelled."""
        async with self._locks.of(key):
            del self._next[key]
            # Work that was in progress may not have included the newest messages.
            if self._late.has(key):
                self._waiting.pop(key, None)
                try:
                    await self._index(key)
                except StoreError:
                    return False
            return True

    def on_missing_index(self, owner: Owner) -> None:
        """The owner has no index: it was dropped, or never made."""
        self._add(owner)

    def on_stale_index(self, owner: Owner) -> None:
        """The owner's index has another format: rebuild it."""
        self._stale.add(owner)
        self._add(owner)

    def _add(self, work: Work) -> None:
        before = self._waiting.get(work)
        if before is None:
            self._late.add(work)
        self._waiting[work] = QueuedRounds(before.first if before else self._round, self._round)
        if len(self._waiting) > MAX_QUEUED:
            self._late.done(self._waiting.popitem(last=False)[0])
        self._awake.set()

    async def _run(self) -> None:
        while True:
            await self._awake.wait()
            self._round += 1
            await asyncio.sleep(self._delay)
            self._due.extend(filter(self._is_due, self._waiting))
            if len(self._due) == len(self._waiting):
                self._awake.clear()
            workers = min(CONCURRENCY, len(self._due))
            outcomes = await asyncio.gather(
                *(self._work() for _ in range(workers)), return_exceptions=True
            )
            failed = [outcome for outcome in outcomes if outcome is not None]
            if failed:
                logger.warning("indexing goes on later: %s", failed[0])
                await asyncio.sleep(RETRY)
                self._awake.set()

    def _is_due(self, work: Work) -> bool:
        """Whether it was not queued again since the last round, or has waited for long."""
        since = self._waiting[work]
        return since.last < self._round or since.first <= self._round - MAX_DELAYS

    async def _drain(self) -> None:
        """Do all queued work.  Raises StoreError; failed work stays queued."""
        while self._waiting:
            self._due.extend(self._waiting)
            await self._work()

    async def _work(self) -> None:
        """Do the work that is due.  Raises StoreError; failed work stays queued."""
        while self._due:
            work = self._due.popleft()
            async with self._locks.of(work):
                if self._waiting.pop(work, None) is not None and not self._is_covered(work):
                    await self._index(work)

    def _is_covered(self, work: Work) -> bool:
        """Whether other queued work includes this: a session without user is all of its owner."""
        if not isinstance(work, Owner) or not work.session or work in self._stale:
            return False
        return SessionKey(work.tenant, work.session) in self._waiting

    async def _index(self, work: Work) -> None:
        """Do one piece of work.  Raises StoreError; failed work stays queued."""
        try:
            self._on_indexed(await self._do(work))
        except (StoreError, asyncio.CancelledError):
            self._add(work)
            raise
        except Exception:  # a background task has no caller: the work is dropped
            logger.exception("a session could not be indexed")
        finally:
            self._late.done(work)

    async def _do(self, work: Work) -> int:
        if isinstance(work, EditedMessage):
            return await self._indexer.index_edited(*work)
        if isinstance(work, SessionKey):
            return await self._indexer.index_session(work)
        if work not in self._stale:
            return await self._indexer.catch_up(work)
        count = await self._indexer.rebuild(work)
        self._stale.discard(work)
        return count
