"""Searches items, in order of place or for a query by score, and lists namespaces in order.

Both may be many, and values large: they are read page by page from the prefix on, only as far as
needed, and values are parsed in a thread.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

import msgspec

from proxy.chat.jsontext import decode_shallow
from proxy.memory.items import (
    REQUESTS,
    Item,
    ItemOwner,
    Items,
    Namespace,
    Place,
    matches_filter,
    namespace_pages,
)
from proxy.memory_api.items.params import MAX_LABELS, literal, matches
from proxy.memory_api.threads import Threads
from proxy.recall.query import question
from proxy.recall.query.question import Question
from proxy.recall.query.words import Analysis
from proxy.recall.ranking.rank_items import question_terms_in, rank

MAX_RANKED = 5000
"""Items that are ranked for a query: the first ones of the prefix."""

MAX_READ_BYTES = 16_000_000
"""Bytes of values that are read for a query, which takes over half a second."""

AT_ONCE = 100
"""Items that are read together."""

BEHIND_REQUESTS = Place((REQUESTS,), chr(0x10FFFF))
"""A place after all records of requests, whose keys are ASCII."""

Scored = tuple[Item, float | None]


class ItemQuery(msgspec.Struct, frozen=True):
    """A search request.  ``query`` is "" for none."""

    owner: ItemOwner
    prefix: Namespace
    filter: Mapping[str, object] = msgspec.field(default_factory=dict)
    query: str = ""
    offset: int = 0
    limit: int = 10


class ItemSearch:
    """Searches items; values are parsed in ``threads``."""

    def __init__(self, items: Items, threads: Threads) -> None:
        self._items, self._threads = items, threads

    async def find(self, query: ItemQuery) -> list[Scored]:
        """The items from ``offset`` on, ``limit`` and one more if there are more; with a score if
        there is a query.  Raises StoreError.
        """
        return await (self._best(query) if query.query else self._first(query))

    async def _first(self, query: ItemQuery) -> list[Scored]:
        matching: list[Scored] = []
        skipped = 0
        async for page in self._pages(query):
            fitting = await self._threads.run(partial(_fitting, page, query.filter))
            matching += [(item, None) for item in fitting[max(0, query.offset - skipped) :]]
            skipped += len(fitting)
            if len(matching) > query.limit:
                break
        return matching[: query.limit + 1]

    async def _best(self, query: ItemQuery) -> list[Scored]:
        question_read = question.read_question(query.query, (), time.time())
        places: list[Place] = []
        read: list[Analysis] = []
        scanned = size = 0
        async for page in self._pages(query):
            fitting = await self._threads.run(partial(_fitting, page, query.filter))
            places += [item.place for item in fitting]
            read += await self._threads.run(partial(_read, fitting, question_read))
            scanned += len(page)
            size += sum([len(item.value) for item in page])
            if scanned >= MAX_RANKED or size >= MAX_READ_BYTES:
                break
        ranked = await self._threads.run(partial(rank, question_read, read))
        best = ranked[query.offset : query.offset + query.limit + 1]
        items = await self._items.items_at(query.owner, [places[n] for n, _ in best])
        return [(items[places[n]], score) for n, score in best if places[n] in items]

    async def _pages(self, query: ItemQuery) -> AsyncIterator[Sequence[Item]]:
        """Items below the prefix, page by page.  Hidden records of requests, which may be many, are
        skipped without reading them."""
        after: Place | None = None
        while True:
            page = await self._items.items(query.owner, query.prefix, after, AT_ONCE)
            yield [item for item in page.items if is_shown(item.namespace, query.prefix)]
            if page.after is None:
                return
            after = _place_after(page.items[-1].place, query.prefix)


def _fitting(items: Sequence[Item], query: Mapping[str, object]) -> list[Item]:
    return [
        item
        for item in items
        if not query or matches_filter(decode_shallow(bytes(item.value)), query)
    ]


def _read(items: Sequence[Item], question_read: Question) -> list[Analysis]:
    """The terms of the question in each item."""
    return [question_terms_in(question_read, decode_shallow(bytes(item.value))) for item in items]


def is_shown(namespace: Namespace, prefix: Namespace) -> bool:
    """Whether a namespace is listed below a prefix: records of requests only if it names them."""
    return namespace[:1] != (REQUESTS,) or prefix[:1] == (REQUESTS,)


def _place_after(place: Place, prefix: Namespace) -> Place:
    """The place to continue reading after."""
    return place if is_shown(place.namespace, prefix) else max(place, BEHIND_REQUESTS)


MAX_SCANNED = 100_000
"""Namespaces that one request reads: the first ones of the prefix."""


class NamespaceQuery(msgspec.Struct, frozen=True):
    """A request for namespaces."""

    owner: ItemOwner
    prefix: Namespace = ()
    suffix: Namespace = ()
    depth: int = MAX_LABELS
    offset: int = 0
    limit: int = 100


async def find_namespaces(items: Items, query: NamespaceQuery) -> list[Namespace]:
    """The namespaces from ``offset`` on: ``limit``, and one more if there are more.  Raises
    StoreError."""
    namespaces: list[Namespace] = []
    end, scanned = query.offset + query.limit + 1, 0
    async for page in namespace_pages(items, query.owner, literal(query.prefix)):
        matching = (each[: query.depth] for each in page if _fits(each, query))
        namespaces += dict.fromkeys(each for each in matching if each not in namespaces[-1:])
        scanned += len(page)
        if len(namespaces) >= end or scanned >= MAX_SCANNED:
            break
    return namespaces[query.offset : end]


def _fits(namespace: Namespace, query: NamespaceQuery) -> bool:
    shown = is_shown(namespace, query.prefix)
    return shown and matches(namespace, query.prefix, query.suffix)
