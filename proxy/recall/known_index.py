"""A cache of indexes that this process has read or written: rows of passages, postings of terms.

A small index whose owner sends another query soon is read as a whole: from then on a lookup needs
only the index's revision and state, which the store has often returned already.

A row never changes, and its number is not reused while its index lasts.  A session can be dropped:
then its name is gone, and the index has another revision.  So cached names and postings are valid
as long as this process wrote every revision since they were read, which each lookup verifies by
revision and state.

Contains numbers, names of sessions and terms; no text.  Terms are hashes of words that were said or
searched, so they are cleared when anything is erased: see ``clear_terms_of``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from proxy.recall.index import (
    NO_POSTINGS,
    Index,
    IndexBatch,
    IndexLookup,
    Owner,
    Postings,
    Rows,
    WholeIndex,
)
from proxy.recall.indexing.state import State, read_state
from proxy.recall.known_terms import NEWEST, AllTerms, SomeTerms
from proxy.recall.ranking.match import NO_PASSAGES, Numbers
from proxy.recall.ranking.packing import ROW, Array, read_rows

T = TypeVar("T")

MAX_ROWS = 200_000
"""Rows of all owners together, 21 bytes each; of an owner who has more nothing is kept."""

MAX_BYTES = 16_000_000
"""Of the terms and postings of all owners together."""

SMALL = 4_000
"""Passages of an index of which all postings are kept; below ``NEWEST``."""

MAX_TERMS = 16_000
"""Terms of such an index: some milliseconds to read."""

_OWNER = 1_500
"""Bytes that an owner takes beside rows and postings, about."""

_PASSAGE = 200
"""Bytes that a passage's postings and terms take where all are kept, about."""


class _Known:
    """The cached part of one index.

    ``revision`` and ``state`` are the index's when it was last read or written;
    ``is_sole_writer``: no other process had written to it since the time before.  ``last_lookup``
    is the number of the last lookup of terms.
    """

    def __init__(self, lookup: IndexLookup, state: State) -> None:
        self.revision, self.state_data, self.state = lookup.revision, lookup.state, state
        self.is_sole_writer = True
        self.names: dict[int, str] = {}
        self.terms: SomeTerms | AllTerms = SomeTerms()
        self.last_lookup = 0
        self.too_large = False
        self._rows: Array = np.zeros(0, ROW)
        self._is_known: NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def size(self) -> int:
        """The number of allocated rows."""
        return self._rows.size

    @property
    def bytes_held(self) -> int:
        return _OWNER + self.terms.bytes_held

    def is_current(self, lookup: IndexLookup) -> bool:
        """Whether the index has not changed since it was cached."""
        return self.revision == lookup.revision and self.state_data == lookup.state

    def keep_all(self, postings: Mapping[bytes, bytes]) -> None:
        """Cache these as all terms of the index."""
        self.terms = AllTerms(postings)

    def clear(self) -> None:
        """Drop the postings."""
        self.terms = SomeTerms()

    def add(self, batch: IndexBatch) -> None:
        """Apply a batch that this process has written."""
        self.revision += 1
        self.state_data, self.state = batch.state, read_state(batch.state) or self.state
        if self.state.passages > SMALL and isinstance(self.terms, AllTerms):
            self.clear()
        self.terms.add(batch.postings)

    def lacks(self, numbers: Numbers) -> Numbers:
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


_ALL: WeakSet[KnownIndex] = WeakSet()


def clear_terms_of(tenant: str) -> None:
    """Clear the cached terms of a tenant in all caches: they reveal what was said."""
    for each in _ALL:
        each.forget_terms(tenant)


