"""Changing a session's messages by hand, and what has to follow."""

from __future__ import annotations

import time

from proxy.admin.parts import AdminParts
from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey
from proxy.memory.reading import NEWEST_TURN
from proxy.memory.summary import Summary
from proxy.memory.work import Due
from proxy.recall.history import owner_of
from proxy.recall.packing import check_of
from proxy.recall.removal import Said, blank_messages


class Revising:
    """Writes revisions.  A summary that one has dropped is asked for anew; recall learns of it."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts, self._store = parts, parts.store

    async def revise(self, key: SessionKey, revision: Revision, seqs: tuple[int, ...] = ()) -> bool:
        """Make a change, or none: False.

        ``seqs`` are the places of what says something else then, or nothing.  Raises StoreError.
        """
        before = await self._in_force(key)
        # Before and behind it: whoever embeds it meanwhile looks behind himself too.
        await self._blank(key, revision, seqs)
        if not await self._store.revise(key, revision):
            return False
        if seqs:
            await self._blank(key, revision, seqs)
            self._parts.on_edited(key, seqs)
        if before is not None and await self._in_force(key) != before:
            await self._summarise(key)
        return True

    async def _blank(self, key: SessionKey, revision: Revision, seqs: tuple[int, ...]) -> None:
        """Let no vector tell what was said; its session may have been nobody's then."""
        session = await self._store.session(key) if seqs else None
        cards = [x.card for x in revision.edited if x.card.id not in revision.removed]
        said = Said(seqs, [check_of(card.id, card.digest) for card in cards])
        for user in {None, session.user} if session else ():
            await blank_messages(self._store, owner_of(key, user), key.session, said)

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
