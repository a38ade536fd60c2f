"""What a process knows of indexes that it has read or written, so that who asks again need not read
it again: rows of passages, and the postings of terms.

Of a small index whose owner asks again soon everything is read at once: then nothing is asked for
any more but what the index says of itself, which most often the store has brought already.

A row never changes, and its number is never given again while its index lasts.  What can change is
that a session is dropped: then its name is gone, and the index has another revision.  So names and
postings are taken for true as long as every revision since they were read was this process's own
writing, which each look finds out: it brings the revision and the state.

Knows numbers, names of sessions and terms; no text.  Terms are hashes of words that were said or
asked for, so none of them stay once anything is erased: see ``forget``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from proxy.recall.index import NO_POSTINGS, Index, IndexBatch, Look, Owner, Postings, Rows, Whole
from proxy.recall.indexing.state import State, read_state
from proxy.recall.known_terms import NEWEST, AllTerms, SomeTerms
from proxy.recall.ranking.match import NOBODY, Numbers
from proxy.recall.ranking.packing import ROW, Array, read_rows

T = TypeVar("T")

MOST_ROWS = 200_000
"""Rows of all owners together, 21 bytes each; of an owner who has more nothing is kept."""

MOST_BYTES = 16_000_000
"""Of the terms and postings of all owners together."""

SMALL = 4_000
"""Passages of an index of which all postings are kept; below ``NEWEST``."""

MOST_TERMS = 16_000
"""Terms of such an index: some milliseconds to read."""

_OWNER = 1_500
"""Bytes that an owner takes beside rows and postings, about."""

_PASSAGE = 200
"""Bytes that a passage's postings and terms take where all are kept, about."""


class _Known:
    """What is known of one index.

    ``revision`` and ``state`` are the index's when it was last read or written; ``alone``: nobody
    else had written to it since the time before.  ``looked`` is the number of the last look for
    terms.
    """

    def __init__(self, look: Look, state: State) -> None:
        self.revision, self.state_data, self.state = look.revision, look.state, state
        self.alone = True
        self.names: dict[int, str] = {}
        self.terms: SomeTerms | AllTerms = SomeTerms()
        self.looked = 0
        self.too_large = False
        self._rows: Array = np.zeros(0, ROW)
        self._there: NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def size(self) -> int:
        """For how many rows there is room."""
        return self._rows.size

    @property
    def held(self) -> int:
        return _OWNER + self.terms.held

    def is_of(self, look: Look) -> bool:
        """Whether nothing has happened to the index but what is known."""
        return self.revision == look.revision and self.state_data == look.state

    def keep_all(self, postings: Mapping[bytes, bytes]) -> None:
        """From now on all terms are known: these."""
        self.terms = AllTerms(postings)

    def clear(self) -> None:
        """Forget the postings."""
        self.terms = SomeTerms()

    def add(self, batch: IndexBatch) -> None:
        """What this process has written behind all that is known."""
        self.revision += 1
        self.state_data, self.state = batch.state, read_state(batch.state) or self.state
        if self.state.passages > SMALL and isinstance(self.terms, AllTerms):
            self.clear()
        self.terms.add(batch.postings)

    def lacks(self, numbers: Numbers) -> Numbers:
        there = self._there.take(numbers)
        return NOBODY if there.all() else numbers[~there]

    def put(self, numbers: Numbers | slice, rows: Array) -> None:
        self._rows[numbers], self._there[numbers] = rows, True

    def of(self, numbers: Numbers) -> bytes:
        return self._rows.take(numbers).tobytes()  # many times faster than by index

    def enlarge(self, size: int) -> None:
        """Make room for so many rows, and for some that come soon."""
        if size > self._rows.size:
            more = size + size // 8 - self._rows.size
            self._rows = np.concatenate([self._rows, np.zeros(more, ROW)])
            self._there = np.concatenate([self._there, np.zeros(more, np.bool_)])


class Looked(NamedTuple):
    """A look at an index, and its state: None where that is of another format."""

    look: Look
    state: State | None


_ALL: WeakSet[KnownIndex] = WeakSet()


def forget(tenant: str) -> None:
    """Clear all known terms of a tenant: they tell of what was said."""
    for each in _ALL:
        each.forget_terms(tenant)


