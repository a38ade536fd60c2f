"""Forgetting over the memory API: all that was learned from a session, with a receipt."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.objects import reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import memory_unavailable
from proxy.learning.fact_forgetting import FactForgetting
from proxy.learning.forgetting import Busy, Forgetting
from proxy.learning.lesson import FEATURES
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey


class Forget:
    """``/sessions/{id}/forget``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access
        forgetting = (FactForgetting(parts.facts), *parts.learned.forgetting())
        self._forgetting = Forgetting(parts.shelves, parts.store, FEATURES, forgetting)

    async def forget(self, request: Request) -> Response:
        """Forget what was learned there; the history stays.  ``dry_run``: only say what would be.

        Whose memory it is tells the session, or, where that is gone, ``?user=``.  What waits in
        the spool would be learned later, so nothing is forgotten before it has arrived: 503.
        """
        key = self._access.key(request)
        exchange, dry_run = await self._asked(request)
        must_not_wait(self._parts.spool, key)
        user = await self._user(request, key)
        try:
            told = await self._forgetting.forget(
                Shelf(key.tenant, user), key.session, exchange, dry_run
            )
        except Busy:
            raise memory_unavailable() from None
        return reply(
            {
                "object": "memory.forgotten",
                "session_id": key.session,
                "exchange_id": exchange,
                "dry_run": dry_run,
                "data": [
                    {"id": each.id, "kind": each.kind, "action": each.action, "text": each.text}
                    for each in told
                ],
            }
        )

    async def _asked(self, request: Request) -> tuple[str | None, bool]:
        """``exchange_id`` and ``dry_run``; a body may be left out."""
        body = await asking.body_of(request, self._parts.settings.server)
        fields = fields_of(self._parts.fields, body) if body.strip() else {}
        try:
            dry_run = msgspec.json.decode(fields.get("dry_run", b"false"), type=bool)
        except UNREADABLE:
            raise invalid("dry_run must be true or false.", "dry_run") from None
        return asking.text_field(fields, "exchange_id"), dry_run

    async def _user(self, request: Request, key: SessionKey) -> str:
        """Whose shelf; "" where nobody is named, of whom nothing is learned."""
        named = asking.user_id(request.query_params.get("user"), "user")
        if named is not None:
            return named
        return (await the_session(self._parts.store, key)).user or ""
