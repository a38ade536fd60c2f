"""Rows of passages that a process has read or written, so that who asks again need not read them.

A row never changes, and its number is never given again while its index lasts.  What can change is
that a session is dropped: then its name is gone, and the index has another revision.  So the names
are taken for true as long as every revision since they were read was this process's own writing.

Knows numbers and names of sessions; no text.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from proxy.recall.index import Index, IndexBatch, Owner, Rows
from proxy.recall.indexing.state import State
from proxy.recall.ranking.match import Numbers
from proxy.recall.ranking.packing import ROW, Array, read_rows

MOST = 200_000
"""Rows of all owners together, 21 bytes each; of an owner who has more none are kept."""


class _Known:
    """What is known of one index: rows, and the names of the sessions of each of them."""

    def __init__(self, born: float, revision: int) -> None:
        self.born, self.revision = born, revision
        self.names: dict[int, str] = {}
        self._rows: Array = np.zeros(0, ROW)
        self._there: NDArray[np.bool_] = np.zeros(0, np.bool_)

    @property
    def size(self) -> int:
        """For how many rows there is room."""
        return self._rows.size

    def lacks(self, numbers: Numbers) -> Numbers:
        missing: Numbers = numbers[~self._there[numbers]]
        return missing

    def put(self, numbers: Numbers | slice, rows: Array) -> None:
        self._rows[numbers], self._there[numbers] = rows, True

    def of(self, numbers: Numbers) -> bytes:
        return self._rows[numbers].tobytes()

    def enlarge(self, size: int) -> None:
        """Make room for so many rows, and for some that come soon."""
        if size > self._rows.size:
            more = size + size // 8 - self._rows.size
            self._rows = np.concatenate([self._rows, np.zeros(more, ROW)])
            self._there = np.concatenate([self._there, np.zeros(more, np.bool_)])


class KnownRows:
    """Of the owners who asked last; what is not known is read from ``index``."""

    def __init__(self, index: Index, most: int = MOST) -> None:
        self._index, self._most = index, most
        self._owners: OrderedDict[Owner, _Known] = OrderedDict()
        self._size = 0

    def __repr__(self) -> str:
        return f"<KnownRows [owners: {len(self._owners)}, rows: {self._size}]>"

    async def rows(self, owner: Owner, numbers: Numbers, state: State, revision: int) -> Rows:
        """Rows by number, and the names of their sessions, of an index that was of this revision
        and state.  Raises StoreError."""
        if state.passages > self._most:
            return await self._index.rows(owner, numbers.tolist())
        known = self._known(owner, state, revision)
        there = numbers < state.passages
        sought = numbers[there]
        missing = known.lacks(sought)
        if missing.size:
            found = await self._index.rows(owner, missing.tolist())
            known.put(missing, read_rows(found.data))
            known.names.update(found.sessions)
        data = known.of(sought)
        return Rows(data if sought.size == numbers.size else _spread(data, there), known.names)

    def written(self, owner: Owner, batch: IndexBatch) -> None:
        """This process has added a batch to an index."""
        known = self._owners.get(owner)
        if known is None or known.revision != batch.revision:
            return
        known.revision += 1
        if not batch.rows:
            return
        rows = read_rows(batch.rows)
        self._enlarge(known, batch.first + rows.size)
        known.put(slice(batch.first, batch.first + rows.size), rows)
        known.names.update(
            (number, batch.session) for number in set(rows["session"].tolist()) - {0}
        )

    def forget(self) -> None:
        self._owners.clear()
        self._size = 0

    def _known(self, owner: Owner, state: State, revision: int) -> _Known:
        """What is known of this index, with room for all that is in it."""
        known = self._owners.get(owner)
        if known is None or known.born != state.born or known.revision < revision:
            self._size -= known.size if known else 0
            known = self._owners[owner] = _Known(state.born, revision)
        self._owners.move_to_end(owner)
        self._enlarge(known, state.passages)
        return known

    def _enlarge(self, known: _Known, size: int) -> None:
        before = known.size
        known.enlarge(size)
        self._size += known.size - before
        while self._size > self._most and len(self._owners) > 1:
            self._size -= self._owners.popitem(last=False)[1].size


def _spread(data: bytes, there: NDArray[np.bool_]) -> bytes:
    """These rows at their places, and rows of no passage at the others."""
    rows = np.zeros(there.size, ROW)
    rows[there] = read_rows(data)
    return rows.tobytes()
