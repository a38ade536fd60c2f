"""Memory as the lines of an export, read bit by bit while everything else goes on.

Promised is: what was there when the export began and is not deleted meanwhile is in it, each
session as it was at one moment.  What comes in meanwhile may be in it or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from proxy.admin.parts import AdminParts
from proxy.memory.archive import Archived
from proxy.memory.items import Shelf, all_items
from proxy.memory.model import SessionKey
from proxy.memory.reading import read_session
from proxy.memory.store import StoreError
from proxy.portable import format, writer
from proxy.recall.history import sessions_of
from proxy.recall.index import Owner

MARGIN = 300.0
"""Seconds by which clocks of other hosts may lag."""

PAGE = 100
"""Items that are read at once."""

ATTEMPTS = 3
"""Tries to read a session, so that one slow answer does not cut off a long export."""

PASSES = 5
"""Looks through the newest sessions for those that moved past the place where we read."""


class Exporter:
    """One export; raises StoreError.

    ``user``: this person's alone.  It remembers the ids of the sessions that it has written, and of
    all else holds one session, or one page of items, at a time.
    """

    def __init__(self, parts: AdminParts, tenant: str, user: str | None = None) -> None:
        self._store, self._shelves = parts.store, parts.shelves
        self._remembrance = parts.remembrance
        self._tenant, self._user = tenant, user
        self._written: set[str] = set()
        self._people: set[str] = set() if user is None else {user}
        self._counts = [0, 0, 0]
        """Sessions, shelves, items."""

    async def everything(self, now: float) -> AsyncIterator[bytes]:
        """The lines of an export of a tenant, or of one person, at ``now`` (Unix seconds)."""
        yield writer.header("tenant" if self._user is None else "user", now)
        for number in range(PASSES):
            before = len(self._written)
            async for line in self._sessions(0.0 if number == 0 else now - MARGIN):
                yield line
            if len(self._written) == before:
                break
        if self._user is None:
            self._people |= set(await self._shelves.people(self._tenant))
        for user in sorted(self._people):
            async for line in self._shelf(user):
                yield line
        if self._user is None:
            async for line in self._shelf(""):
                yield line
        yield self._end()

    async def session(self, session: str, now: float) -> AsyncIterator[bytes]:
        """The lines of an export of one session."""
        yield writer.header("session", now)
        async for line in self._session(session):
            yield line
        yield self._end()

    def _end(self) -> bytes:
        sessions, shelves, items = self._counts
        return writer.encoded(format.End(sessions=sessions, shelves=shelves, items=items))

    async def _sessions(self, since: float) -> AsyncIterator[bytes]:
        """Those last active ``since`` then that are not written yet."""
        async for session in sessions_of(self._store, self._tenant, self._user):
            if session.last_active_at < since:
                return
            if session.id not in self._written:
                self._written.add(session.id)
                async for line in self._session(session.id):
                    yield line

    async def _session(self, id: str) -> AsyncIterator[bytes]:
        """Nothing for one that is gone, or another person's by now."""
        found = await self._patiently(SessionKey(self._tenant, id))
        if found is None or self._user not in (None, found.session.user):
            return
        user = found.session.user
        dismissed: tuple[str, ...] = ()
        if user:
            self._people.add(user)
        else:
            dismissed = await self._remembrance.dismissed(Owner(self._tenant, session=id))
        self._counts[0] += 1
        for line in writer.session_lines(found, dismissed):
            yield line

    async def _patiently(self, key: SessionKey) -> Archived | None:
        for _ in range(ATTEMPTS - 1):
            with suppress(StoreError):
                return await read_session(self._store, key)
        return await read_session(self._store, key)

    async def _shelf(self, user: str) -> AsyncIterator[bytes]:
        """Nothing for one with nothing on it."""
        dismissed = await self._remembrance.dismissed(Owner(self._tenant, user)) if user else ()
        begun = bool(dismissed)
        if begun:
            yield writer.shelf(user, dismissed)
        count = 0
        async for item in all_items(self._shelves, Shelf(self._tenant, user), (), PAGE):
            if not begun:
                yield writer.shelf(user, dismissed)
                begun = True
            yield writer.item_line(item)
            count += 1
        if begun:
            yield writer.encoded(format.ShelfEnd(items=count))
            self._counts[1] += 1
            self._counts[2] += count
