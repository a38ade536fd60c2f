"""What a process knows of the indexes in its SQLite file: what each says of itself, and marks.

It is true as long as an era lasts (see ``changes``), but for what the process itself writes, which
tells of it.  An index that expires by itself is not kept.
"""

from __future__ import annotations

from cachetools import LRUCache
from msgspec.structs import replace

from proxy.recall.index import IndexBatch, IndexLookup, IndexMark, Owner
from proxy.stores.sqlite.known.changes import Era

MAX_OWNERS = 2_000
"""Whose indexes are kept: what they know of themselves, up to some kilobytes each."""

MAX_MARKS = 64
"""Sessions of an owner whose places in the index are kept."""


class _Head:
    """What an index says of itself, and the marks of sessions that were asked for."""

    def __init__(self, era: Era, lookup: IndexLookup) -> None:
        self.era, self.lookup = era, lookup
        self.marks: dict[str, IndexMark | None] = {}


class IndexHeadCache:
    """Looks at the indexes of those who asked last, without postings."""

    def __init__(self, most: int = MAX_OWNERS) -> None:
        self._heads: LRUCache[Owner, _Head] = LRUCache(most)
        self.writes = 0
        """Changes with each write: what was read before may not be what is there."""

    def __repr__(self) -> str:
        return f"<IndexHeadCache [{len(self._heads)}]>"

    def of(self, owner: Owner, session: str, era: Era | None) -> IndexLookup | None:
        head = self._heads.get(owner)
        if head is None or head.era is not era or session not in head.marks:
            return None
        return replace(head.lookup, mark=head.marks[session])

    def put(self, owner: Owner, session: str, lookup: IndexLookup, era: Era) -> None:
        """Keep what was read in this era, unless more has been written since."""
        head = self._heads.get(owner)
        if head is not None and head.era is era and head.lookup.revision > lookup.revision:
            return
        if head is None or head.era is not era or head.lookup.revision < lookup.revision:
            head = self._heads[owner] = _Head(era, replace(lookup, postings=(), mark=None))
        if len(head.marks) >= MAX_MARKS:
            head.marks.clear()
        head.marks[session] = lookup.mark

    def written(self, owner: Owner, batch: IndexBatch | None) -> None:
        """This process has added a batch to an index; None: it may have."""
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

    def forget(self) -> None:
        self._heads.clear()
