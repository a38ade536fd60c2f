"""One session, looked at."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.access import Access
from proxy.admin.objects import reply, session_object
from proxy.admin.parts import AdminParts
from proxy.errors import memory_unavailable, session_not_found
from proxy.memory.archive import Archive, Session
from proxy.memory.model import SessionKey
from proxy.memory.spool import Spool


class Sessions:
    """GET of ``/sessions/{id}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access

    async def get(self, request: Request) -> Response:
        return reply(session_object(await the_session(self._store, self._access.key(request))))


async def the_session(store: Archive, key: SessionKey) -> Session:
    """The session.  Raises ProxyError 404 where there is none, StoreError."""
    session = await store.session(key)
    if session is None:
        raise session_not_found()
    return session


def must_not_wait(spool: Spool, key: SessionKey) -> None:
    """Raise ProxyError 503 while exchanges of the session wait in the spool: nothing overtakes."""
    if spool.waiting(key):
        raise memory_unavailable()
