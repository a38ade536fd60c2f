"""Exchanges over the memory API: listed, and what memory did for one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.objects import exchange_object, listed, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError, session_not_found


class Exchanges:
    """``/sessions/{id}/exchanges`` and ``/sessions/{id}/exchanges/{exchange}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access

    async def listing(self, request: Request) -> Response:
        """Those that have messages, the newest first: none twice, and new ones before the first."""
        key = self._access.key(request)
        limit, after = asking.limit(request), asking.after_seq(request)
        page = await self._store.exchanges(key, after or None, limit)
        if not page.items and await self._store.session(key) is None:
            raise session_not_found()
        data = [exchange_object(key.session, each.exchange, each.messages) for each in page.items]
        return reply(listed(data, page.after))

    async def get(self, request: Request) -> Response:
        """What memory did for one exchange."""
        key = self._access.key(request)
        found = await self._store.exchange(key, asking.exchange_id(request))
        if found is None:
            missing = await self._store.session(key) is None
            raise session_not_found() if missing else exchange_not_found()
        return reply(exchange_object(key.session, *found))


def exchange_not_found() -> ProxyError:
    return ProxyError(404, "exchange_not_found", "There is no such exchange in this session.")
