"""Sessions and exchanges: listed, looked at, deleted."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.objects import deleted_object, exchange_object, listed, reply, session_object
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError, memory_unavailable, session_not_found
from proxy.learning.forgetting import Busy
from proxy.memory.archive import Page, Session
from proxy.memory.model import SessionKey
from proxy.memory.spool import Spool


class Sessions:
    """``/sessions``, ``/sessions/{id}`` and ``/sessions/{id}/exchanges/{exchange}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._spool, self._access = parts.store, parts.spool, access
        self._learned = parts.learned

    async def listing(self, request: Request) -> Response:
        """Newest activity first; ``?user=`` has only this person's."""
        tenant = self._access.tenant(request)
        user = asking.user_id(request.query_params.get("user"), "user")
        page = await self._page(tenant, user, request)
        after = asking.sealed(page.after) if page.after is not None else None
        return reply(listed([session_object(session) for session in page.items], after))

    async def get(self, request: Request) -> Response:
        session = await self._store.session(self._access.key(request))
        if session is None:
            raise session_not_found()
        return reply(session_object(session))

    async def delete(self, request: Request) -> Response:
        """Remove a session with all that it owns, and the examples and comments that repeat it.

        What waits in the spool would bring it back, so such a session is not deleted yet: 503.
        """
        key = self._access.key(request)
        must_not_wait(self._spool, key)
        session = await self._store.session(key)
        if session is not None:
            await self._forget(key, session)
        if not await self._store.delete(key):
            raise session_not_found()
        return reply(deleted_object(key.session))

    async def _forget(self, key: SessionKey, session: Session) -> None:
        """First: who tries again must find the session to know whose it was."""
        try:
            await self._learned.drop_session(key, session.user)
        except Busy:
            raise memory_unavailable() from None

    async def exchange(self, request: Request) -> Response:
        """What memory did for one exchange."""
        key = self._access.key(request)
        found = await self._store.exchange(key, asking.exchange_id(request))
        if found is None:
            missing = await self._store.session(key) is None
            raise session_not_found() if missing else exchange_not_found()
        return reply(exchange_object(*found))

    async def _page(self, tenant: str, user: str | None, request: Request) -> Page[Session]:
        limit, sealed = asking.limit(request), request.query_params.get("after")
        try:
            after = asking.opened(sealed) if sealed is not None else None
            return await self._store.sessions(tenant, user, after, limit)
        except ValueError:
            raise asking.unknown_cursor() from None


def must_not_wait(spool: Spool, key: SessionKey) -> None:
    """Raise ProxyError 503 while exchanges of the session wait in the spool: nothing overtakes."""
    if spool.waiting(key):
        raise memory_unavailable()


def exchange_not_found() -> ProxyError:
    return ProxyError(404, "exchange_not_found", "There is no such exchange in this session.")
