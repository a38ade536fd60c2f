"""A person's memories as one list: learned ones and standing instructions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, NamedTuple, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from proxy.learning.collection import LearnedMemory
from proxy.learning.facts.fact import USER, Fact, new_id, one_line, with_expiry, with_state
from proxy.learning.kinds import Kind, Kinds
from proxy.memory.items import PEOPLE, Item, ItemOwner, Items, Place, all_items
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call
from proxy.memory_api.errors import memory_not_found
from proxy.memory_api.fields import decode_cursor, encode_cursor, invalid, unknown_cursor
from proxy.memory_api.objects import Object
from proxy.memory_api.openapi.operation import Parameter
from proxy.memory_api.parameters import AFTER, integer_schema, several, words
from proxy.memory_api.shapes.people import (
    STANDING_KINDS,
    STANDING_RANK,
    MemoryChange,
    NewMemory,
    State,
    memory_kinds,
)
from proxy.recall.index import Owner
from proxy.recall.recaller import RecallAdmin
from proxy.recall.results import RecallHit
from proxy.settings.learned import FactsSettings


class WriteContext(NamedTuple):
    """The settings for a fact that is written, and the time (Unix seconds)."""

    settings: FactsSettings
    now: float


def hit_object(hit: RecallHit) -> Object:
    """A passage or a standing instruction as a memory object."""
    source = {
        "session_id": hit.session,
        "message_id": hit.message,
        "exchange_id": hit.message.rpartition(".")[0],
        "created_at": hit.created_at,
    }
    return {
        "object": "memory",
        "id": hit.id,
        "kind": hit.kind,
        "text": hit.text,
        "score": hit.score,
        "parts": hit.parts,
        "tokens": hit.tokens,
        "role": hit.role,
        "message_id": hit.message,
        "session_id": hit.session,
        "created_at": hit.created_at,
        "about": USER,
        "state": "current",
        "sources": [source],
        "valid_from": hit.created_at,
        "last_confirmed": hit.created_at,
        "expires_at": None,
        "superseded_by": None,
        "doubted_by": None,
        "later": None,
        "edited": False,
        "origin": "said",
        "metadata": {},
        "updated_at": hit.created_at,
        "version": 1,
    }


def new_fact(new: NewMemory, context: WriteContext) -> Fact:
    fact = Fact(
        id=new_id(),
        text=one_line(new.text),
        about=one_line(new.about or "") or USER,
        valid_from=context.now if new.valid_from is None else new.valid_from,
        known_since=new.valid_from is not None,
        last_confirmed=context.now,
        until=new.expires_at,
        origin="added",
        metadata=new.metadata or {},
    )
    return with_expiry(fact, context.settings)


def changed_fact(fact: Fact, change: MemoryChange, context: WriteContext) -> Fact:
    changed = {name for name in change.__struct_fields__ if getattr(change, name) is not UNSET}
    fact = replace(
        fact,
        text=one_line(change.text or fact.text),
        about=fact.about if change.about is UNSET else one_line(change.about or "") or USER,
        until=fact.until if change.expires_at is UNSET else change.expires_at,
        metadata=change.metadata if isinstance(change.metadata, dict) else fact.metadata,
        last_confirmed=context.now,
        doubted_by=None,
        edited=fact.edited or not changed <= {"state"},
    )
    state = change.state or fact.state
    return with_expiry(fact if state == fact.state else with_state(fact, state), context.settings)


STATES: tuple[State, ...] = get_args(State)
MAX_DAYS = 100_000
PAGE = 100

Key = tuple[int, float, int, str]
"""The sort key of memories: by kind, newest first."""


class MemoryFilter(NamedTuple):
    """A filter of memories.  ``stale``: only facts not confirmed for so many seconds."""

    kinds: Collection[str]
    states: Collection[str]
    stale: float | None = None


def _kinds(call: Call) -> object:
    known = memory_kinds(call.api.learned.kinds)
    return several("kind", known, known)(call)


def _days(call: Call) -> int | None:
    days = call.request.query_params.get("stale_days")
    if days is not None and not (days.isdecimal() and len(days) < 7 and int(days) <= MAX_DAYS):
        raise invalid(f"stale_days must be a whole number up to {MAX_DAYS}.", "stale_days")
    return int(days) if days is not None else None


def _after(call: Call) -> Key | None:
    after = call.request.query_params.get("after")
    try:
        return msgspec.json.decode(decode_cursor(after), type=Key) if after is not None else None
    except ValueError:
        raise unknown_cursor() from None


StaleDays = Annotated[
    int | None,
    Parameter(
        "stale_days",
        "query",
        "Only facts that nobody has confirmed for so many days.",
        integer_schema(0, MAX_DAYS),
        read=_days,
    ),
]
MemoryKinds = Annotated[
    Sequence[str],
    Parameter(
        "kind",
        "query",
        "Which kinds, with commas.",
        words(*memory_kinds(Kinds())),
        example="fact",
        read=_kinds,
    ),
]
States = Annotated[
    Sequence[str],
    Parameter(
        "state",
        "query",
        "Which states, with commas.",
        words(*STATES),
        read=several("state", STATES, STATES[:1]),
    ),
]
AfterMemory = Annotated[Key | None, replace(AFTER, read=_after)]


class ListedMemory(NamedTuple):
    """A memory with its sort key; ``make`` creates its object, only if it is on the page."""

    key: Key
    make: Callable[[], Object]


class Memories(msgspec.Struct, frozen=True):
    """The memories of people as objects.  All methods raise StoreError."""

    kinds: Kinds
    items: Items
    recall_admin: RecallAdmin
    count: Callable[[str], int]
    clock: Callable[[], float]

    async def page(
        self, owner: Owner, filters: MemoryFilter, after: Key | None, limit: int
    ) -> tuple[list[Object], str | None]:
        """The memories after a key, and the cursor of the next page."""
        entries = await self._entries(owner, filters)
        entries_after = [entry for entry in entries if after is None or entry.key > after]
        entries_after.sort(key=attrgetter("key"))
        cursor = _cursor(entries_after[limit - 1].key) if len(entries_after) > limit else None
        return [entry.make() for entry in entries_after[:limit]], cursor

    async def all(self, owner: Owner, filters: MemoryFilter) -> list[Object]:
        """All memories, in no order."""
        return [entry.make() for entry in await self._entries(owner, filters)]

    async def _entries(self, owner: Owner, filters: MemoryFilter) -> list[ListedMemory]:
        entries: list[ListedMemory] = []
        for kind in self.kinds.listed:
            if kind.memory in filters.kinds:
                entries += await self._learned(owner, filters, kind)
        if "current" in filters.states and filters.stale is None:
            entries += await self._standing(owner, filters)
        return entries

    async def _learned(self, owner: Owner, filters: MemoryFilter, kind: Kind) -> list[ListedMemory]:
        item_owner = as_item_owner(owner)
        items = all_items(self.items, item_owner, (PEOPLE, item_owner.user, kind.name), PAGE)
        memories = [self._memory(kind, item) async for item in items]
        return [
            ListedMemory(
                (kind.rank, -each.created_at, 0, each.id), partial(each.fields, self.count)
            )
            for each in memories
            if each.state in filters.states and self._is_stale(each, filters)
        ]

    def _is_stale(self, memory: LearnedMemory, filters: MemoryFilter) -> bool:
        """Whether it was not confirmed for ``stale`` seconds; True without that filter."""
        if filters.stale is None:
            return True
        return memory.confirmed is not None and memory.confirmed <= self.clock() - filters.stale

    async def _standing(self, owner: Owner, filters: MemoryFilter) -> list[ListedMemory]:
        if set(STANDING_KINDS).isdisjoint(filters.kinds):
            return []
        return [
            ListedMemory(
                (STANDING_RANK, -each.created_at, -each.seq, each.id), partial(hit_object, each)
            )
            for each in await self.recall_admin.standing(owner)
            if each.kind in filters.kinds
        ]

    async def one(self, owner: Owner, memory: str) -> Object | None:
        """A memory by its id, whatever its state."""
        kind, item_owner = self.kinds.named(memory), as_item_owner(owner)
        if kind is not None:
            place = Place((PEOPLE, item_owner.user, kind.name), memory)
            item = (await self.items.items_at(item_owner, [place])).get(place)
            return self.learned(kind, item) if item else None
        hits = await self.recall_admin.standing(owner)
        return next((hit_object(each) for each in hits if each.id == memory), None)

    async def existing(self, owner: Owner, memory: str) -> Object:
        """The same; ProxyError 404 if there is none."""
        found = await self.one(owner, memory)
        if found is None:
            raise memory_not_found()
        return found

    def learned(self, kind: Kind, item: Item) -> Object:
        """An item as a memory of its kind."""
        return self._memory(kind, item).fields(self.count)

    def _memory(self, kind: Kind, item: Item) -> LearnedMemory:
        assert kind.to_memory is not None
        return kind.to_memory(item, self.clock())


def memories_of(api: Api) -> Memories:
    kinds = api.learned.kinds
    return Memories(kinds, api.store, api.recall_admin, api.count_text, time.time)


def as_item_owner(owner: Owner) -> ItemOwner:
    return ItemOwner(owner.tenant, owner.user)


def _cursor(key: Key) -> str:
    return encode_cursor(msgspec.json.encode(key).decode())
