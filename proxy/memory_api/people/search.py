"""Searches passages and learned memories of a person, ranked by one score."""

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
from proxy.memory_api.people.memories import (
    STATES,
    Memories,
    MemoryFilter,
    as_item_owner,
    hit_object,
)
from proxy.memory_api.shapes import people as shapes
from proxy.memory_api.shapes.people import memory_kinds
from proxy.recall.index import Owner
from proxy.recall.lexicon.folding import fold

DEFAULT_FOUND = 10
CURRENT = STATES[0]

LEXICAL_WEIGHT = 0.75
"""The weight of the lexical score of a passage; the rest is recall's score, which includes meaning
and context.  Learned memories have only the lexical score."""


class MemoryQuery(NamedTuple):
    """A search; ``filter`` applies to the fields of memory objects."""

    query: str
    kinds: Collection[str]
    states: Collection[str]
    filter: dict[str, object]
    limit: int


def memory_query(search: shapes.MemorySearch, learned_kinds: Kinds) -> MemoryQuery:
    """``learned_kinds`` are the kinds of what is learned.  Raises ProxyError 400."""
    every = memory_kinds(learned_kinds, "passage")
    kinds = every if search.kinds is None else search.kinds
    if not set(kinds) <= set(every):
        raise invalid(f"kinds must be a list of: {', '.join(every)}.", "kinds")
    states = (CURRENT,) if search.states is None else search.states
    return MemoryQuery(
        search.query, kinds, states, filter_of(search.filter), search.limit or DEFAULT_FOUND
    )


class MemorySearch(msgspec.Struct, frozen=True):
    """Raises StoreError."""

    memories: Memories
    facts: FactStore

    async def find(self, owner: Owner, query: MemoryQuery) -> list[Object]:
        passages = await self._passages(owner, query)
        learned = await self._learned(owner, query)
        fact_terms = await self._fact_terms(owner) if learned else {}
        scored = await asyncio.to_thread(self._scored, passages, learned, fact_terms, query)
        scored.sort(key=self._sort_key)
        with_score = (each for each in scored if _number(each, "score") > 0)
        return [each for each in with_score if matches_filter(_plain(each), query.filter)][
            : query.limit
        ]

    async def _passages(self, owner: Owner, query: MemoryQuery) -> list[Object]:
        if CURRENT not in query.states or set(query.kinds) <= self._kinds:
            return []
        hits = await self.memories.recall_admin.search(owner, query.query)
        return [hit_object(one) for one in hits if one.kind in query.kinds]

    async def _learned(self, owner: Owner, query: MemoryQuery) -> list[Object]:
        kinds = set(query.kinds) & self._kinds
        return await self.memories.all(owner, MemoryFilter(kinds, query.states)) if kinds else []

    async def _fact_terms(self, owner: Owner) -> Mapping[str, bytes]:
        """The terms of current facts by id, which are stored in the card."""
        card = await self.facts.card(as_item_owner(owner))
        return {id: terms for (id, _), terms in card.terms_by_line().items()}

    def _scored(
        self,
        passages: Sequence[Object],
        learned: Sequence[Object],
        fact_terms: Mapping[str, bytes],
        query: MemoryQuery,
    ) -> list[Object]:
        """Passages, and learned memories that match, with scores from 0 to 1."""
        now = self.memories.clock()
        every = [*passages, *learned]
        words = TermLists.of(fact_terms.get(str(each["id"])) or _terms(each) for each in every)
        shares = words.scores(QueryText(query.query, now))
        best = max((_number(each, "score") for each in passages), default=0.0) or 1.0
        scored = [
            _with_score(
                each,
                lexical=LEXICAL_WEIGHT * share,
                recall=(1 - LEXICAL_WEIGHT) * _number(each, "score") / best,
            )
            for each, share in zip(passages, shares, strict=False)
        ]
        folded_query = _folded(query.query)
        worded = (
            (each, 1.0 if _folded(str(each["text"])) == folded_query else share)
            for each, share in zip(learned, shares[len(passages) :], strict=True)
        )
        scored += [_with_score(each, lexical=share) for each, share in worded if share > 0]
        return scored

    def _sort_key(self, each: Object) -> tuple[float, bool]:
        """The key to sort by: score descending, learned memories before passages."""
        return -_number(each, "score"), each["kind"] not in self._kinds

    @property
    def _kinds(self) -> set[str]:
        return {kind.memory for kind in self.memories.kinds.listed}


def _with_score(each: Object, **parts: float) -> Object:
    return {**each, "score": sum(parts.values()), "parts": parts}


def _plain(each: Object) -> Object:
    plain: Object = msgspec.to_builtins(each)
    return plain


def _folded(text: str) -> str:
    """A text in the form in which equal texts are found, even without any significant word."""
    return fold(one_line(text))


def _terms(each: Object) -> bytes:
    return pack_terms(str(each["text"]), _number(each, "created_at"))


def _number(each: Object, name: str) -> float:
    value = each[name]
    return float(value) if isinstance(value, int | float) else 0.0
