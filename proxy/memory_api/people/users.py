"""What is remembered of a person: listed, added, looked at, changed, removed, searched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.learning.facts.fact import (
    Fact,
    Facts,
    TooManyFacts,
    check_given,
    fact_fields,
    fact_id,
    new_id,
    one_line,
)
from proxy.learning.facts.rules import entered
from proxy.learning.facts.store import FactStore, StoredFacts
from proxy.learning.kinds import FACTS, Kind, Kinds
from proxy.learning.likeness import AskedText, Words, terms_in
from proxy.memory.items import Item, ItemOwner, fits
from proxy.memory_api.api import Api
from proxy.memory_api.call import Given, Repeated
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.errors import idempotency_key_spent, memory_not_found, too_many_memories
from proxy.memory_api.fields import invalid
from proxy.memory_api.items.params import filter_of
from proxy.memory_api.objects import Object, listed
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import Limit, MemoryAt, PersonAt
from proxy.memory_api.people.memories import (
    STATES,
    AfterMemory,
    Lately,
    Listing,
    Memories,
    MemoryKinds,
    StaleDays,
    States,
    changed_fact,
    memories_of,
    new_fact,
    said_object,
    shelf_of,
)
from proxy.memory_api.people.people import BY_PATH
from proxy.memory_api.people.people import ONE as PERSON
from proxy.memory_api.shapes import people as shapes
from proxy.memory_api.shapes.people import (
    Memory,
    MemoryChange,
    MemoryDeleted,
    MemoryList,
    NewMemory,
    memory_kinds,
)
from proxy.memory_api.shapes.people import MemorySearch as Asked
from proxy.recall.index import Owner
from proxy.recall.lexicon.folding import fold
from proxy.recall.query.dates import DAY
from proxy.recall.recaller import RecallAdmin

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
) -> Object:
    """List what is remembered of a person.

    Facts, then standing wishes, then episodes, each newest first.
    """
    wanted = Listing(kinds, states, stale * DAY if stale is not None else None)
    return listed(*await memories_of(api).page(owner, wanted, after, limit))


@operation(
    "POST",
    ALL,
    TAG,
    status=201,
    answer=Memory,
    founds=True,
    examples={"allergy": {"text": "Is allergic to peanuts."}},
    errors=(memory_not_found, too_many_memories),
    links=(
        Link("getMemory", MADE),
        Link("updateMemory", MADE, {"text": "Is allergic to all nuts."}),
        Link("deleteMemory", MADE),
        Link("getUser", BY_PATH),
    ),
)
async def create_memory(api: Api, owner: PersonAt, new: NewMemory, once: Repeated) -> Object:
    """Add a fact."""
    fact, memories = new_fact(new, _lately(api)), memories_of(api)
    attempt = await once.attempt()
    if attempt is None:
        await _add(api, owner, fact)
    else:  # what an earlier attempt has added is answered as it is by now
        fact = replace(fact, id=fact_id(attempt.mark))
        added = attempt.again and await memories.one(owner, fact.id) is not None
        if attempt.done and not added:
            raise idempotency_key_spent()
        if not added:
            await _add(api, owner, fact)
        await once.done(attempt)
    return _there(await memories.one(owner, fact.id))


@operation(
    "POST",
    f"{ALL}/search",
    TAG,
    answer=MemoryList,
    examples={"question": {"query": "What must not be in the food?"}},
)
async def search_memories(api: Api, owner: PersonAt, asked: shapes.MemorySearch) -> Object:
    """Search what is remembered of a person.

    Facts, standing wishes, episodes and passages by one score from 0 to 1, best first.
    """
    search = MemorySearch(memories_of(api), api.learned.facts, api.recall_admin)
    return listed(await search.find(owner, wanted_of(asked, api.learned.kinds)))


@operation("GET", ONE, TAG, answer=Memory)
async def get_memory(api: Api, owner: PersonAt, wanted: MemoryAt) -> Object:
    """Get a memory."""
    return _there(await memories_of(api).one(owner, wanted))


@operation(
    "PATCH",
    ONE,
    TAG,
    answer=Memory,
    examples={"correction": {"text": "Is allergic to all nuts."}},
)
async def update_memory(
    api: Api, owner: PersonAt, wanted: MemoryAt, new: MemoryChange, given: Given
) -> Object | None:
    """Correct a fact.

    Or release it from quarantine, with `state`. Only facts can be changed.
    """
    memories = memories_of(api)
    if memories.kinds.named(wanted) is not FACTS and await memories.one(owner, wanted) is not None:
        raise invalid("Only facts can be changed; delete this, or say something else.")

    def change(facts: Facts) -> None:
        facts[wanted] = changed_fact(facts[wanted], new, _lately(api))

    await api.learned.facts.change(shelf_of(owner), change, check=_check(api, given, wanted))
    return await memories.one(owner, wanted)


@operation("DELETE", ONE, TAG)
async def delete_memory(api: Api, owner: PersonAt, wanted: MemoryAt, given: Given) -> MemoryDeleted:
    """Remove a memory.

    What was said stays in history; a wish is never pinned again.
    """
    kind = api.learned.kinds.named(wanted)
    if kind is None:
        found = _there(await memories_of(api).one(owner, wanted))
        given.hold_for(found)
        await api.recall_admin.dismiss(owner, wanted)
    else:
        await _drop(api, shelf_of(owner), kind, wanted, given)
    return MemoryDeleted(id=wanted, deleted=True)


async def _add(api: Api, owner: Owner, fact: Fact) -> None:
    def add(facts: Facts) -> None:
        facts[fact.id] = fact
        check_given(facts)
        settings, now = _lately(api)
        facts.update(entered(facts, (), settings, new_id, now))

    try:
        await api.learned.facts.change(shelf_of(owner), add)
    except TooManyFacts:
        raise too_many_memories() from None


def _check(api: Api, given: Conditions, wanted: str) -> Callable[[StoredFacts], None]:
    """Raises where a fact is not there, or not as the request says."""

    def check(kept: StoredFacts) -> None:
        if wanted not in kept.filed:
            raise memory_not_found()
        given.hold_for(fact_fields(kept.filed[wanted], time.time(), api.count_text))

    return check


async def _drop(api: Api, shelf: ItemOwner, kind: Kind, wanted: str, given: Conditions) -> None:
    def check(item: Item) -> None:
        given.hold_for(memories_of(api).learned(kind, item))

    store = kind.listed(api.learned.over) if kind.listed else None
    if store is None or not await store.drop(shelf, wanted, check):
        raise memory_not_found()


def _lately(api: Api) -> Lately:
    return Lately(api.settings.memory.facts, time.time())


def _there(found: Object | None) -> Object:
    if found is None:
        raise memory_not_found()
    return found


DEFAULT_FOUND = 10
CURRENT = STATES[0]

WORDS = 0.75
"""What the words of the question count of what was said; the rest is how well recall thinks of it,
which knows meaning and what stands around.  Of what was learned the words are all."""


class MemoryQuery(NamedTuple):
    """What is looked for; ``filter`` holds for the fields of a memory object."""

    query: str
    kinds: Collection[str]
    states: Collection[str]
    filter: dict[str, object]
    limit: int


def wanted_of(asked: Asked, known: Kinds) -> MemoryQuery:
    """``known`` are the kinds of what is learned.  Raises ProxyError 400."""
    every = memory_kinds(known, "passage")
    kinds = every if asked.kinds is None else asked.kinds
    if not set(kinds) <= set(every):
        raise invalid(f"kinds must be a list of: {', '.join(every)}.", "kinds")
    states = (CURRENT,) if asked.states is None else asked.states
    return MemoryQuery(
        asked.query, kinds, states, filter_of(asked.filter), asked.limit or DEFAULT_FOUND
    )


class MemorySearch(msgspec.Struct, frozen=True):
    """Raises StoreError."""

    memories: Memories
    facts: FactStore
    recall: RecallAdmin

    async def find(self, owner: Owner, wanted: MemoryQuery) -> list[Object]:
        """What has to do with the question, best first, whatever it is."""
        said, learned = await self._said(owner, wanted), await self._learned(owner, wanted)
        known = await self._known(owner) if learned else {}
        found = await asyncio.to_thread(self._scored, said, learned, known, wanted)
        found.sort(key=self._worse)
        fitting = (each for each in found if _number(each, "score") > 0)
        return [each for each in fitting if fits(_plain(each), wanted.filter)][: wanted.limit]

    async def _said(self, owner: Owner, wanted: MemoryQuery) -> list[Object]:
        if CURRENT not in wanted.states or set(wanted.kinds) <= self._kinds:
            return []
        found = await self.recall.search(owner, wanted.query)
        return [said_object(one) for one in found if one.kind in wanted.kinds]

    async def _learned(self, owner: Owner, wanted: MemoryQuery) -> list[Object]:
        kinds = set(wanted.kinds) & self._kinds
        return await self.memories.all(owner, Listing(kinds, wanted.states)) if kinds else []

    async def _known(self, owner: Owner) -> Mapping[str, bytes]:
        """The terms of facts in force, by their ids: these are kept."""
        card = await self.facts.card(shelf_of(owner))
        return {id: terms for (id, _), terms in card.terms_by_line().items()}

    def _scored(
        self,
        said: Sequence[Object],
        learned: Sequence[Object],
        known: Mapping[str, bytes],
        wanted: MemoryQuery,
    ) -> list[Object]:
        """With scores from 0 to 1 that can be compared; nothing learned without a word of it."""
        now = self.memories.clock()
        every = [*said, *learned]
        words = Words.of(known.get(str(each["id"])) or _terms(each) for each in every)
        shares = words.likeness(AskedText(wanted.query, now))
        best = max((_number(each, "score") for each in said), default=0.0) or 1.0
        scored = [
            _with_score(
                each, lexical=WORDS * share, recall=(1 - WORDS) * _number(each, "score") / best
            )
            for each, share in zip(said, shares, strict=False)
        ]
        query = _folded(wanted.query)
        worded = (
            (each, 1.0 if _folded(str(each["text"])) == query else share)
            for each, share in zip(learned, shares[len(said) :], strict=True)
        )
        scored += [_with_score(each, lexical=share) for each, share in worded if share > 0]
        return scored

    def _worse(self, each: Object) -> tuple[float, bool]:
        """By score; what was learned before what was only said."""
        return -_number(each, "score"), each["kind"] not in self._kinds

    @property
    def _kinds(self) -> set[str]:
        """Those of what was learned."""
        return {kind.memory for kind in self.memories.kinds.listed}


def _with_score(each: Object, **parts: float) -> Object:
    return {**each, "score": sum(parts.values()), "parts": parts}


def _plain(each: Object) -> Object:
    plain: Object = msgspec.to_builtins(each)
    return plain


def _folded(text: str) -> str:
    """What the very same words are told by: they are found though none of them says anything."""
    return fold(one_line(text))


def _terms(each: Object) -> bytes:
    return terms_in(str(each["text"]), _number(each, "created_at"))


def _number(each: Object, name: str) -> float:
    value = each[name]
    return float(value) if isinstance(value, int | float) else 0.0
