"""What recall needs of the history: the truth about every passage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Protocol

from proxy.memory.archive import Message, Page, Session
from proxy.memory.model import SessionKey, State
from proxy.recall.index import Owner

PAGE = 100
"""Sessions that are asked for at once."""


class History(Protocol):
    """Implemented by every store; see :mod:`proxy.memory.store`.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]: ...

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]: ...

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]: ...


async def sessions_of(history: History, tenant: str, user: str | None) -> AsyncIterator[Session]:
    """All sessions of a tenant, or of one user of it, newest activity first.  Raises StoreError."""
    after: str | None = None
    while True:
        page = await history.sessions(tenant, user, after, PAGE)
        for session in page.items:
            yield session
        if (after := page.after) is None:
            return


def owner_of(key: SessionKey, user: str | None) -> Owner:
    """Whose passages a session's messages are: its owner's, else its own."""
    return Owner(key.tenant, user=user) if user else Owner(key.tenant, session=key.session)
