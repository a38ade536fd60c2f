"""What is remembered of a person: searched, and their standing wishes seen and removed."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.imports import fields_of
from proxy.admin.objects import found_object, listed, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError
from proxy.recall.index import Owner

MOST_FOUND = 50
DEFAULT_FOUND = 10
KINDS = ("passage", "instruction", "preference")


class Users:
    """``/users/{id}/memories``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._recall, self._access = parts, parts.remembrance, access

    async def listing(self, request: Request) -> Response:
        """The standing wishes in force, newest first."""
        wishes = await self._recall.wishes(self._owner(request))
        return reply(listed([found_object(wish) for wish in wishes]))

    async def get(self, request: Request) -> Response:
        wanted = asking.memory_id(request)
        for wish in await self._recall.wishes(self._owner(request)):
            if wish.id == wanted:
                return reply(found_object(wish))
        raise memory_not_found()

    async def delete(self, request: Request) -> Response:
        """Never pin this wish again.  The message that it was said in stays."""
        owner, wanted = self._owner(request), asking.memory_id(request)
        if all(wish.id != wanted for wish in await self._recall.wishes(owner)):
            raise memory_not_found()
        await self._recall.dismiss(owner, wanted)
        return reply({"object": "memory.deleted", "id": wanted, "deleted": True})

    async def search(self, request: Request) -> Response:
        """What recall would find for a question, best first."""
        owner = self._owner(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fields = fields_of(self._parts.fields, body)
        query = asking.text_field(fields, "query")
        if not query:
            raise invalid("query must be a text that says what to look for.", "query")
        kinds = _kinds(fields)
        found = [x for x in await self._recall.search(owner, query) if x.kind in kinds]
        return reply(listed([found_object(one) for one in found[: _limit(fields)]]))

    def _owner(self, request: Request) -> Owner:
        return Owner(self._access.tenant(request), user=asking.user_in_path(request))


def _limit(fields: dict[str, bytes]) -> int:
    try:
        limit = msgspec.json.decode(fields.get("limit", b"null"), type=int | None)
    except msgspec.DecodeError:
        limit = 0
    if limit is None:
        return DEFAULT_FOUND
    if not 1 <= limit <= MOST_FOUND:
        raise invalid(f"limit must be a whole number from 1 to {MOST_FOUND}.", "limit")
    return limit


def _kinds(fields: dict[str, bytes]) -> frozenset[str]:
    try:
        kinds = msgspec.json.decode(fields.get("kinds", b"null"), type=list[str] | None)
    except msgspec.DecodeError:
        kinds = [""]
    if kinds is None:
        return frozenset(KINDS)
    if not set(kinds) <= set(KINDS):
        raise invalid(f"kinds must be a list of: {', '.join(KINDS)}.", "kinds")
    return frozenset(kinds)


def memory_not_found() -> ProxyError:
    return ProxyError(404, "memory_not_found", "There is no such memory of this user.")
