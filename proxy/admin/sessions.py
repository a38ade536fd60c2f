"""One session, looked at."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.access import Access
from proxy.admin.objects import reply, session_object
from proxy.admin.parts import AdminParts
from proxy.errors import memory_unavailable, session_not_found
from proxy.memory.model import SessionKey
from proxy.memory.spool import Spool


class Sessions:
    """GET of ``/sessions/{id}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access

    async def get(self, request: Request) -> Response:
        session = await self._store.session(self._access.key(request))
        if session is None:
            raise session_not_found()
        return reply(session_object(session))


def must_not_wait(spool: Spool, key: SessionKey) -> None:
    """Raise ProxyError 503 while exchanges of the session wait in the spool: nothing overtakes."""
    if spool.waiting(key):
        raise memory_unavailable()
