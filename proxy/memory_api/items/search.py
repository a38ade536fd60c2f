"""Searching among items: by place, or for a query the best first.

Values may be large and many: they are read page by page, on a thread.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

import msgspec

from proxy.chat.jsontext import decode_shallow
from proxy.memory.items import REQUESTS, Item, ItemOwner, Items, Namespace, Place, matches_filter
from proxy.memory_api.threads import Threads
from proxy.recall.query import question
from proxy.recall.query.question import Question
from proxy.recall.query.words import Analysis
from proxy.recall.ranking.rank_items import question_terms_in, rank

MAX_RANKED = 5000
"""Items that are looked at for a query: the first ones of the prefix."""

MAX_READ_BYTES = 16_000_000
"""Bytes of their values: to read so many for words takes a good half of a second."""

AT_ONCE = 100
"""Items that are read together."""

BEHIND_REQUESTS = Place((REQUESTS,), chr(0x10FFFF))
"""Behind all records of requests, whose keys are ASCII."""

Scored = tuple[Item, float | None]


class ItemQuery(msgspec.Struct, frozen=True):
    """What a search asks for.  ``query`` is "" for none."""

    owner: ItemOwner
    prefix: Namespace
    filter: Mapping[str, object] = msgspec.field(default_factory=dict)
    query: str = ""
    offset: int = 0
    limit: int = 10


class ItemSearch:
    """``threads`` are for what is read of values, which may be much."""

    def __init__(self, items: Items, threads: Threads) -> None:
        self._items, self._threads = items, threads

    async def find(self, wanted: ItemQuery) -> list[Scored]:
        """Those from ``offset`` on, with a score if there is a query; one more than ``limit`` tells
        that there are more.  Raises StoreError.
        """
        return await (self._best(wanted) if wanted.query else self._first(wanted))

    async def _first(self, wanted: ItemQuery) -> list[Scored]:
        found: list[Scored] = []
        passed = 0
        async for page in self._pages(wanted):
            fitting = await self._threads.run(partial(_fitting, page, wanted.filter))
            found += [(item, None) for item in fitting[max(0, wanted.offset - passed) :]]
            passed += len(fitting)
            if len(found) > wanted.limit:
                break
        return found[: wanted.limit + 1]

    async def _best(self, wanted: ItemQuery) -> list[Scored]:
        asked = question.read_question(wanted.query, (), time.time())
        places: list[Place] = []
        read: list[Analysis] = []
        looked = size = 0
        async for page in self._pages(wanted):
            fitting = await self._threads.run(partial(_fitting, page, wanted.filter))
            places += [item.place for item in fitting]
            read += await self._threads.run(partial(_read, fitting, asked))
            looked += len(page)
            size += sum([len(item.value) for item in page])
            if looked >= MAX_RANKED or size >= MAX_READ_BYTES:
                break
        ranked = await self._threads.run(partial(rank, asked, read))
        best = ranked[wanted.offset : wanted.offset + wanted.limit + 1]
        items = await self._items.items_at(wanted.owner, [places[n] for n, _ in best])
        return [(items[places[n]], score) for n, score in best if places[n] in items]

    async def _pages(self, wanted: ItemQuery) -> AsyncIterator[Sequence[Item]]:
        """Items below the prefix.  There may be many records of requests: none is read in vain."""
        after: Place | None = None
        while True:
            page = await self._items.items(wanted.owner, wanted.prefix, after, AT_ONCE)
            yield [item for item in page.items if is_shown(item.namespace, wanted.prefix)]
            if page.after is None:
                return
            after = _place_after(page.items[-1].place, wanted.prefix)


def _fitting(items: Sequence[Item], wanted: Mapping[str, object]) -> list[Item]:
    """The items that a filter lets through."""
    return [
        item
        for item in items
        if not wanted or matches_filter(decode_shallow(bytes(item.value)), wanted)
    ]


def _read(items: Sequence[Item], asked: Question) -> list[Analysis]:
    """What the items have of the words that are looked for."""
    return [question_terms_in(asked, decode_shallow(bytes(item.value))) for item in items]


def is_shown(namespace: Namespace, prefix: Namespace) -> bool:
    """Is it shown below a prefix?  Records of requests are, only where the prefix names them."""
    return namespace[:1] != (REQUESTS,) or prefix[:1] == (REQUESTS,)


def _place_after(place: Place, prefix: Namespace) -> Place:
    """The place to continue reading after."""
    return place if is_shown(place.namespace, prefix) else max(place, BEHIND_REQUESTS)
