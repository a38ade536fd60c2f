"""A store that fails when it is told to, over one that works."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection

from proxy.memory.archive import Page, PlacedExchange, StoredMessage
from proxy.memory.model import Amendment, Commit, LoadOptions, Outcome, SessionKey, Snapshot
from proxy.memory.store import StoreError
from tests.support.oracle.store import InMemoryStore
from tests.support.waiting import PATIENCE

READS = ("load", "bodies", "wires", "peek")
WRITES = ("commit", "amend", "ping")
Hook = Callable[[], Awaitable[None]]


class FaultyStore(InMemoryStore):
    """``broken`` says what each call raises, by name; ``refuses`` sessions that take no commit.

    ``hangs`` makes all calls wait for ever; ``asked`` counts them; ``after_load`` runs between a
    load and its answer.
    """

    def __init__(self) -> None:
        super().__init__(lambda: 1000.0)
        self.broken: dict[str, Exception] = {}
        self.refuses: set[SessionKey] = set()
        self.slow: set[SessionKey] = set()
        """Sessions that are never loaded in time, though the store answers."""
        self.away: set[str] = set()
        """Tenants whose server is away: each has one of its own."""
        self.hangs = False
        self.asked: Counter[str] = Counter()
        self.order: list[str] = []
        self.after_load: Hook | None = None
        self.gate: asyncio.Event | None = None
        """While there is one, commits wait for it."""
        self.progress = asyncio.Condition()

    def fail(self, failure: Exception, *names: str) -> None:
        self.broken = dict.fromkeys(names or (*READS, *WRITES), failure)

    def recover(self) -> None:
        self.broken, self.hangs = {}, False

    async def _called(self, name: str, key: SessionKey | None) -> None:
        self.asked[name] += 1
        if key is not None and key.tenant in self.away:
            raise StoreError("its server is away")
        if self.hangs:
            await asyncio.Event().wait()
        if name in self.broken:
            raise self.broken[name]

    async def load(self, key: SessionKey, options: LoadOptions) -> Snapshot:
        await self._called("load", key)
        if key in self.slow:
            await asyncio.Event().wait()
        snapshot = await super().load(key, options)
        if self.after_load is not None:
            hook, self.after_load = self.after_load, None
            await hook()
        return snapshot

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        await self._called("bodies", key)
        return await super().bodies(key, ids)

    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        await self._called("wires", key)
        return await super().wires(key, ids)

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        await self._called("commit", key)
        if self.gate is not None:
            await self.gate.wait()
        if key in self.refuses:
            raise StoreError("not this session")
        outcome = await super().commit(key, commit)
        if outcome == "recorded":
            self.order.append(commit.exchange.id)
            async with self.progress:
                self.progress.notify_all()
        return outcome

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        await self._called("lines", key)
        return await super().lines(key, after, limit)

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]:
        await self._called("exchanges", key)
        return await super().exchanges(key, before, limit)

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        await self._called("amend", key)
        return await super().amend(key, amendment)

    def server_of(self, key: SessionKey) -> str:
        return key.tenant

    async def ping(self, key: SessionKey | None = None) -> None:
        await self._called("ping", key)

    async def peek(self, key: SessionKey) -> None:
        await self._called("peek", key)

    async def recorded(self, count: int, seconds: float = PATIENCE) -> list[str]:
        """The ids of the exchanges in the order of recording, once there are so many."""
        async with asyncio.timeout(seconds), self.progress:
            await self.progress.wait_for(lambda: len(self.order) >= count)
        return self.order
