"""What recall needs of the history: the truth about every passage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from proxy.memory.model import Message, Page, Session, SessionKey, State
from proxy.recall.index import Owner


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


def owner_of(key: SessionKey, user: str | None) -> Owner:
    """Whose passages a session's messages are: its owner's, else its own."""
    return Owner(key.tenant, user=user) if user else Owner(key.tenant, session=key.session)
