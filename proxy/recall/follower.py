"""The indexer's place in a running proxy: what has just been recorded is indexed a moment later."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import Owner
from proxy.recall.indexer import Indexer

logger = logging.getLogger(__name__)

DELAY = 0.05
"""Seconds after which new messages are indexed: the answer goes first, and turns gather."""

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


class Follower:
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
        self._waiting: OrderedDict[Work, None] = OrderedDict()
        self._known: OrderedDict[Owner, float] = OrderedDict()
        self._stale: set[Owner] = set()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Follower [waiting: {len(self._waiting)}]>"

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="indexing")

    async def close(self, timeout: float) -> None:
        """Finish what waits, within ``timeout`` seconds."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(timeout):
                await self._drain()

    def recorded(self, key: SessionKey) -> None:
        """An exchange of this session is in history."""
        self._add(key)

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
        self._known.move_to_end(owner)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        self._add(owner)

    def missing(self, owner: Owner) -> None:
        """There is no index at all, whatever was known: somebody has dropped it, or never made."""
        self._add(owner)

    def stale(self, owner: Owner) -> None:
        """An index is of another format: make it anew."""
        self._stale.add(owner)
        self._add(owner)

    def _add(self, work: Work) -> None:
        self._waiting[work] = None
        if len(self._waiting) > WAITING:
            self._waiting.popitem(last=False)
        self._awake.set()

    async def _run(self) -> None:
        while True:
            await self._awake.wait()
            await asyncio.sleep(self._delay)
            self._awake.clear()
            outcomes = await asyncio.gather(
                *(self._drain() for _ in range(SIDE_BY_SIDE)), return_exceptions=True
            )
            failed = [outcome for outcome in outcomes if outcome is not None]
            if failed:
                logger.warning("indexing goes on later: %s", failed[0])
                await asyncio.sleep(RETRY)
                self._awake.set()

    async def _drain(self) -> None:
        """Do what waits.  Raises StoreError, with nothing forgotten."""
        while self._waiting:
            work, _ = self._waiting.popitem(last=False)
            try:
                self._on_indexed(await self._do(work))
            except (StoreError, asyncio.CancelledError):
                self._add(work)
                raise
            except Exception:  # a background task has no caller: what cannot be indexed is left out
                logger.exception("a session could not be indexed")

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