class KnownIndex:
    """Caches the indexes of the owners with the latest queries; reads the rest from ``index``."""

    def __init__(
        self, index: Index, most_rows: int = MAX_ROWS, most_bytes: int = MAX_BYTES
    ) -> None:
        self._index, self._most_rows, self._most_bytes = index, most_rows, most_bytes
        self._owners: OrderedDict[Owner, _Known] = OrderedDict()
        self._rows = self._bytes = self._looks = 0
        _ALL.add(self)

    def __repr__(self) -> str:
        terms = sum([len(known.terms) for known in self._owners.values()])
        sizes = f"rows: {self._rows}, terms: {terms}, bytes: {self._bytes}"
        return f"<KnownIndex [owners: {len(self._owners)}, {sizes}]>"

    async def lookup(
        self,
        owner: Owner,
        terms: Sequence[bytes],
        session: str = "",
        seen: IndexLookup | None = None,
    ) -> LookupWithState:
        """Look up terms in an index; only the postings that are not cached are read.

        ``seen`` is a lookup of the same session made just before: if all terms are cached no other
        is needed.  Takes two round trips if the cache is out of date, or an index is read as a
        whole.  Raises StoreError.
        """
        known = self._owners.get(owner)
        if terms and seen is None:
            self._looks += 1
        if known is None or not known.is_sole_writer:
            return self._remember(owner, terms, await self._look(owner, terms, session))
        found = known.terms.find(terms)
        if None in found and seen is None and self._is_worth_reading_whole(known):
            whole = await self._index.whole_index(owner, MAX_TERMS, session)
            if whole is not None:
                return self._remember_whole(owner, terms, whole)
            known.too_large, found = True, known.terms.find(terms)
        return await self._look_for_missing(owner, known, terms, found, session, seen)

    async def _look_for_missing(
        self,
        owner: Owner,
        known: _Known,
        terms: Sequence[bytes],
        found: Sequence[Postings | None],
        session: str,
        seen: IndexLookup | None,
    ) -> LookupWithState:
        """Look up the terms that were not ``found`` in the cache; all of them if the cache turns
        out to be out of date."""
        kept, revision = known.terms, known.revision
        missing = [term for term, postings in zip(terms, found, strict=True) if postings is None]
        lookup = await self._look(owner, missing, session) if missing or seen is None else seen
        # Somebody may have erased something meanwhile, and all terms are forgotten.
        if not (
            known.is_current(lookup) and self._owners.get(owner) is known and known.terms is kept
        ):
            if len(missing) < len(terms):
                lookup = await self._look(owner, terms, session)
            return self._remember(owner, terms, lookup)
        read = dict(zip(missing, lookup.postings, strict=True)) if missing else {}
        found = found if known.revision == revision else kept.find(terms)
        postings = [each or read[term] for term, each in zip(terms, found, strict=True)]
        return self._with_known(owner, known, read, replace(lookup, postings=tuple(postings)))

    async def rows(self, owner: Owner, numbers: Numbers, state: State, revision: int) -> Rows:
        """Rows by number, and the names of their sessions, of an index that was of this revision
        and state.  Raises StoreError."""
        known = self._owners.get(owner)
        if known is None or known.state.born != state.born or known.revision < revision:
            return await self._index.rows(owner, numbers.tolist())
        self._owners.move_to_end(owner)
        self._resize(known, known.enlarge, int(numbers.max(initial=0)) + 1)
        missing = known.lacks(numbers[numbers < state.passages])
        if missing.size:
            found = await self._index.rows(owner, missing.tolist())
            known.put(missing, read_rows(found.data))
            known.names.update(found.sessions)
        return Rows(known.rows_of(numbers), known.names)

    def on_write(self, owner: Owner, batch: IndexBatch) -> None:
        """To be called when this process has written a batch to an index."""
        known = self._owners.get(owner) if batch.revision else self._start(owner)
        if known is None or known.revision != batch.revision:
            return
        self._owners.move_to_end(owner)
        self._resize(known, known.add, batch)
        if not batch.rows:
            return
        rows = read_rows(batch.rows)
        self._resize(known, known.enlarge, batch.first + rows.size)
        known.put(slice(batch.first, batch.first + rows.size), rows)
        known.names.update(
            (number, batch.session) for number in set(rows["session"].tolist()) - {0}
        )

    def _start(self, owner: Owner) -> _Known:
        """Cache an index that this process has made: all of its terms will be known."""
        self._drop(owner)
        known = self._owners[owner] = _Known(IndexLookup(), State())
        known.keep_all({})
        self._bytes += known.bytes_held
        return known

    def forget(self) -> None:
        self._owners.clear()
        self._rows = self._bytes = 0

    def forget_terms(self, tenant: str) -> None:
        for owner, known in self._owners.items():
            if owner.tenant == tenant:
                known.clear()
        self._bytes = sum([known.bytes_held for known in self._owners.values()])

    async def _look(self, owner: Owner, terms: Sequence[bytes], session: str) -> IndexLookup:
        return await self._index.lookup(owner, terms, NEWEST, session=session)

    def _is_worth_reading_whole(self, known: _Known) -> bool:
        """Whether to read all terms of a small index: if as many fit for each owner that was
        queried since this one was last."""
        between, known.last_lookup = self._looks - known.last_lookup, self._looks
        passages = known.state.passages
        fit = passages <= SMALL and between * passages * _PASSAGE <= self._most_bytes
        return fit and not known.too_large

    def _remember_whole(
        self, owner: Owner, terms: Sequence[bytes], whole: WholeIndex
    ) -> LookupWithState:
        """Cache all terms; returns the lookup of those asked for."""
        found = dict(zip(whole.terms, whole.lookup.postings, strict=True))
        lookup = replace(
            whole.lookup, postings=tuple([found.get(term, NO_POSTINGS) for term in terms])
        )
        seen = self._remember(owner, terms, lookup)
        known = self._owners.get(owner)
        if known is not None and known.state.passages <= SMALL:
            postings = {term: each.newest for term, each in found.items()}
            self._resize(known, known.keep_all, postings)
        return seen

    def _with_known(
        self, owner: Owner, known: _Known, read: Mapping[bytes, Postings], lookup: IndexLookup
    ) -> LookupWithState:
        """Cache the terms that were read in addition to cached ones; returns the lookup."""
        self._owners.move_to_end(owner)
        if read:
            self._resize(known, known.terms.learn, read)
        return LookupWithState(lookup, known.state)

    def _remember(
        self, owner: Owner, terms: Sequence[bytes], lookup: IndexLookup
    ) -> LookupWithState:
        """Cache a lookup of which nothing was cached, and return it."""
        state, known = read_state(lookup.state), self._owners.get(owner)
        if state is None or not lookup.revision or state.passages > self._most_rows:
            self._drop(owner)
            return LookupWithState(lookup, state)
        if known is None or not known.is_current(lookup):
            self._drop(owner)
            known, before = _Known(lookup, state), known
            known.is_sole_writer, known.last_lookup = before is None, self._looks
            self._owners[owner] = known
            self._bytes += known.bytes_held
        else:
            known.is_sole_writer = True
        self._owners.move_to_end(owner)
        self._resize(known, known.terms.learn, dict(zip(terms, lookup.postings, strict=True)))
        return LookupWithState(lookup, state)

    def _drop(self, owner: Owner) -> None:
        known = self._owners.pop(owner, None)
        if known is not None:
            self._rows, self._bytes = self._rows - known.size, self._bytes - known.bytes_held

    def _resize(self, known: _Known, change: Callable[[T], None], to: T) -> None:
        """Apply a change to a cached index, and evict others if the cache is then too large."""
        rows, bytes_ = known.size, known.bytes_held
        change(to)
        self._rows, self._bytes = (
            self._rows + known.size - rows,
            self._bytes + known.bytes_held - bytes_,
        )
        while len(self._owners) > 1 and self._is_full:
            self._drop(next(iter(self._owners)))
        if self._bytes > self._most_bytes:
            known.clear()
            self._bytes = known.bytes_held

    @property
    def _is_full(self) -> bool:
        return self._rows > self._most_rows or self._bytes > self._most_bytes
