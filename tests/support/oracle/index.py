"""The index in memory: what the contract means, in the plainest words; the oracle of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proxy.recall.index import (
    POSTING_SIZE,
    ROW_SIZE,
    IndexBatch,
    IndexLookup,
    IndexMark,
    Owner,
    Postings,
    Rows,
    WholeIndex,
)

EVERY_POSTING = 2**32
"""More than there are."""


@dataclass(slots=True)
class Shelf:
    """The index of one owner."""

    revision: int = 0
    state: bytes = b""
    expires_at: float = 0.0
    rows: bytes = b""
    postings: dict[bytes, bytes] = field(default_factory=dict)
    marks: dict[str, IndexMark] = field(default_factory=dict)
    vectors: dict[tuple[str, int, int], bytes] = field(default_factory=dict)

    def newest(self, term: bytes, most: int) -> Postings:
        data = self.postings.get(term, b"")
        begin = max(0, len(data) - most * POSTING_SIZE)
        return Postings(len(data) // POSTING_SIZE, data[begin:])

    def add(self, batch: IndexBatch, now: float) -> None:
        self.revision += 1
        self.state = batch.state
        self.rows += batch.rows
        for term, data in batch.postings.items():
            self.postings[term] = self.postings.get(term, b"") + data
        if batch.mark is not None:
            self.marks[batch.session] = batch.mark
        self._live(batch, now + (batch.ttl or float("inf")))

    def _live(self, batch: IndexBatch, until: float) -> None:
        """Never shortened: other sessions of the person may live longer than this one.

        A batch without rows tells nothing of that, and before the first row nothing is known.
        """
        if batch.first == 0 and (batch.rows or self.revision == 1):
            self.expires_at = until
        elif batch.rows:
            self.expires_at = max(self.expires_at, until)


class InMemoryIndex:
    """See :class:`proxy.recall.index.Index`.  ``clock`` gives Unix seconds, for expiry alone."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._now = clock
        self._shelves: dict[Owner, Shelf] = {}

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        shelf = self._shelf(owner)
        found = tuple(shelf.newest(term, newest) for term in terms)
        return IndexLookup(shelf.revision, shelf.state, found, shelf.marks.get(session))

    async def whole_index(
        self, owner: Owner, max_terms: int, session: str = ""
    ) -> WholeIndex | None:
        terms = sorted(self._shelf(owner).postings)
        head = await self.lookup(owner, (), 0, session)
        if not head.revision or len(terms) > max_terms:
            return None
        postings = [self._shelf(owner).newest(term, EVERY_POSTING).newest for term in terms]
        sizes = [len(each) for each in postings]
        return WholeIndex(head, b"".join(terms), sizes, b"".join(postings))

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        shelf = self._shelf(owner)
        slices = (shelf.rows[n * ROW_SIZE : (n + 1) * ROW_SIZE] for n in numbers)
        rows = [row or bytes(ROW_SIZE) for row in slices]
        wanted = {int.from_bytes(row[:4], "little") for row in rows}
        names = {mark.number: name for name, mark in shelf.marks.items()}
        return Rows(b"".join(rows), {n: name for n, name in names.items() if n in wanted})

    async def write(self, owner: Owner, batch: IndexBatch) -> bool:
        shelf = self._shelf(owner)
        if (shelf.revision, len(shelf.rows)) != (batch.revision, batch.first * ROW_SIZE):
            return False
        if (
            batch.session_created_at is not None
            and self._began(owner, batch.session) != batch.session_created_at
        ):
            return False
        shelf.add(batch, self._now())
        self._shelves[owner] = shelf
        return True

    async def drop_session(self, owner: Owner, session: str) -> None:
        shelf = self._shelf(owner)
        # A batch made from an earlier look must not bring the session back.
        shelf.revision += bool(shelf.revision)
        shelf.marks.pop(session, None)

    async def drop(self, owner: Owner, state: bytes = b"") -> None:
        old = self._shelves.pop(owner, None)
        if old and state:
            self._shelves[owner] = Shelf(state=state, expires_at=old.expires_at)

    async def put_vectors(
        self, owner: Owner, model: str, size: int, vectors: Mapping[int, bytes]
    ) -> None:
        shelf = self._shelf(owner)
        shelf.vectors |= {(model, size, number): vector for number, vector in vectors.items()}

    async def vectors(self, owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        known = self._shelf(owner).vectors
        return b"".join(known.get((model, size, n), bytes(size)) for n in range(first, last))

    def _began(self, owner: Owner, session: str) -> float | None:
        """When a session did that is there; an index alone knows of none."""
        return None

    def _shelf(self, owner: Owner) -> Shelf:
        """The owner's shelf; a new one that is not kept where there is none."""
        shelf = self._shelves.get(owner)
        if shelf is not None and shelf.expires_at <= self._now():
            del self._shelves[owner]
            shelf = None
        return shelf or Shelf()

    def _drop_tenant(self, tenant: str) -> None:
        for owner in [owner for owner in self._shelves if owner.tenant == tenant]:
            del self._shelves[owner]
