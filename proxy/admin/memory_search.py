"""The search of all that is remembered of a person: facts, passages, standing wishes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple

import msgspec

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.facts import KIND, Fields, said_object
from proxy.admin.imports import UNREADABLE
from proxy.admin.item_asking import filter_in
from proxy.admin.memories import WISHES, Memories, shelf_of
from proxy.admin.objects import Object
from proxy.memory.item_filter import fits
from proxy.recall.index import Owner
from proxy.recall.question import read
from proxy.recall.remembrance import Remembrance

MOST_FOUND = 50
DEFAULT_FOUND = 10
KINDS = (KIND, "passage", *WISHES)


class Wanted(NamedTuple):
    """What is looked for; ``filter`` holds for the fields of a memory object."""

    query: str
    kinds: Collection[str]
    filter: dict[str, object]
    limit: int


def wanted_in(fields: Fields, decode: Callable[[bytes], object]) -> Wanted:
    """What a body asks for.  Raises ProxyError 400."""
    query = asking.text_field(fields, "query")
    if not query:
        raise invalid("query must be a text that says what to look for.", "query")
    return Wanted(query, _kinds(fields), filter_in(fields, decode), _limit(fields))


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """Raises StoreError."""

    memories: Memories
    recall: Remembrance

    async def find(self, owner: Owner, wanted: Wanted) -> list[Object]:
        """Wishes first, as recall has them, then facts and passages, best first."""
        said = [] if set(wanted.kinds) <= {KIND} else await self._said(owner, wanted)
        facts = await self._facts(owner, wanted) if KIND in wanted.kinds else []
        wishes = [each for each in said if each["kind"] in WISHES]
        passages = [each for each in said if each["kind"] not in WISHES]
        found = [*wishes, *merge(facts, passages, key=_worse)]
        return [each for each in found if fits(each, wanted.filter)][: wanted.limit]

    async def _said(self, owner: Owner, wanted: Wanted) -> list[Object]:
        found = await self.recall.search(owner, wanted.query)
        return [said_object(one) for one in found if one.kind in wanted.kinds]

    async def _facts(self, owner: Owner, wanted: Wanted) -> Sequence[Object]:
        """Facts in force that share words with the question."""
        kept = await self.memories.book.load(shelf_of(owner))
        now = self.memories.book.clock()
        scores = kept.card.words.likeness(read(wanted.query, (), now)).tolist()
        found = [
            self.memories.fact(kept.filed[line.id], score)
            for score, line in zip(scores, kept.card.lines, strict=True)
            if score > 0 and line.id in kept.filed and kept.filed[line.id].fact.holds(now)
        ]
        return sorted(found, key=_worse)


def _worse(each: Object) -> float:
    score = each["score"]
    return -score if isinstance(score, float) else 0.0


def _limit(fields: Fields) -> int:
    raw = fields.get("limit", b"null")
    if raw.strip() == b"null":
        return DEFAULT_FOUND
    try:
        limit = asking.whole(raw)
    except UNREADABLE:
        limit = 0
    if not 1 <= limit <= MOST_FOUND:
        raise invalid(f"limit must be a whole number from 1 to {MOST_FOUND}.", "limit")
    return limit


def _kinds(fields: Fields) -> frozenset[str]:
    try:
        kinds = msgspec.json.decode(fields.get("kinds", b"null"), type=list[str] | None)
    except msgspec.DecodeError:
        kinds = [""]
    if kinds is None:
        return frozenset(KINDS)
    if not set(kinds) <= set(KINDS):
        raise invalid(f"kinds must be a list of: {', '.join(KINDS)}.", "kinds")
    return frozenset(kinds)
