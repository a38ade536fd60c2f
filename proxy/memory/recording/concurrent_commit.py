"""Commits an exchange to a session that others may have changed since it was planned."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from msgspec.structs import replace

from proxy.memory.history.reading import NEWEST_TURN, exchanges_oldest_first, lines_without_texts
from proxy.memory.limit import TimeLimit
from proxy.memory.locks import Locks
from proxy.memory.model import Commit, Outcome, SessionKey, SessionVersion, Snapshot
from proxy.memory.reconciliation.rebase import (
    is_outlived,
    rebase_commit,
    replacing_broken_off,
    with_window_moved_back,
)
from proxy.memory.store import Store, StoreTimeout

TRIES = 8
"""The most attempts to adapt a commit to others' changes; then it is recorded unadapted."""

TIMEOUT = 5.0
"""Seconds for reading others' changes and for waiting for the lock: the end of an answer waits."""


class CommitSettler:
    """Commits, adapting one commit of a session at a time, which may read the whole session.
    ``locks`` are shared by all settlers, also those over other connections to the store."""

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
                return await self._store.commit(key, replace(commit, planned_for=None))
            for _ in range(TRIES):
                adapted = await self._settled_in_time(key, commit, until)
                if adapted is None:
                    return "outrun"
                outcome = await self._store.commit(key, adapted)
                if outcome != "outdated":
                    return outcome
            return await self._store.commit(key, replace(commit, planned_for=None))

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
            return replace(commit, planned_for=None)

    async def _settled_commit(self, key: SessionKey, commit: Commit) -> Commit | None:
        """The commit adapted to the present session; None if a later attempt is recorded
        instead."""
        found = await self._store.load(key, NEWEST_TURN)
        if is_outlived(commit, found):
            return None
        if found.last and found.last.created_at > commit.exchange.created_at + TIMEOUT:
            # It has waited in the spool, and others have gone on.
            return replace(commit, planned_for=None)
        if await self._only_appends(key, commit):
            adapted = replacing_broken_off(commit, found)
        else:
            adapted = await self._read(key, commit, found)
        return replace(adapted, planned_for=SessionVersion.of(found))

    async def _only_appends(self, key: SessionKey, commit: Commit) -> bool:
        """Whether it supersedes nothing and continues a message that is still in the log, so that
        others' changes do not affect it."""
        if commit.branches_off:
            return False
        follows = commit.exchange.follows
        line = await self._store.message(key, follows) if follows else None
        return line is None or line.state == "active"

    async def _read(self, key: SessionKey, commit: Commit, found: Snapshot) -> Commit:
        """Read the whole session; returns the adapted commit."""
        session = await self._store.session(key)
        if session is None:
            return commit
        lines = await lines_without_texts(self._store, key, session.end)
        exchanges = await exchanges_oldest_first(self._store, key, session.end)
        adapted = await asyncio.to_thread(rebase_commit, commit, found, lines, exchanges)
        start = session.windows.get(commit.exchange.profile)
        return with_window_moved_back(adapted, commit.activated, lines, start)
