"""Changing a session's messages by hand, and what has to follow."""

from __future__ import annotations

import time

from proxy.admin.parts import AdminParts
from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey
from proxy.memory.reading import NEWEST_TURN
from proxy.memory.summary import Summary
from proxy.memory.work import Due


class Revising:
    """Writes revisions.  A summary that one has dropped is asked for anew; recall learns of it."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts, self._store = parts, parts.store

    async def revise(self, key: SessionKey, revision: Revision, seqs: tuple[int, ...] = ()) -> bool:
        """Make a change, or none: False.  ``seqs`` are the places of what is ``edited``.

        Raises StoreError.
        """
        before = await self._in_force(key)
        if not await self._store.revise(key, revision):
            return False
        if seqs:
            self._parts.on_edited(key, seqs)
        if before is not None and await self._in_force(key) != before:
            await self._summarise(key)
        return True

    async def _in_force(self, key: SessionKey) -> Summary | None:
        session = await self._store.session(key)
        return session.summary if session else None

    async def _summarise(self, key: SessionKey) -> None:
        """Ask for the summary under the profile of the newest exchange, if it has any."""
        snapshot = await self._store.load(key, NEWEST_TURN)
        name = snapshot.last.profile if snapshot.last else ""
        profile = self._parts.settings.profile(name or None)
        if profile is not None and profile.summary.enabled:
            await self._store.enqueue(key, Due(kind="summary", profile=name, at=time.time()))
