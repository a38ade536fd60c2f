"""What is remembered of a person: listed, added, looked at, changed, removed, searched."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import must_match
from proxy.admin.episodes import episode_object, is_episode
from proxy.admin.facts import Fields, Lately, changed_fact, is_fact, new_fact
from proxy.admin.idempotency import Idempotency
from proxy.admin.imports import fields_of
from proxy.admin.memories import Memories, after_in, listing_in, shelf_of
from proxy.admin.memory_search import MemorySearch, wanted_in
from proxy.admin.objects import listed, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError, memory_unavailable
from proxy.learning.fact import Fact, new_id, parted
from proxy.learning.fact_book import Facts, Kept
from proxy.learning.fact_rules import entered
from proxy.learning.forgetting import Busy, anything
from proxy.memory.items import Item, Shelf
from proxy.recall.index import Owner

T = TypeVar("T")


class Users:
    """``/users/{id}/memories``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._recall, self._access = parts, parts.remembrance, access
        self._book = parts.facts
        self._episodes = parts.learned.episodes
        self._memories = Memories(self._book, self._episodes, self._recall, parts.count_text)
        self._idempotency = Idempotency(parts.shelves)
        self._searched = MemorySearch(self._memories, self._recall)

    async def listing(self, request: Request) -> Response:
        """Facts, then standing wishes, then episodes, each newest first; see ``listing_in``."""
        owner, wanted = self._owner(request), listing_in(request)
        limit, after = asking.limit(request), after_in(request)
        return reply(listed(*await self._memories.page(owner, wanted, after, limit)))

    async def create(self, request: Request) -> Response:
        """Add a fact; what an earlier attempt has added is answered as it is by now."""
        owner = self._owner(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fact = new_fact(fields_of(self._parts.fields, body), self._lately())
        attempt = await self._idempotency.attempt(request, owner.tenant, body)
        if attempt is None:
            await self._add(owner, fact)
        else:
            fact = replace(fact, id=f"fact_{attempt.mark}")
            added = attempt.again and await self._memories.one(owner, fact.id) is not None
            if not (attempt.done or added):
                await self._add(owner, fact)
            await self._idempotency.done(owner.tenant, attempt)
        found = await self._memories.one(owner, fact.id)
        if found is None:
            raise memory_not_found()
        return reply(found, 201)

    async def _add(self, owner: Owner, fact: Fact) -> None:
        def add(facts: Facts) -> None:
            facts[fact.id] = fact
            settings, now = self._lately()
            facts.update(entered(facts, (), settings, new_id, now))

        await self._change(shelf_of(owner), add)

    async def get(self, request: Request) -> Response:
        found = await self._memories.one(self._owner(request), asking.memory_id(request))
        if found is None:
            raise memory_not_found()
        return reply(found)

    async def change(self, request: Request) -> Response:
        """Correct a fact, or release it from quarantine."""
        owner, wanted = self._owner(request), asking.memory_id(request)
        fields = await self._fields(request)
        if not is_fact(wanted) and await self._memories.one(owner, wanted) is not None:
            raise invalid("Only facts can be changed; delete this, or say something else.")

        def change(facts: Facts) -> None:
            facts[wanted] = changed_fact(facts[wanted], fields, self._lately())

        await self._change(shelf_of(owner), change, self._meant(request, wanted))
        return reply(await self._memories.one(owner, wanted))

    async def delete(self, request: Request) -> Response:
        """Remove a fact or an episode, or never pin a wish again.  What was said stays."""
        owner, wanted = self._owner(request), asking.memory_id(request)
        if is_fact(wanted):
            meant = self._meant(request, wanted)
            await self._change(shelf_of(owner), lambda facts: _remove(facts, wanted), meant)
        elif is_episode(wanted):
            await self._drop_episode(request, shelf_of(owner), wanted)
        else:
            await self._dismiss(request, owner, wanted)
        return reply({"object": "memory.deleted", "id": wanted, "deleted": True})

    async def search(self, request: Request) -> Response:
        """What recall would find for a question, and facts that share its words, best first."""
        owner = self._owner(request)
        wanted = wanted_in(await self._fields(request), self._parts.decode)
        return reply(listed(await self._searched.find(owner, wanted)))

    async def _change(
        self,
        shelf: Shelf,
        make: Callable[[Facts], T],
        check: Callable[[Kept], None] = anything,
    ) -> T:
        try:
            return await self._book.change(shelf, make, check=check)
        except Busy:
            raise memory_unavailable() from None

    def _meant(self, request: Request, wanted: str) -> Callable[[Kept], None]:
        """Raises where a fact is not there, or not as the request says."""

        def check(kept: Kept) -> None:
            if wanted not in kept.filed:
                raise memory_not_found()
            must_match(request, self._memories.fact(kept.filed[wanted]))

        return check

    async def _drop_episode(self, request: Request, shelf: Shelf, wanted: str) -> None:
        def check(item: Item) -> None:
            must_match(request, episode_object(item))

        try:
            there = await self._episodes.drop(shelf, wanted, check)
        except Busy:
            raise memory_unavailable() from None
        if not there:
            raise memory_not_found()

    async def _dismiss(self, request: Request, owner: Owner, wanted: str) -> None:
        wish = await self._memories.one(owner, wanted)
        if wish is None:
            raise memory_not_found()
        must_match(request, wish)
        await self._recall.dismiss(owner, wanted)

    async def _fields(self, request: Request) -> Fields:
        body = await asking.body_of(request, self._parts.settings.server)
        return fields_of(self._parts.fields, body)

    def _owner(self, request: Request) -> Owner:
        return Owner(self._access.tenant(request), user=asking.user_in_path(request))

    def _lately(self) -> Lately:
        return Lately(self._parts.settings.memory.facts, time.time())


def _remove(facts: Facts, wanted: str) -> None:
    """What it took the place of is not true again because of that; but it has no successor."""
    del facts[wanted]
    for fact in list(facts.values()):
        if fact.superseded_by == wanted:
            facts[fact.id] = parted(fact, fact.state)


def memory_not_found() -> ProxyError:
    return ProxyError(404, "memory_not_found", "There is no such memory of this user.")
