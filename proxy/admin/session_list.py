"""The sessions of a tenant, listed: newest activity first, searched, with a look into each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.objects import Object, listed, reply, session_object
from proxy.admin.parts import AdminParts
from proxy.memory.archive import Page, Session
from proxy.memory.model import SessionKey, State

LOOKED_AT = 1000
"""Sessions that one request looks at at most for a query."""

CHUNK = 100
"""Sessions that are asked for at once for a query."""

PREVIEW = 140
"""Characters."""

BEGINNING = 5
"""Active messages among which the first of the user's is looked for."""

ACTIVE: tuple[State, ...] = ("active",)

AT_ONCE = 16
"""Previews that are read side by side."""


class SessionList:
    """``/sessions``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access

    async def listing(self, request: Request) -> Response:
        """Newest activity first; ``?user=`` has only this person's, ``?query=`` what it is in.

        A cursor is a place in the order of last activity.  No session comes twice, and none that
        is quiet between two pages is left out; one that becomes active moves before the first page,
        and is not found behind it any more.  With a query a page may be short, or empty, and have
        more behind it: so many sessions are looked at, and no more.
        """
        tenant = self._access.tenant(request)
        user = asking.user_id(request.query_params.get("user"), "user")
        limit, after = asking.limit(request), request.query_params.get("after")
        query, preview = request.query_params.get("query", ""), _preview(request)
        try:
            start = asking.opened(after) if after is not None else None
            page = await self._page(tenant, user, start, limit, query.casefold())
        except ValueError:
            raise asking.unknown_cursor() from None
        data = [session_object(session) for session in page.items]
        if preview:
            await self._look_into(tenant, data)
        return reply(listed(data, asking.sealed(page.after) if page.after is not None else None))

    async def _page(
        self, tenant: str, user: str | None, after: str | None, limit: int, query: str
    ) -> Page[Session]:
        """As many as ``limit`` that hold the words, of as many as may be looked at."""
        if not query:
            return await self._store.sessions(tenant, user, after, limit)
        found: list[Session] = []
        left = LOOKED_AT
        while left > 0 and len(found) < limit:
            listed = await self._store.sessions(tenant, user, after, min(left, CHUNK))
            while (size := _fitting(listed.items, query, limit - len(found))) < len(listed.items):
                listed = await self._store.sessions(tenant, user, after, size)
            found += [session for session in listed.items if _holds(session, query)]
            left -= len(listed.items)
            after = listed.after
            if after is None:
                break
        return Page(tuple(found), after)

    async def _look_into(self, tenant: str, sessions: Sequence[Object]) -> None:
        """Add to each session how it begins."""
        free = asyncio.Semaphore(AT_ONCE)

        async def look(session: Object) -> None:
            async with free:
                session["preview"] = await self._beginning(SessionKey(tenant, str(session["id"])))

        await asyncio.gather(*map(look, sessions))

    async def _beginning(self, key: SessionKey) -> str | None:
        """What the user says first, None if that does not come soon."""
        page = await self._store.messages(key, ACTIVE, 0, BEGINNING)
        first = next((x.wire for x in page.items if x.card.role == "user"), None)
        said = self._parts.read_message(first, len(first)) if first is not None else None
        return said.text[:PREVIEW] if said is not None else None


def _holds(session: Session, query: str) -> bool:
    """Is it in the id, the title or the user?  The query is folded already."""
    names = (session.id, session.details.title, session.user)
    return any(name is not None and query in name.casefold() for name in names)


def _fitting(sessions: Sequence[Session], query: str, room: int) -> int:
    """How many sessions to take so that no more than ``room`` of them hold the query."""
    places = [place for place, session in enumerate(sessions) if _holds(session, query)]
    return len(sessions) if len(places) <= room else places[room - 1] + 1


def _preview(request: Request) -> bool:
    said = request.query_params.get("preview", "false")
    if said not in ("true", "false"):
        raise invalid("preview must be true or false.", "preview")
    return said == "true"
