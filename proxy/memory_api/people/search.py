"""Searching what is remembered of a person: what was said, and what was learned, by one score."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proxy.learning.facts.fact import one_line
from proxy.learning.facts.store import FactStore
from proxy.learning.kinds import Kinds
from proxy.learning.similarity import QueryText, TermLists, pack_terms
from proxy.memory.items import matches_filter
from proxy.memory_api.fields import invalid
from proxy.memory_api.items.params import filter_of
from proxy.memory_api.objects import Object
from proxy.memory_api.people.memories import STATES, Listing, Memories, as_item_owner, found_memory
from proxy.memory_api.shapes import people as shapes
from proxy.memory_api.shapes.people import memory_kinds
from proxy.recall.index import Owner
from proxy.recall.lexicon.folding import fold
from proxy.recall.recaller import RecallAdmin

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


def wanted_of(asked: shapes.MemorySearch, known: Kinds) -> MemoryQuery:
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
        said, learned = (
            await self._found_passages(owner, wanted),
            await self._learned(owner, wanted),
        )
        known = await self._fact_terms(owner) if learned else {}
        found = await asyncio.to_thread(self._scored, said, learned, known, wanted)
        found.sort(key=self._worse)
        fitting = (each for each in found if _number(each, "score") > 0)
        return [each for each in fitting if matches_filter(_plain(each), wanted.filter)][
            : wanted.limit
        ]

    async def _found_passages(self, owner: Owner, wanted: MemoryQuery) -> list[Object]:
        if CURRENT not in wanted.states or set(wanted.kinds) <= self._kinds:
            return []
        found = await self.recall.search(owner, wanted.query)
        return [found_memory(one) for one in found if one.kind in wanted.kinds]

    async def _learned(self, owner: Owner, wanted: MemoryQuery) -> list[Object]:
        kinds = set(wanted.kinds) & self._kinds
        return await self.memories.all(owner, Listing(kinds, wanted.states)) if kinds else []

    async def _fact_terms(self, owner: Owner) -> Mapping[str, bytes]:
        """The terms of facts in force, by their ids: these are kept."""
        card = await self.facts.card(as_item_owner(owner))
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
        words = TermLists.of(known.get(str(each["id"])) or _terms(each) for each in every)
        shares = words.scores(QueryText(wanted.query, now))
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
    return pack_terms(str(each["text"]), _number(each, "created_at"))


def _number(each: Object, name: str) -> float:
    value = each[name]
    return float(value) if isinstance(value, int | float) else 0.0
