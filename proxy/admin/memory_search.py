"""The search of all that is remembered of a person: facts, wishes, episodes, passages, by one
measure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.facts import KIND, Fields, said_object
from proxy.admin.imports import UNREADABLE
from proxy.admin.item_asking import filter_in
from proxy.admin.memories import STATES, WISHES, Listing, Memories, shelf_of
from proxy.admin.objects import Object
from proxy.learning.likeness import Words, terms_in
from proxy.memory.item_filter import fits
from proxy.recall.index import Owner
from proxy.recall.question import read
from proxy.recall.remembrance import Remembrance

MOST_FOUND = 50
DEFAULT_FOUND = 10
KINDS = (KIND, "passage", *WISHES, "episode")
CURRENT = STATES[0]

WORDS = 0.75
"""What the words of the question count of what was said; the rest is how well recall thinks of it,
which knows meaning and what stands around.  Of what was learned the words are all."""


class Wanted(NamedTuple):
    """What is looked for; ``filter`` holds for the fields of a memory object."""

    query: str
    kinds: Collection[str]
    states: Collection[str]
    filter: dict[str, object]
    limit: int


def wanted_in(fields: Fields, decode: Callable[[bytes], object]) -> Wanted:
    """What a body asks for.  Raises ProxyError 400."""
    query = asking.text_field(fields, "query")
    if not query:
        raise invalid("query must be a text that says what to look for.", "query")
    kinds = _names(fields, "kinds", KINDS, KINDS)
    states = _names(fields, "states", STATES, (CURRENT,))
    return Wanted(query, kinds, states, filter_in(fields, decode), _limit(fields))


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """Raises StoreError."""

    memories: Memories
    recall: Remembrance

    async def find(self, owner: Owner, wanted: Wanted) -> list[Object]:
        """What has to do with the question, best first, whatever it is."""
        said, learned = await self._said(owner, wanted), await self._learned(owner, wanted)
        known = await self._known(owner) if learned else {}
        found = await asyncio.to_thread(self._scored, said, learned, known, wanted)
        found.sort(key=_worse)
        fitting = (each for each in found if _number(each, "score") > 0)
        return [each for each in fitting if fits(each, wanted.filter)][: wanted.limit]

    async def _said(self, owner: Owner, wanted: Wanted) -> list[Object]:
        if CURRENT not in wanted.states or set(wanted.kinds) <= {KIND, "episode"}:
            return []
        found = await self.recall.search(owner, wanted.query)
        return [said_object(one) for one in found if one.kind in wanted.kinds]

    async def _learned(self, owner: Owner, wanted: Wanted) -> list[Object]:
        kinds = set(wanted.kinds) & {KIND, "episode"}
        return await self.memories.all(owner, Listing(kinds, wanted.states)) if kinds else []

    async def _known(self, owner: Owner) -> Mapping[str, bytes]:
        """The terms of facts in force, by their ids: these are kept."""
        card = (await self.memories.book.load(shelf_of(owner))).card
        return {id: terms for (id, _), terms in card.terms_by_line().items()}

    def _scored(
        self,
        said: Sequence[Object],
        learned: Sequence[Object],
        known: Mapping[str, bytes],
        wanted: Wanted,
    ) -> list[Object]:
        """With scores from 0 to 1 that can be compared; nothing learned without a word of it."""
        now = self.memories.book.clock()
        every = [*said, *learned]
        words = Words.of(known.get(str(each["id"])) or _terms(each) for each in every)
        shares = words.likeness(read(wanted.query, (), now)).tolist()
        best = max((_number(each, "score") for each in said), default=0.0) or 1.0
        scored = [
            _with_score(
                each, lexical=WORDS * share, recall=(1 - WORDS) * _number(each, "score") / best
            )
            for each, share in zip(said, shares, strict=False)
        ]
        scored += [
            _with_score(each, lexical=share)
            for each, share in zip(learned, shares[len(said) :], strict=True)
            if share > 0
        ]
        return scored


def _with_score(each: Object, **parts: float) -> Object:
    return {**each, "score": sum(parts.values()), "parts": parts}


def _terms(each: Object) -> bytes:
    return terms_in(str(each["text"]), _number(each, "created_at"))


def _number(each: Object, name: str) -> float:
    value = each[name]
    return float(value) if isinstance(value, int | float) else 0.0


def _worse(each: Object) -> tuple[float, bool]:
    """By score; what was learned before what was only said."""
    return -_number(each, "score"), each["kind"] not in (KIND, "episode")


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


def _names(
    fields: Fields, name: str, known: Collection[str], default: Collection[str]
) -> frozenset[str]:
    try:
        names = msgspec.json.decode(fields.get(name, b"null"), type=list[str] | None)
    except msgspec.DecodeError:
        names = [""]
    if names is None:
        return frozenset(default)
    if not set(names) <= set(known):
        raise invalid(f"{name} must be a list of: {', '.join(known)}.", name)
    return frozenset(names)
