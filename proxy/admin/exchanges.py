"""Exchanges over the memory API: listed, and what memory did for one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.objects import exchange_object, listed, reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import the_session
from proxy.errors import ProxyError


class Exchanges:
    """``/sessions/{id}/exchanges`` and ``/sessions/{id}/exchanges/{exchange}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access

    async def listing(self, request: Request) -> Response:
        """Those that have messages, the newest first: none twice, and new ones before the first."""
        key = self._access.key(request)
        limit, after = asking.limit(request), asking.after_seq(request)
        page = await self._store.exchanges(key, after or None, limit)
        if not page.items:
            await the_session(self._store, key)
        data = [exchange_object(key.session, each.exchange, each.messages) for each in page.items]
        return reply(listed(data, page.after))

    async def get(self, request: Request) -> Response:
        """What memory did for one exchange."""
        key = self._access.key(request)
        exchange = await self._store.exchange(key, asking.exchange_id(request))
        if exchange is None:
            await the_session(self._store, key)
            raise exchange_not_found()
        return reply(exchange_object(key.session, *exchange))


def exchange_not_found() -> ProxyError:
    return ProxyError(404, "exchange_not_found", "There is no such exchange in this session.")
