"""A cache of indexes that this process has read or written: rows of passages, postings of terms.

A small index whose owner sends a third query soon is read as a whole.  From then on a lookup needs
only the index's revision and state, which the store has often returned already.

A row never changes, and its number is not reused while its index exists.  If a session is dropped
its name is gone, and the index has another revision.  So cached names and postings are valid as
long as only this process has written to the index since they were read, which each lookup verifies
by revision and state.

The cache has numbers, names of sessions and terms, but no texts.  Terms are hashes of words that
were said or searched, so they are cleared when anything is erased: see ``clear_terms``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from proxy.recall.index import (
    Index,
    IndexBatch,
    IndexLookup,
    Owner,
    Postings,
    Rows,
    WholeIndex,
)
from proxy.recall.indexing.state import State, read_state
from proxy.recall.ranking.match import NO_PASSAGES, Numbers
from proxy.recall.ranking.packing import ROW, Array, read_rows
from proxy.recall.term_cache import NEWEST, AllTerms, SomeTerms

T = TypeVar("T")

MAX_ROWS = 200_000
"""Rows of all owners together, 21 bytes each; an owner with more is not cached."""

MAX_BYTES = 16_000_000
"""Bytes of the terms and postings of all owners together."""

SMALL_INDEX = 4_000
"""Passages; all postings of a smaller index may be cached.  Less than ``NEWEST``."""

MAX_TERMS = 16_000
"""Terms of such an index: some milliseconds to read."""

MIN_MISSES = 2
"""Lookups with terms that were not cached before all are read: that takes as long as four such
lookups, and many an owner asks once or twice."""

_OWNER_BYTES = 1_500
"""Approximate memory of an owner without rows and postings."""

_PASSAGE_BYTES = 200
"""Approximate memory of the terms and postings of a passage if all are cached."""


class _CachedIndex:
    """The cached part of one index.

    ``revision`` and ``state`` are the index's when it was last read or written;
    ``is_sole_writer``: no other process had written to it since the time before.  ``last_lookup``
    is the number of the last lookup of terms, ``misses`` counts those that needed the store.
    """

    def __init__(self, lookup: IndexLookup, state: State) -> None:
        self.revision, self.state_data, self.state = lookup.revision, lookup.state, state
        self.is_sole_writer = True
        self.names: dict[int, str] = {}
        self.terms: SomeTerms | AllTerms = SomeTerms()
        self.last_lookup = self.misses = 0
        self.too_large = False
        self._rows: Array = np.zeros(0, ROW)
        self._is_known: NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def size(self) -> int:
        """The number of allocated rows."""
        return self._rows.size

    @property
    def size_bytes(self) -> int:
        return _OWNER_BYTES + self.terms.size_bytes

    def is_current(self, lookup: IndexLookup) -> bool:
        """Whether the index has not changed since it was cached."""
        return self.revision == lookup.revision and self.state_data == lookup.state

    def cache_all(self, terms: AllTerms) -> None:
        """Cache these as all terms of the index."""
        self.terms = terms

    def clear(self) -> None:
        """Drop the postings."""
        self.terms = SomeTerms()

    def add(self, batch: IndexBatch) -> None:
        """Apply a batch that this process has written."""
        self.revision += 1
        self.state_data, self.state = batch.state, read_state(batch.state) or self.state
        if self.state.passages > SMALL_INDEX and isinstance(self.terms, AllTerms):
            self.clear()
        self.terms.add(batch.postings)

    def missing(self, numbers: Numbers) -> Numbers:
        there = self._is_known.take(numbers)
        return NO_PASSAGES if there.all() else numbers[~there]

    def put(self, numbers: Numbers | slice, rows: Array) -> None:
        self._rows[numbers], self._is_known[numbers] = rows, True

    def rows_of(self, numbers: Numbers) -> bytes:
        return self._rows.take(numbers).tobytes()  # many times faster than by index

    def enlarge(self, size: int) -> None:
        """Allocate at least ``size`` rows, with an eighth in reserve."""
        if size > self._rows.size:
            more = size + size // 8 - self._rows.size
            self._rows = np.concatenate([self._rows, np.zeros(more, ROW)])
            self._is_known = np.concatenate([self._is_known, np.zeros(more, np.bool_)])


class LookupWithState(NamedTuple):
    """A lookup in an index, and the index's state: None if that has another format."""

    lookup: IndexLookup
    state: State | None


