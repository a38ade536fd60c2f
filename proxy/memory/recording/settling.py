"""Recording an exchange in a session that others have changed since it was planned."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from proxy.memory.history.reading import NEWEST_TURN, oldest_first, without_texts
from proxy.memory.locks import Locks
from proxy.memory.model import Commit, Outcome, SessionKey, SessionSeen
from proxy.memory.reconciliation.settling import settled, shown
from proxy.memory.store import Store

TRIES = 8
"""How often it is looked at again what others have changed.  Then it is recorded as it is."""


class Settling:
    """Commits, of which one of a session is settled at a time: to do so reads all of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._one: Locks[SessionKey] = Locks()

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        """See the store's; never ``outdated``.  Raises StoreError."""
        outcome = await self._store.commit(key, commit)
        return outcome if outcome != "outdated" else await self._settled(key, commit)

    async def _settled(self, key: SessionKey, commit: Commit) -> Outcome:
        async with self._one.of(key):
            for _ in range(TRIES):
                outcome = await self._store.commit(key, await self._as_meant(key, commit))
                if outcome != "outdated":
                    return outcome
            return await self._store.commit(key, replace(commit, seen=None))

    async def _as_meant(self, key: SessionKey, commit: Commit) -> Commit:
        found, session = await self._store.load(key, NEWEST_TURN), await self._store.session(key)
        if session is None:
            return replace(commit, seen=None)
        lines = await without_texts(self._store, key, session.end)
        exchanges = await oldest_first(self._store, key, session.end)
        meant = await asyncio.to_thread(settled, commit, lines, exchanges)
        start = session.windows.get(commit.exchange.profile)
        return replace(shown(meant, commit.activated, lines, start), seen=SessionSeen.of(found))
