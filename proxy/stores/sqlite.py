"""SQLiteStore: all memory in one file, for any number of processes on one host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from sqlite3 import Connection

from proxy.memory.archive import Archived, Line, Message, Page, Placed, Revision, Session
from proxy.memory.model import (
    Amendment,
    Ask,
    Commit,
    Exchange,
    Outcome,
    SessionKey,
    Snapshot,
    State,
)
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory.summary import Summary
from proxy.memory.work import Due, Work
from proxy.stores import (
    sqlite_erase,
    sqlite_list,
    sqlite_read,
    sqlite_restore,
    sqlite_revise,
    sqlite_summaries,
    sqlite_work,
    sqlite_write,
)
from proxy.stores.restoring import restored
from proxy.stores.sqlite_items import SQLiteItems
from proxy.stores.sqlite_marks import SQLiteErasures
from proxy.stores.sqlite_recall import SQLiteIndex
from proxy.stores.sqlite_usage import SQLiteMeter

PATIENCE = 3
"""Times that a step of a restore is tried again."""


class SQLiteStore(SQLiteIndex, SQLiteItems, SQLiteMeter, SQLiteErasures):
    """See :class:`proxy.memory.store.Store`."""

    # Memory

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        now = self._clock()
        return await self._read(lambda connection: sqlite_read.load(connection, key, ask, now))

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        now = self._clock()
        return await self._read(lambda connection: sqlite_read.bodies(connection, key, ids, now))

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        now = self._clock()
        return await self._read(lambda c: sqlite_read.passages(c, tenant, user, places, now))

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        now = self._clock()
        return await self._write(lambda c: sqlite_write.commit(c, key, commit, now))

    async def amend(self, key: SessionKey, amendment: Amendment) -> None:
        now = self._clock()
        await self._write(lambda c: sqlite_write.amend(c, key, amendment, now))

    # Summaries

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        now = self._clock()
        return await self._read(lambda c: sqlite_summaries.versions(c, key, now))

    async def put_summary(
        self,
        key: SessionKey,
        summary: Summary,
        after: int,
        changes: int | None,
        since: float | None = None,
    ) -> bool:
        now = self._clock()
        return await self._write(
            lambda c: sqlite_summaries.put(c, key, summary, after, changes, since, now)
        )

    async def drop_summaries(self, key: SessionKey) -> bool:
        now = self._clock()
        return await self._erase(lambda c: sqlite_summaries.drop(c, key, now))

    async def stall(self, key: SessionKey) -> None:
        now = self._clock()
        await self._write(lambda c: sqlite_summaries.stall(c, key, now))

    # Queue

    async def enqueue(self, key: SessionKey, due: Due) -> None:
        await self._write(lambda c: sqlite_work.enqueue(c, key, due))

    async def waiting(self, now: float, limit: int) -> Sequence[Work]:
        return await self._list(lambda c: sqlite_work.waiting(c, now, limit))

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        return await self._write(lambda c: sqlite_work.claim(c, work, now, until))

    async def extend(self, work: Work, until: float) -> bool:
        return await self._write(lambda c: sqlite_work.extend(c, work, until))

    async def finish(self, work: Work, again: float) -> None:
        await self._write(lambda c: sqlite_work.finish(c, work, again))

    async def put_off(self, work: Work, due: float, *, failed: bool) -> None:
        await self._write(lambda c: sqlite_work.put_off(c, work, due, failed=failed))

    # Archive

    async def session(self, key: SessionKey) -> Session | None:
        now = self._clock()
        return await self._list(lambda connection: sqlite_list.session(connection, key, now))

    async def tenants(self) -> Sequence[str]:
        now = self._clock()
        return await self._list(lambda connection: sqlite_list.tenants(connection, now))

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        now = self._clock()
        return await self._list(
            lambda connection: sqlite_list.sessions(connection, tenant, user, after, limit, now)
        )

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        now = self._clock()
        return await self._list(
            lambda connection: sqlite_list.messages(connection, key, states, after, limit, now)
        )

    async def message(self, key: SessionKey, message: str) -> Line | None:
        now = self._clock()
        return await self._list(lambda c: sqlite_list.message(c, key, message, now))

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[Line]:
        now = self._clock()
        return await self._list(lambda c: sqlite_list.lines(c, key, after, limit, now))

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        now = self._clock()
        return await self._list(lambda c: sqlite_list.exchange(c, key, exchange, now))

    async def exchanges(self, key: SessionKey, before: int | None, limit: int) -> Page[Placed]:
        now = self._clock()
        return await self._list(lambda c: sqlite_list.exchanges(c, key, before, limit, now))

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        now = self._clock()
        # What is edited and what was said of the session is not kept, like what is removed.
        erases = revision.edited or revision.removed or revision.details
        run = self._erase if erases else self._write
        return await run(lambda c: sqlite_revise.revise(c, key, revision, now))

    async def restore(self, key: SessionKey, archived: Archived) -> bool:
        now, steps = self._clock(), sqlite_restore.steps(archived)
        if steps <= 1:
            return await self._write(lambda c: sqlite_restore.restore(c, key, archived, now))
        name = await self._write(lambda c: sqlite_restore.stage(c, key, archived, now))
        if name is None:
            return False
        brought = (name, archived, await asyncio.to_thread(restored, archived))
        try:
            for step in range(steps):
                await self._patiently(partial(sqlite_restore.bring, brought, step))
            return await self._write(partial(sqlite_restore.settle, brought, key, now))
        except BaseException:  # also where nobody waits any more: what is left goes with time
            with suppress(StoreError):
                await self._write(lambda c: sqlite_restore.discard(c, name))
            raise

    async def _patiently(self, work: Callable[[Connection], None]) -> None:
        """Write what may be written twice; one that is late is tried again."""
        for _ in range(PATIENCE):
            with suppress(StoreTimeout):
                return await self._write(work)
        await self._write(work)

    async def delete(self, key: SessionKey) -> bool:
        now = self._clock()
        return await self._erase(lambda c: sqlite_erase.delete(c, key, now))

    async def move(self, old: str, new: str) -> int:
        now = self._clock()
        return await self._erase(lambda c: sqlite_erase.move(c, old, new, now))