class IndexCache:
    """Caches the indexes of the owners with the latest queries; reads the rest from ``index``."""

    def __init__(self, index: Index, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES) -> None:
        self._index, self._max_rows, self._max_bytes = index, max_rows, max_bytes
        self._owners: OrderedDict[Owner, _CachedIndex] = OrderedDict()
        self._rows = self._bytes = self._lookups = 0

    def __repr__(self) -> str:
        terms = sum([len(cached.terms) for cached in self._owners.values()])
        sizes = f"rows: {self._rows}, terms: {terms}, bytes: {self._bytes}"
        return f"<IndexCache [owners: {len(self._owners)}, {sizes}]>"

    async def lookup(
        self,
        owner: Owner,
        terms: Sequence[bytes],
        session: str = "",
        recent: IndexLookup | None = None,
    ) -> LookupWithState:
        """Look up terms in an index; only the postings that are not cached are read.

        ``recent`` is a lookup of the same session made just before: if all terms are cached no
        other is needed.  Takes two round trips if the cache is out of date, or an index is read as
        a whole.  Raises StoreError.
        """
        cached = self._owners.get(owner)
        if terms and recent is None:
            self._lookups += 1
        if cached is None or not cached.is_sole_writer:
            return self._cache(owner, terms, await self._read(owner, terms, session))
        found = cached.terms.find(terms)
        if None in found and recent is None and self._is_worth_reading_whole(cached):
            whole = await self._index.whole_index(owner, MAX_TERMS, session)
            if whole is not None:
                return self._cache_whole(owner, terms, whole)
            cached.too_large, found = True, cached.terms.find(terms)
        return await self._read_missing(owner, cached, terms, found, session, recent)

    async def _read_missing(
        self,
        owner: Owner,
        cached: _CachedIndex,
        terms: Sequence[bytes],
        found: Sequence[Postings | None],
        session: str,
        recent: IndexLookup | None,
    ) -> LookupWithState:
        """Look up the terms that were not ``found`` in the cache, or all of them if the cache turns
        out to be outdated."""
        cached_terms, revision = cached.terms, cached.revision
        missing = [term for term, postings in zip(terms, found, strict=True) if postings is None]
        lookup = await self._read(owner, missing, session) if missing or recent is None else recent
        # An erasure may have cleared the terms meanwhile.
        if not (
            cached.is_current(lookup)
            and self._owners.get(owner) is cached
            and cached.terms is cached_terms
        ):
            if len(missing) < len(terms):
                lookup = await self._read(owner, terms, session)
            return self._cache(owner, terms, lookup)
        read = dict(zip(missing, lookup.postings, strict=True)) if missing else {}
        found = found if cached.revision == revision else cached_terms.find(terms)
        postings = [each or read[term] for term, each in zip(terms, found, strict=True)]
        return self._cache_missing(owner, cached, read, replace(lookup, postings=tuple(postings)))

    async def rows(self, owner: Owner, numbers: Numbers, state: State, revision: int) -> Rows:
        """Rows by number, and the names of their sessions, of an index that was of this revision
        and state.  Raises StoreError."""
        cached = self._owners.get(owner)
        if (
            cached is None
            or cached.state.created_at != state.created_at
            or cached.revision < revision
        ):
            return await self._index.rows(owner, numbers.tolist())
        self._owners.move_to_end(owner)
        self._apply(cached, cached.enlarge, int(numbers.max(initial=0)) + 1)
        missing = cached.missing(numbers[numbers < state.passages])
        if missing.size:
            found = await self._index.rows(owner, missing.tolist())
            cached.put(missing, read_rows(found.data))
            cached.names.update(found.sessions)
        return Rows(cached.rows_of(numbers), cached.names)

    def on_write(self, owner: Owner, batch: IndexBatch) -> None:
        """Update the cache after this process has written a batch to an index."""
        cached = self._owners.get(owner) if batch.revision else self._cache_new(owner)
        if cached is None or cached.revision != batch.revision:
            return
        self._owners.move_to_end(owner)
        self._apply(cached, cached.add, batch)
        if not batch.rows:
            return
        rows = read_rows(batch.rows)
        self._apply(cached, cached.enlarge, batch.first + rows.size)
        cached.put(slice(batch.first, batch.first + rows.size), rows)
        cached.names.update(
            (number, batch.session) for number in set(rows["session"].tolist()) - {0}
        )

    def _cache_new(self, owner: Owner) -> _CachedIndex:
        """Cache an index that this process has made, with all of its terms."""
        self._evict(owner)
        cached = self._owners[owner] = _CachedIndex(IndexLookup(), State())
        cached.cache_all(AllTerms())
        self._bytes += cached.size_bytes
        return cached

    def clear(self) -> None:
        self._owners.clear()
        self._rows = self._bytes = 0

    def clear_terms(self, tenant: str) -> None:
        """Drop the terms of a tenant's indexes."""
        for owner, cached in self._owners.items():
            if owner.tenant == tenant:
                cached.clear()
        self._bytes = sum([cached.size_bytes for cached in self._owners.values()])

    async def _read(self, owner: Owner, terms: Sequence[bytes], session: str) -> IndexLookup:
        return await self._index.lookup(owner, terms, NEWEST, session=session)

    def _is_worth_reading_whole(self, cached: _CachedIndex) -> bool:
        """Whether to read all terms of an index: if it is small, its owner has sent several
        queries, and as much would fit into the cache for each lookup since the last of these."""
        lookups_since, cached.last_lookup = self._lookups - cached.last_lookup, self._lookups
        cached.misses += 1
        passages = cached.state.passages
        fit = (
            passages <= SMALL_INDEX and lookups_since * passages * _PASSAGE_BYTES <= self._max_bytes
        )
        return fit and cached.misses >= MIN_MISSES and not cached.too_large

    def _cache_whole(
        self, owner: Owner, terms: Sequence[bytes], whole: WholeIndex
    ) -> LookupWithState:
        """Cache all terms; returns the lookup of those asked for."""
        every = AllTerms(whole.terms, whole.sizes, whole.postings)
        result = self._cache(owner, terms, replace(whole.head, postings=every.find(terms)))
        cached = self._owners.get(owner)
        if cached is not None and cached.state.passages <= SMALL_INDEX:
            self._apply(cached, cached.cache_all, every)
        return result

    def _cache_missing(
        self,
        owner: Owner,
        cached: _CachedIndex,
        read: Mapping[bytes, Postings],
        lookup: IndexLookup,
    ) -> LookupWithState:
        """Cache the terms that were read in addition to cached ones; returns the lookup."""
        self._owners.move_to_end(owner)
        if read:
            self._apply(cached, cached.terms.put, read)
        return LookupWithState(lookup, cached.state)

    def _cache(self, owner: Owner, terms: Sequence[bytes], lookup: IndexLookup) -> LookupWithState:
        """Cache a lookup that was read as a whole, and return it."""
        state, cached = read_state(lookup.state), self._owners.get(owner)
        if state is None or not lookup.revision or state.passages > self._max_rows:
            self._evict(owner)
            return LookupWithState(lookup, state)
        if cached is None or not cached.is_current(lookup):
            self._evict(owner)
            cached = self._new_version(cached, lookup, state)
            self._owners[owner] = cached
            self._bytes += cached.size_bytes
        else:
            cached.is_sole_writer = True
        self._owners.move_to_end(owner)
        self._apply(cached, cached.terms.put, dict(zip(terms, lookup.postings, strict=True)))
        return LookupWithState(lookup, state)

    def _new_version(
        self, before: _CachedIndex | None, lookup: IndexLookup, state: State
    ) -> _CachedIndex:
        """An index that was read anew; ``before``: as it was cached."""
        cached = _CachedIndex(lookup, state)
        cached.last_lookup = self._lookups
        if before is not None:
            cached.is_sole_writer, cached.misses = False, before.misses
        return cached

    def _evict(self, owner: Owner) -> None:
        cached = self._owners.pop(owner, None)
        if cached is not None:
            self._rows -= cached.size
            self._bytes -= cached.size_bytes

    def _apply(self, cached: _CachedIndex, change: Callable[[T], None], to: T) -> None:
        """Apply a change to a cached index, and evict others if the cache is then too large."""
        rows, bytes_ = cached.size, cached.size_bytes
        change(to)
        self._rows += cached.size - rows
        self._bytes += cached.size_bytes - bytes_
        while len(self._owners) > 1 and self._is_full:
            self._evict(next(iter(self._owners)))
        if self._bytes > self._max_bytes:
            cached.clear()
            self._bytes = cached.size_bytes

    @property
    def _is_full(self) -> bool:
        return self._rows > self._max_rows or self._bytes > self._max_bytes