class KnownIndex:
    """Of the owners who asked last; what is not known is read from ``index``."""

    def __init__(
        self, index: Index, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
    ) -> None:
        self._index, self._most_rows, self._most_bytes = index, most_rows, most_bytes
        self._owners: OrderedDict[Owner, _Known] = OrderedDict()
        self._rows = self._bytes = self._looks = 0
        _ALL.add(self)

    def __repr__(self) -> str:
        terms = sum([len(known.terms) for known in self._owners.values()])
        sizes = f"rows: {self._rows}, terms: {terms}, bytes: {self._bytes}"
        return f"<KnownIndex [owners: {len(self._owners)}, {sizes}]>"

    async def look(
        self, owner: Owner, terms: Sequence[bytes], session: str = "", seen: Look | None = None
    ) -> Looked:
        """A look at an index, which reads the postings of those terms that are not known.

        ``seen`` is a look of this moment, of the same session: where all terms are known no other
        is needed.  Two round trips where something was known that is no longer true, and where an
        index is read whole.  Raises StoreError.
        """
        known = self._owners.get(owner)
        if terms and seen is None:
            self._looks += 1
        if known is None or not known.alone:
            return self._seen(owner, terms, await self._look(owner, terms, session))
        found = known.terms.find(terms)
        if None in found and seen is None and self._soon_again(known):
            whole = await self._index.whole(owner, MOST_TERMS, session)
            if whole is not None:
                return self._all(owner, terms, whole)
            known.too_large, found = True, known.terms.find(terms)
        return await self._look_for_missing(owner, known, terms, found, session, seen)

    async def _look_for_missing(
        self,
        owner: Owner,
        known: _Known,
        terms: Sequence[bytes],
        found: Sequence[Postings | None],
        session: str,
        seen: Look | None,
    ) -> Looked:
        """A look for those terms that were not ``found`` among the known; for all of them where
        what is known turns out to be no longer true."""
        kept, revision = known.terms, known.revision
        missing = [term for term, postings in zip(terms, found, strict=True) if postings is None]
        look = await self._look(owner, missing, session) if missing or seen is None else seen
        # Somebody may have erased something meanwhile, and all terms are forgotten.
        if not (known.is_of(look) and self._owners.get(owner) is known and known.terms is kept):
            if len(missing) < len(terms):
                look = await self._look(owner, terms, session)
            return self._seen(owner, terms, look)
        read = dict(zip(missing, look.postings, strict=True)) if missing else {}
        found = found if known.revision == revision else kept.find(terms)
        postings = [each or read[term] for term, each in zip(terms, found, strict=True)]
        return self._with_known(owner, known, read, replace(look, postings=tuple(postings)))

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
        return Rows(known.of(numbers), known.names)

    def written(self, owner: Owner, batch: IndexBatch) -> None:
        """This process has added a batch to an index."""
        known = self._owners.get(owner) if batch.revision else self._begun(owner)
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

    def _begun(self, owner: Owner) -> _Known:
        """An index that this process has made: all is known that it has from now on."""
        self._drop(owner)
        known = self._owners[owner] = _Known(Look(), State())
        known.keep_all({})
        self._bytes += known.held
        return known

    def forget(self) -> None:
        self._owners.clear()
        self._rows = self._bytes = 0

    def forget_terms(self, tenant: str) -> None:
        for owner, known in self._owners.items():
            if owner.tenant == tenant:
                known.clear()
        self._bytes = sum([known.held for known in self._owners.values()])

    async def _look(self, owner: Owner, terms: Sequence[bytes], session: str) -> Look:
        return await self._index.look(owner, terms, NEWEST, session=session)

    def _soon_again(self, known: _Known) -> bool:
        """Whether all terms of a small index are worth reading: if all owners who have asked since
        this one did had as many, there were room for them."""
        between, known.looked = self._looks - known.looked, self._looks
        passages = known.state.passages
        fit = passages <= SMALL and between * passages * _PASSAGE <= self._most_bytes
        return fit and not known.too_large

    def _all(self, owner: Owner, terms: Sequence[bytes], whole: Whole) -> Looked:
        """A look for some of all terms; all are known from now on."""
        found = dict(zip(whole.terms, whole.look.postings, strict=True))
        look = replace(whole.look, postings=tuple([found.get(term, NO_POSTINGS) for term in terms]))
        seen = self._seen(owner, terms, look)
        known = self._owners.get(owner)
        if known is not None and known.state.passages <= SMALL:
            postings = {term: each.newest for term, each in found.items()}
            self._resize(known, known.keep_all, postings)
        return seen

    def _with_known(
        self, owner: Owner, known: _Known, read: Mapping[bytes, Postings], look: Look
    ) -> Looked:
        """A look of which some was known, and the rest was read."""
        self._owners.move_to_end(owner)
        if read:
            self._resize(known, known.terms.learn, read)
        return Looked(look, known.state)

    def _seen(self, owner: Owner, terms: Sequence[bytes], look: Look) -> Looked:
        """A look for all that was asked; it is known from now on."""
        state, known = read_state(look.state), self._owners.get(owner)
        if state is None or not look.revision or state.passages > self._most_rows:
            self._drop(owner)
            return Looked(look, state)
        if known is None or not known.is_of(look):
            self._drop(owner)
            known, before = _Known(look, state), known
            known.alone, known.looked = before is None, self._looks
            self._owners[owner] = known
            self._bytes += known.held
        else:
            known.alone = True
        self._owners.move_to_end(owner)
        self._resize(known, known.terms.learn, dict(zip(terms, look.postings, strict=True)))
        return Looked(look, state)

    def _drop(self, owner: Owner) -> None:
        known = self._owners.pop(owner, None)
        if known is not None:
            self._rows, self._bytes = self._rows - known.size, self._bytes - known.held

    def _resize(self, known: _Known, change: Callable[[T], None], to: T) -> None:
        """Let what is known grow, and others go where that is too much."""
        rows, bytes_ = known.size, known.held
        change(to)
        self._rows, self._bytes = self._rows + known.size - rows, self._bytes + known.held - bytes_
        while len(self._owners) > 1 and self._full:
            self._drop(next(iter(self._owners)))
        if self._bytes > self._most_bytes:
            known.clear()
            self._bytes = known.held

    @property
    def _full(self) -> bool:
        return self._rows > self._most_rows or self._bytes > self._most_bytes
