"""The memories of a person: list, add, get, change, remove and search them."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from proxy.learning.facts.fact import (
    Fact,
    Facts,
    TooManyFacts,
    check_max_given,
    fact_fields,
    fact_id,
    new_id,
)
from proxy.learning.facts.rules import apply_claims
from proxy.learning.facts.store import StoredFacts
from proxy.learning.kinds import FACTS, Kind
from proxy.memory.items import Item, ItemOwner
from proxy.memory_api.api import Api
from proxy.memory_api.call import IdempotentCall, RequestConditions
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.errors import idempotency_key_spent, memory_not_found, too_many_memories
from proxy.memory_api.fields import Listing, invalid
from proxy.memory_api.objects import Object
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import Limit, MemoryAt, PersonAt
from proxy.memory_api.people.memories import (
    AfterMemory,
    MemoryFilter,
    MemoryKinds,
    StaleDays,
    States,
    WriteContext,
    as_item_owner,
    changed_fact,
    memories_of,
    new_fact,
)
from proxy.memory_api.people.people import BY_PATH
from proxy.memory_api.people.people import ONE as PERSON
from proxy.memory_api.people.search import MemorySearch, memory_query
from proxy.memory_api.shapes import people as shapes
from proxy.memory_api.shapes.people import (
    Memory,
    MemoryChange,
    MemoryDeleted,
    MemoryList,
    NewMemory,
)
from proxy.recall.index import Owner
from proxy.recall.query.dates import DAY

TAG = "Memories"
ALL = f"{PERSON}/memories"
ONE = f"{ALL}/{{memory}}"
MADE = {**BY_PATH, "memory": "$response.body#/id"}
FIRST = {**BY_PATH, "memory": "$response.body#/data/0/id"}


@operation(
    "GET",
    ALL,
    TAG,
    answer=MemoryList,
    links=(Link("getMemory", FIRST), Link("deleteMemory", FIRST)),
)
async def list_memories(
    api: Api,
    owner: PersonAt,
    kinds: MemoryKinds,
    states: States,
    stale: StaleDays,
    limit: Limit,
    after: AfterMemory,
) -> Listing[Object]:
    """List what is remembered of a person.

    Facts, then standing wishes, then episodes, each newest first.
    """
    filters = MemoryFilter(kinds, states, stale * DAY if stale is not None else None)
    return Listing.part(*await memories_of(api).page(owner, filters, after, limit))


@operation(
    "POST",
    ALL,
    TAG,
    status=201,
    answer=Memory,
    creates_tenant=True,
    examples={"allergy": {"text": "Is allergic to peanuts."}},
    errors=(memory_not_found, too_many_memories),
    links=(
        Link("getMemory", MADE),
        Link("updateMemory", MADE, {"text": "Is allergic to all nuts."}),
        Link("deleteMemory", MADE),
        Link("getUser", BY_PATH),
    ),
)
async def create_memory(
    api: Api, owner: PersonAt, new: NewMemory, idempotent: IdempotentCall
) -> Object:
    """Add a fact."""
    fact, memories = new_fact(new, _write_context(api)), memories_of(api)
    attempt = await idempotent.attempt()
    if attempt is None:
        await _add(api, owner, fact)
    else:  # what an earlier attempt has added is answered as it is by now
        fact = replace(fact, id=fact_id(attempt.mark))
        added = attempt.is_repeat and await memories.one(owner, fact.id) is not None
        if attempt.done and not added:
            raise idempotency_key_spent()
        if not added:
            await _add(api, owner, fact)
        await idempotent.done(attempt)
    return await memories.existing(owner, fact.id)


@operation(
    "POST",
    f"{ALL}/search",
    TAG,
    answer=MemoryList,
    examples={"question": {"query": "What must not be in the food?"}},
)
async def search_memories(
    api: Api, owner: PersonAt, request: shapes.MemorySearch
) -> Listing[Object]:
    """Search what is remembered of a person.

    Facts, standing wishes, episodes and passages by one score from 0 to 1, best first.
    """
    search = MemorySearch(memories_of(api), api.learned.facts)
    return Listing.part(await search.find(owner, memory_query(request, api.learned.kinds)))


@operation("GET", ONE, TAG, answer=Memory)
async def get_memory(api: Api, owner: PersonAt, memory_id: MemoryAt) -> Object:
    """Get a memory."""
    return await memories_of(api).existing(owner, memory_id)


@operation(
    "PATCH", ONE, TAG, answer=Memory, examples={"correction": {"text": "Is allergic to all nuts."}}
)
async def update_memory(
    api: Api, owner: PersonAt, memory_id: MemoryAt, new: MemoryChange, conditions: RequestConditions
) -> Object:
    """Correct a fact.

    Or release it from quarantine, with `state`. Only facts can be changed.
    """
    memories = memories_of(api)
    if (
        memories.kinds.named(memory_id) is not FACTS
        and await memories.one(owner, memory_id) is not None
    ):
        raise invalid("Only facts can be changed; delete this, or say something else.")

    def change(facts: Facts) -> None:
        facts[memory_id] = changed_fact(facts[memory_id], new, _write_context(api))

    await api.learned.facts.change(
        as_item_owner(owner), change, check=_check(api, conditions, memory_id)
    )
    return await memories.existing(owner, memory_id)


@operation("DELETE", ONE, TAG)
async def delete_memory(
    api: Api, owner: PersonAt, memory_id: MemoryAt, conditions: RequestConditions
) -> MemoryDeleted:
    """Remove a memory.

    What was said stays in history; a wish is never pinned again.
    """
    kind = api.learned.kinds.named(memory_id)
    if kind is None:
        conditions.check(await memories_of(api).existing(owner, memory_id))
        await api.recall_admin.dismiss(owner, memory_id)
    else:
        await _drop(api, as_item_owner(owner), kind, memory_id, conditions)
    return MemoryDeleted(id=memory_id, deleted=True)


async def _add(api: Api, owner: Owner, fact: Fact) -> None:
    def add(facts: Facts) -> None:
        facts[fact.id] = fact
        check_max_given(facts)
        settings, now = _write_context(api)
        facts.update(apply_claims(facts, (), settings, new_id, now))

    try:
        await api.learned.facts.change(as_item_owner(owner), add)
    except TooManyFacts:
        raise too_many_memories() from None


def _check(api: Api, conditions: Conditions, memory_id: str) -> Callable[[StoredFacts], None]:
    """A check that raises ProxyError if the fact does not exist or the conditions do not hold."""

    def check(stored: StoredFacts) -> None:
        if memory_id not in stored.by_id:
            raise memory_not_found()
        conditions.check(fact_fields(stored.by_id[memory_id], time.time(), api.count_text))

    return check


async def _drop(
    api: Api, owner: ItemOwner, kind: Kind, memory_id: str, conditions: Conditions
) -> None:
    def check(item: Item) -> None:
        conditions.check(memories_of(api).learned(kind, item))

    store = kind.make_listed_store(api.learned.resources) if kind.make_listed_store else None
    if store is None or not await store.drop(owner, memory_id, check):
        raise memory_not_found()


def _write_context(api: Api) -> WriteContext:
    return WriteContext(api.settings.memory.facts, time.time())
