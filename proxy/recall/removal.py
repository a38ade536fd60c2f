"""Taking passages out of their owner's index, as far as an index can be taken from.

A session that is deleted has no name there any more, and where a message was removed or edited
history has none, or another, so that rows and postings, which are hashes and numbers, lead nowhere.
A vector tells what a text was about: it is put to zero.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from proxy.recall.index import Index, Owner
from proxy.recall.packing import Array, read_rows
from proxy.recall.state import State, read_state

AT_ONCE = 5_000
"""Rows that are read, and vectors that are put, in one go."""


class Said(NamedTuple):
    """Messages of a session, by seq; ``now`` are the checks of what they say now."""

    seqs: Collection[int]
    now: Collection[int] = ()


async def places_of(index: Index, owner: Owner) -> dict[str, set[int]]:
    """Where an owner's passages lead to: seqs by session.  Raises StoreError."""
    found: dict[str, set[int]] = {}
    async for _, rows, names in _pages(index, owner, await _state(index, owner)):
        for number, seq in zip(rows["session"].tolist(), rows["seq"].tolist(), strict=True):
            if number in names:
                found.setdefault(names[number], set()).add(seq)
    return found


async def passages_of(
    index: Index, owner: Owner, session: str, before: Said | None = None
) -> list[int]:
    """The numbers of a session's passages, ascending; with ``before`` only those of what these
    messages do not say now.  Raises StoreError.
    """
    look = await index.look(owner, (), 0, session=session)
    state = read_state(look.state)
    if look.mark is None or state is None:
        return []
    found: list[int] = []
    async for first, rows, _ in _pages(index, owner, state):
        theirs = rows["session"] == look.mark.number
        if before is not None:
            theirs &= np.isin(rows["seq"], list(before.seqs))
            theirs &= ~np.isin(rows["check"], list(before.now))
        found += (np.flatnonzero(theirs) + first).tolist()
    return found


async def blank_messages(index: Index, owner: Owner, session: str, before: Said) -> None:
    """Put the vectors of what messages do not say now to zero.  Raises StoreError."""
    if (await _state(index, owner)).embedded:
        await blank(index, owner, await passages_of(index, owner, session, before))


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


async def _pages(
    index: Index, owner: Owner, state: State
) -> AsyncIterator[tuple[int, Array, Mapping[int, str]]]:
    """All rows, so many together: the number of the first, they, and their sessions' names."""
    for first in range(0, state.passages, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, state.passages))
        found = await index.rows(owner, numbers)
        yield first, read_rows(found.data), found.sessions


async def _state(index: Index, owner: Owner) -> State:
    """A new one where there is no index, or one of another format."""
    return read_state((await index.look(owner, (), 0)).state) or State()
