"""A cache of the heads of indexes in the SQLite file: revision and state of each, and marks.

Entries are valid within an era (see ``changes``); what this process writes updates them.  Indexes
that expire are not cached.
"""

from __future__ import annotations

from cachetools import LRUCache
from msgspec.structs import replace

from proxy.recall.index import IndexBatch, IndexLookup, IndexMark, Owner
from proxy.stores.sqlite.caches.changes import Era

MAX_OWNERS = 2_000
"""Owners whose index heads are cached: up to some kilobytes each."""

MAX_MARKS = 64
"""Sessions of an owner whose marks are cached."""


class _Head:
    """The revision and state of an index, and the marks of sessions that were looked up."""

    def __init__(self, era: Era, lookup: IndexLookup) -> None:
        self.era, self.lookup = era, lookup
        self.marks: dict[str, IndexMark | None] = {}


class IndexHeadCache:
    """Lookups without postings, of the owners with the latest requests."""

    def __init__(self, max_owners: int = MAX_OWNERS) -> None:
        self._heads: LRUCache[Owner, _Head] = LRUCache(max_owners)
        self.writes = 0
        """Changes with each write: what was read before may be outdated."""

    def __repr__(self) -> str:
        return f"<IndexHeadCache [{len(self._heads)}]>"

    def get(self, owner: Owner, session: str, era: Era | None) -> IndexLookup | None:
        head = self._heads.get(owner)
        if head is None or head.era is not era or session not in head.marks:
            return None
        return replace(head.lookup, mark=head.marks[session])

    def put(self, owner: Owner, session: str, lookup: IndexLookup, era: Era) -> None:
        """Cache what was read in this era, unless a newer revision is cached."""
        head = self._heads.get(owner)
        if head is not None and head.era is era and head.lookup.revision > lookup.revision:
            return
        if head is None or head.era is not era or head.lookup.revision < lookup.revision:
            head = self._heads[owner] = _Head(era, replace(lookup, postings=(), mark=None))
        if len(head.marks) >= MAX_MARKS:
            head.marks.clear()
        head.marks[session] = lookup.mark

    def on_write(self, owner: Owner, batch: IndexBatch | None) -> None:
        """Update the cache after this process has written a batch; None: it may have."""
        self.writes += 1
        head = self._heads.get(owner)
        if head is None:
            return
        if batch is None or batch.ttl or head.lookup.revision != batch.revision:
            del self._heads[owner]
            return
        head.lookup = replace(head.lookup, revision=batch.revision + 1, state=batch.state)
        if batch.mark is not None:
            head.marks[batch.session] = batch.mark

    def clear(self) -> None:
        self._heads.clear()
