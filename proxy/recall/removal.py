"""Taking a session's passages out of its owner's index, as far as an index can be taken from.

A session that is deleted has no name there any more, so that its rows and postings, which are
hashes and numbers, lead nowhere.  A vector tells what a text was about: it is put to zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proxy.recall.index import Index, Owner
from proxy.recall.packing import read_rows
from proxy.recall.state import State, read_state

AT_ONCE = 5_000
"""Rows that are read, and vectors that are put, in one go."""


async def size_of(index: Index, owner: Owner) -> int:
    """How many passages an owner has.  Raises StoreError."""
    return (await _state(index, owner)).passages


async def passages_of(index: Index, owner: Owner, session: str) -> list[int]:
    """The numbers of a session's passages, ascending.  Raises StoreError."""
    look = await index.look(owner, (), 0, session=session)
    state = read_state(look.state)
    if look.mark is None or state is None:
        return []
    found: list[int] = []
    for first in range(0, state.passages, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, state.passages))
        rows = read_rows((await index.rows(owner, numbers)).data)
        theirs = np.flatnonzero(rows["session"] == look.mark.number)
        found += (theirs + first).tolist()
    return found


async def blank(index: Index, owner: Owner, numbers: Sequence[int]) -> None:
    """Put the vectors of passages to zero, of whatever model.  Raises StoreError."""
    for name in (await _state(index, owner)).embedded:
        for first in range(0, len(numbers), AT_ONCE):
            await put_zeros(index, owner, name, numbers[first : first + AT_ONCE])


async def put_zeros(index: Index, owner: Owner, name: str, numbers: Sequence[int]) -> None:
    """The same for one model; ``name``: see ``proxy.recall.vectors.name_of``."""
    size = int(name.rpartition("/")[2])
    if numbers:
        await index.put_vectors(owner, name, size, dict.fromkeys(numbers, bytes(size)))


async def _state(index: Index, owner: Owner) -> State:
    """A new one where there is no index, or one of another format."""
    return read_state((await index.look(owner, (), 0)).state) or State()
