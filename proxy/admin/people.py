"""The people of a tenant over the memory API: listed, and what there is of one."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.counting import shelf_counts
from proxy.admin.memories import WISHES, shelf_of
from proxy.admin.objects import Object, listed, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError
from proxy.memory.archive import Session
from proxy.recall.history import sessions_of
from proxy.recall.index import Owner

MOST_SESSIONS = 5000
"""Sessions that are looked at for one page of the list, those that are only counted included."""

MOST_PAGES = 50
"""How often the store is asked for more of them."""

LEARNED = ("fact", "profile", "episode")


class People:
    """``/users`` and ``/users/{id}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._store, self._access = parts.store, access
        self._shelves, self._remembrance = parts.shelves, parts.remembrance

    async def listing(self, request: Request) -> Response:
        """Who has sessions, newest activity first.

        Everybody stands where their newest session does.  Who becomes active while somebody reads
        moves to the front, so nobody comes twice.  A page may be short though there are more.
        """
        tenant, limit = self._access.tenant(request), asking.limit(request)
        sealed = request.query_params.get("after")
        try:
            after = asking.opened(sealed) if sealed is not None else None
            people, after = await self._page(tenant, after, limit)
        except ValueError:
            raise asking.unknown_cursor() from None
        return reply(listed(people, asking.sealed(after) if after is not None else None))

    async def get(self, request: Request) -> Response:
        """What there is of a person, in numbers."""
        owner = Owner(self._access.tenant(request), user=asking.user_in_path(request))
        person = await self.one(owner)
        if person is None:
            raise user_not_found()
        return reply(person)

    async def one(self, owner: Owner) -> Object | None:
        """A person as an object; None of whom nothing is known."""
        person = await self._numbers(owner)
        memories = await self._memories(owner)
        if not person["sessions"] and not any(memories.values()):
            return None
        return {**person, "memories": memories}

    async def _page(
        self, tenant: str, after: str | None, limit: int
    ) -> tuple[list[Object], str | None]:
        """People behind a cursor of the sessions, and the cursor behind them."""
        people: list[Object] = []
        seen: set[str] = set()
        looked = 0
        for _ in range(MOST_PAGES):
            page = await self._store.sessions(tenant, None, after, limit - len(people))
            looked, after = looked + len(page.items), page.after
            for session in page.items:
                if session.user is not None and session.user not in seen:
                    seen.add(session.user)
                    newest, count = await self._counted(tenant, session.user)
                    looked += count
                    if newest == session.id:
                        people.append(listed_person(session, count))
            if after is None or 2 * len(people) > limit or looked >= MOST_SESSIONS:
                break
        return people, after

    async def _counted(self, tenant: str, user: str) -> tuple[str | None, int]:
        """A person's newest session, and how many there are."""
        ids = [session.id async for session in sessions_of(self._store, tenant, user)]
        return (ids[0] if ids else None), len(ids)

    async def _numbers(self, owner: Owner) -> Object:
        found = [session async for session in sessions_of(self._store, owner.tenant, owner.user)]
        return {
            "object": "user",
            "id": owner.user,
            "sessions": len(found),
            "messages": sum(session.messages for session in found),
            "tokens": sum(session.tokens for session in found),
            "first_active_at": min((session.created_at for session in found), default=None),
            "last_active_at": max((session.last_active_at for session in found), default=None),
        }

    async def _memories(self, owner: Owner) -> dict[str, int]:
        """How many there are by kind, of every state; wishes only those in force."""
        counts = await shelf_counts(self._shelves, shelf_of(owner))
        wishes = Counter[str](wish.kind for wish in await self._remembrance.wishes(owner))
        return {
            **{kind: counts.memories[kind] for kind in LEARNED},
            **{kind: wishes[kind] for kind in WISHES},
            "item": counts.items,
        }


def listed_person(newest: Session, sessions: int) -> Object:
    return {
        "object": "user",
        "id": newest.user,
        "sessions": sessions,
        "last_active_at": newest.last_active_at,
    }


def user_not_found() -> ProxyError:
    return ProxyError(404, "user_not_found", "Nothing is known of this user.")
