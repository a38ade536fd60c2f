"""Recording an exchange in a session that others have changed since it was planned."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from msgspec.structs import replace

from proxy.memory.history.reading import NEWEST_TURN, lines_without_texts, oldest_first
from proxy.memory.limit import TimeLimit
from proxy.memory.locks import Locks
from proxy.memory.model import Commit, Outcome, SessionKey, SessionVersion, Snapshot
from proxy.memory.reconciliation.settling import (
    is_outlived,
    replacing_broken_off,
    settle_commit,
    with_window_moved_back,
)
from proxy.memory.store import Store, StoreTimeout

TRIES = 8
"""How often it is looked at again what others have changed.  Then it is recorded as it is."""

TIMEOUT = 5.0
"""Seconds for looking, and for waiting until others have: the end of an answer waits for it."""


class CommitSettler:
    """Commits, of which one of a session is settled at a time: to do so may read all of it.
    ``locks`` are shared by all that settle, also over other connections to the store."""

    def __init__(self, store: Store, locks: Locks[SessionKey]) -> None:
        self._store, self._locks = store, locks

    async def commit(self, key: SessionKey, commit: Commit, timeout: float = TIMEOUT) -> Outcome:
        """See the store's; never ``outdated``.  Raises StoreError."""
        outcome = await self._store.commit(key, commit)
        return outcome if outcome != "outdated" else await self._settled(key, commit, timeout)

    async def _settled(self, key: SessionKey, commit: Commit, timeout: float) -> Outcome:
        until = asyncio.get_running_loop().time() + timeout
        async with AsyncExitStack() as turn:
            try:
                async with TimeLimit(timeout):
                    await turn.enter_async_context(self._locks.of(key))
            except TimeoutError:  # whoever has the turn waits for the store
                return await self._store.commit(key, replace(commit, seen=None))
            for _ in range(TRIES):
                meant = await self._settled_in_time(key, commit, until)
                if meant is None:
                    return "outrun"
                outcome = await self._store.commit(key, meant)
                if outcome != "outdated":
                    return outcome
            return await self._store.commit(key, replace(commit, seen=None))

    async def _settled_in_time(
        self, key: SessionKey, commit: Commit, until: float
    ) -> Commit | None:
        """As ``_settled_commit``; the commit unchanged if time runs out: one long session does not
        mean that the store is away."""
        left = until - asyncio.get_running_loop().time()
        try:
            async with TimeLimit(max(0.0, left)):
                return await self._settled_commit(key, commit)
        except (TimeoutError, StoreTimeout):
            return replace(commit, seen=None)

    async def _settled_commit(self, key: SessionKey, commit: Commit) -> Commit | None:
        """The commit as it is to be made in the session as it is now; None where a later attempt is
        recorded in its place."""
        found = await self._store.load(key, NEWEST_TURN)
        if is_outlived(commit, found):
            return None
        if found.last and found.last.created_at > commit.exchange.created_at + TIMEOUT:
            return replace(commit, seen=None)  # it has waited in the spool, and others have gone on
        if await self._only_appends(key, commit):
            meant = replacing_broken_off(commit, found)
        else:
            meant = await self._read(key, commit, found)
        return replace(meant, seen=SessionVersion.of(found))

    async def _only_appends(self, key: SessionKey, commit: Commit) -> bool:
        """Does it take nothing back, and go on from a message that is still in the log?  Then it
        means the same whatever others have changed."""
        if commit.branches_off:
            return False
        follows = commit.exchange.follows
        line = await self._store.message(key, follows) if follows else None
        return line is None or line.state == "active"

    async def _read(self, key: SessionKey, commit: Commit, found: Snapshot) -> Commit:
        """The commit as it is to be made, after a look at all of the session."""
        session = await self._store.session(key)
        if session is None:
            return commit
        lines = await lines_without_texts(self._store, key, session.end)
        exchanges = await oldest_first(self._store, key, session.end)
        meant = await asyncio.to_thread(settle_commit, commit, found, lines, exchanges)
        start = session.windows.get(commit.exchange.profile)
        return with_window_moved_back(meant, commit.activated, lines, start)
