"""The indexer's place in a running proxy: what has just been recorded is indexed a moment later.

The turns of a session gather until it is quiet: to index ten of them costs little more than one.
Who asks meanwhile, where they could be found, has them indexed first: see ``settled``.  A session
that is its only owner and shows what it said last rests: there even more gather, see ``rests``.
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
"""Seconds for which a session is quiet before its new messages are indexed."""

MOST_DELAYS = 4
"""After so many of them they are indexed though it is not."""

TOGETHER = 8
"""Exchanges of a session that rests which are indexed at once."""

RETRY = 2.0
"""Seconds to wait after a failure of the store."""

KNOWN = 10_000
"""Owners that a process remembers to have caught up with."""

WAITING = 50_000
"""Pieces of work that wait at most; what is left out is found when its owner is next heard of."""

AGAIN = 600.0
"""Seconds after which an owner is caught up with again, for what other hosts have missed."""

SIDE_BY_SIDE = 4
"""Sessions that are indexed at the same time: most of it is waiting for the store."""


class Rewritten(NamedTuple):
    """A message, by its place, that says something else now."""

    key: SessionKey
    seq: int


Work = SessionKey | Owner | Rewritten


class Since(NamedTuple):
    """The rounds in which a piece of work came first, and last."""

    first: int
    last: int


class LateSessions:
    """Which sessions of whom have messages that are not indexed yet, as far as is known."""

    def __init__(self) -> None:
        self._owners: OrderedDict[SessionKey, Owner] = OrderedDict()
        self._late: dict[Owner, Counter[SessionKey]] = {}

    def belongs(self, key: SessionKey, owner: Owner) -> None:
        """Whose a session is: only who asks can tell."""
        if self._owners.get(key) != owner:
            self._drop(key)
        self._owners[key] = owner
        self._owners.move_to_end(key)
        if len(self._owners) > KNOWN:
            self._drop(next(iter(self._owners)))

    def of(self, owner: Owner) -> tuple[SessionKey, ...]:
        return tuple(self._late.get(owner, ()))

    def has(self, key: SessionKey) -> bool:
        owner = self._owners.get(key)
        return owner is not None and key in self._late.get(owner, ())

    def add(self, work: Work) -> None:
        if isinstance(work, SessionKey) and (owner := self._owners.get(work)):
            self._late.setdefault(owner, Counter())[work] += 1

    def done(self, work: Work) -> None:
        """One of what was added is indexed."""
        owner = self._owners.get(work) if isinstance(work, SessionKey) else None
        late = self._late.get(owner) if owner else None
        if late and isinstance(work, SessionKey) and late[work] > 1:
            late[work] -= 1
        elif isinstance(work, SessionKey):
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
    """Does the work one after the other; the same work waits once.

    What fails is tried again; what is not done when the process ends is found when its owner is
    next heard of.
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
        self._waiting: OrderedDict[Work, Since] = OrderedDict()
        self._due: deque[Work] = deque()
        self._late = LateSessions()
        self._resting: OrderedDict[SessionKey, int] = OrderedDict()
        """Sessions that rest, and how many of their exchanges are not indexed."""
        self._round = 0
        self._known: LRUCache[Owner, float] = LRUCache(KNOWN)
        self._stale: set[Owner] = set()
        self._turns: Locks[Work] = Locks()
        """Of two who do the same at once only one could write it: the other does it again."""
        self._next: dict[SessionKey, asyncio.Task[bool]] = {}
        """Work at once that has not begun yet."""
        self._settling: set[asyncio.Task[bool]] = set()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<IndexUpdater [waiting: {len(self._waiting)}]>"

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="indexing")

    async def close(self, timeout: float) -> None:
        """Finish what waits, within ``timeout`` seconds."""
        if self._task is None:
            return
        under_way = (self._task, *self._settling)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._next.clear()
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(timeout):
                await self._drain()

    def recorded(self, key: SessionKey) -> None:
        """An exchange of this session is in history."""
        late = self._resting.get(key)
        if late is None:
            self._add(key)
            return
        if not late:
            self._late.add(key)
        self._resting[key] = late + 1
        if late + 1 == TOGETHER:
            self._wake(key)

    def edited(self, key: SessionKey, seqs: Sequence[int]) -> None:
        """Messages of this session say something else now."""
        for seq in seqs:
            self._add(Rewritten(key, seq))

    def heard_of(self, owner: Owner) -> None:
        """Somebody asks on this owner's behalf: is their index level with history?"""
        now = self._clock()
        if now - self._known.get(owner, -AGAIN) < AGAIN:
            return
        self._known[owner] = now
        self._add(owner)

    def asked(self, key: SessionKey, owner: Owner) -> None:
        """Somebody asks in this session, which is this owner's."""
        self.heard_of(owner)
        self._late.belongs(key, owner)
        self._wake(key)

    def _wake(self, key: SessionKey) -> None:
        if self._resting.pop(key, 0):
            self._late.done(key)
            self._add(key)

    def rests(self, key: SessionKey, owner: Owner) -> None:
        """This session is its only owner and shows what could be found in what it said last: what
        is recorded of it is indexed when much has gathered, or when somebody asks.  Most sessions
        of nobody end before that.
        """
        self._late.belongs(key, owner)
        self._resting.setdefault(key, 0)
        self._resting.move_to_end(key)
        if len(self._resting) > KNOWN:
            forgotten, late = self._resting.popitem(last=False)
            if late:
                self._late.done(forgotten)

    def late(self, key: SessionKey) -> bool:
        """Whether a session has messages that are not indexed yet."""
        return self._late.has(key)

    async def settled(self, owner: Owner, but: SessionKey | None = None) -> None:
        """Index at once what waits of an owner's sessions, ``but`` of the one that sees all it has.

        It is done once for all who ask together, and goes on where they have no time left.  Where
        the store takes nothing, as one that is full, it waits on: what is indexed can be found.
        """
        for key in self._late.of(owner):
            if key != but and not await asyncio.shield(self._next.get(key) or self._begin(key)):
                return

    def _begin(self, key: SessionKey) -> asyncio.Task[bool]:
        task = self._next[key] = asyncio.create_task(self._settle(key), name="indexing at once")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def _settle(self, key: SessionKey) -> bool:
        """Whether the store took it.  It raises nothing: there may be nobody left who waits."""
        async with self._turns.of(key):
            del self._next[key]
            # Who had begun with it may have been in the middle of it.
            if self._late.has(key):
                self._waiting.pop(key, None)
                try:
                    await self._index(key)
                except StoreError:
                    return False
            return True

    def missing(self, owner: Owner) -> None:
        """There is no index at all, whatever was known: somebody has dropped it, or never made."""
        self._add(owner)

    def stale(self, owner: Owner) -> None:
        """An index is of another format: make it anew."""
        self._stale.add(owner)
        self._add(owner)

    def _add(self, work: Work) -> None:
        before = self._waiting.get(work)
        if before is None:
            self._late.add(work)
        self._waiting[work] = Since(before.first if before else self._round, self._round)
        if len(self._waiting) > WAITING:
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
            hands = min(SIDE_BY_SIDE, len(self._due))
            outcomes = await asyncio.gather(
                *(self._work() for _ in range(hands)), return_exceptions=True
            )
            failed = [outcome for outcome in outcomes if outcome is not None]
            if failed:
                logger.warning("indexing goes on later: %s", failed[0])
                await asyncio.sleep(RETRY)
                self._awake.set()

    def _is_due(self, work: Work) -> bool:
        """Whether it has come to rest since the last round, or has waited for long."""
        since = self._waiting[work]
        return since.last < self._round or since.first <= self._round - MOST_DELAYS

    async def _drain(self) -> None:
        """Do all that waits.  Raises StoreError, with nothing forgotten."""
        while self._waiting:
            self._due.extend(self._waiting)
            await self._work()

    async def _work(self) -> None:
        """Do what is due.  Raises StoreError, with nothing forgotten."""
        while self._due:
            work = self._due.popleft()
            async with self._turns.of(work):
                if self._waiting.pop(work, None) is not None and not self._comes_yet(work):
                    await self._index(work)

    def _comes_yet(self, work: Work) -> bool:
        """Does other work that waits do the same?  A session that is nobody's is all there is of
        its owner."""
        if not isinstance(work, Owner) or not work.session or work in self._stale:
            return False
        return SessionKey(work.tenant, work.session) in self._waiting

    async def _index(self, work: Work) -> None:
        """Raises StoreError, with nothing forgotten."""
        try:
            self._on_indexed(await self._do(work))
        except (StoreError, asyncio.CancelledError):
            self._add(work)
            raise
        except Exception:  # a background task has no caller: what cannot be indexed is left out
            logger.exception("a session could not be indexed")
        finally:
            self._late.done(work)

    async def _do(self, work: Work) -> int:
        if isinstance(work, Rewritten):
            return await self._indexer.again(*work)
        if isinstance(work, SessionKey):
            return await self._indexer.level(work)
        if work not in self._stale:
            return await self._indexer.catch_up(work)
        count = await self._indexer.rebuild(work)
        self._stale.discard(work)
        return count
