"""Keeps an index up to date with history.

After each commit the session's new messages are indexed.  Missed ones (after a crash, a replay of
the spool by another host, or before recall was enabled) are found when the index is next used.

Rows and postings of erased passages stay, since they are only hashes and numbers: the name of a
deleted session is removed, and the check of a removed or edited message matches none in history.
Vectors reveal what a text was about and are set to zero.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from proxy.memory.archive import Message, Page
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.model import State as MessageState
from proxy.memory.store import StoreError
from proxy.recall.index import (
    Index,
    IndexBatch,
    IndexLookup,
    IndexLost,
    IndexMark,
    Owner,
    OwnTextOf,
    PassageHistory,
    newest_session,
    owner_of,
    sessions_of,
)
from proxy.recall.indexing.state import Addition, State, dismissed_in, read_state, write_state
from proxy.recall.ranking.packing import Array, mark_check, read_rows

BATCH = 100
"""Messages that are read and written at a time."""

STATES: tuple[MessageState, ...] = ("active", "superseded")
"""States of messages that are indexed; recall checks the state again."""

TRIES = 8
"""Attempts to write if there are concurrent writers."""

TOO_MANY_WRITERS = "too many write to an index at once"

MIN_PASSAGES_TO_REBUILD = 1_000
"""An index that has gained fewer passages since its live sessions were counted is not rebuilt."""

MARGIN = 300.0
"""Seconds by which clocks may differ, and commits may be delayed, when looking for new sessions."""


class Step(NamedTuple):
    """How many messages were indexed, and whether the index is up to date; if neither, try again.

    Messages that are recorded meanwhile are queued separately.
    """

    written: int = 0
    is_up_to_date: bool = False


TRY_AGAIN = Step()
UP_TO_DATE = Step(is_up_to_date=True)


def ignore_owner(owner: Owner) -> None:
    """The default of ``on_up_to_date``."""


OnWrite = Callable[[Owner, IndexBatch], None]
"""Called with each batch that was written to an index."""


def ignore_write(owner: Owner, batch: IndexBatch) -> None:
    """The default of ``on_write``."""


class Indexer:
    """Reads history and writes the index.

    ``own_text_of`` returns the author's own text of a message's JSON.  ``on_up_to_date`` is called
    with the owner of an index that was brought up to date, ``on_write`` with each batch that was
    written.
    """

    def __init__(
        self,
        index: Index,
        history: PassageHistory,
        own_text_of: OwnTextOf,
        clock: Callable[[], float],
        on_up_to_date: Callable[[Owner], None] = ignore_owner,
        on_write: OnWrite = ignore_write,
    ) -> None:
        self._index, self._history, self._on_write = index, history, on_write
        self._own_text_of, self._clock, self._on_up_to_date = own_text_of, clock, on_up_to_date
        self._tenant_locks: Locks[str] = Locks()
        """A tenant's large messages are indexed one batch at a time: threads that compute wait for
        each other, and chats and commits would wait among them."""

    async def index_session(self, key: SessionKey) -> int:
        """Index the messages of a session that are not indexed yet; returns their number.  Raises
        StoreError."""
        count = 0
        for _ in range(TRIES):
            step = await self._step(key)
            while step.written and not step.is_up_to_date:
                count += step.written
                step = await self._step(key)
            if step.is_up_to_date:
                return count + step.written
        raise StoreError(TOO_MANY_WRITERS)

    async def index_edited(self, key: SessionKey, seq: int) -> int:
        """Index an edited message; returns the number of messages that were indexed.

        Its old row is dead already, since its check does not match any more.  Raises StoreError.
        """
        session = await self._history.session(key)
        if session is None:
            return 0
        owner = owner_of(key, session.user)
        for _ in range(TRIES):
            lookup = await self._index.lookup(owner, (), 0, session=key.session)
            state = read_state(lookup.state, self._clock())
            if state is None or lookup.mark is None or lookup.mark.seq < seq:
                return await self.index_session(key)
            page = await self._history.messages(key, STATES, seq - 1, 1)
            found = [message for message in page.items if message.seq == seq]
            addition = Addition(lookup, state, session, found, self._own_text_of, is_edit=True)
            if not found or await self._write(owner, addition):
                self._on_up_to_date(owner)
                return len(found)
        raise StoreError(TOO_MANY_WRITERS)

    async def catch_up(self, owner: Owner) -> int:
        """Index all messages of an owner's sessions that are not indexed yet; returns their number.
        An index that is mostly of sessions that are gone is rebuilt.

        Raises StoreError.
        """
        if owner.session:
            return await self.index_session(SessionKey(owner.tenant, owner.session))
        if await self._is_unknown_owner(owner):
            return 0
        count, state = await self._catch_up(owner)
        is_mostly_dead = await self._is_mostly_dead(owner, state)
        return count + (await self.rebuild(owner) if is_mostly_dead else 0)

    async def _is_unknown_owner(self, owner: Owner) -> bool:
        """Whether the owner has neither sessions nor an index: then none is created, so that a
        client that invents user ids cannot fill the store."""
        if (await self._index.lookup(owner, (), 0)).revision:
            return False
        return await newest_session(self._history, owner.tenant, owner.user) is None

    async def _catch_up(self, owner: Owner) -> tuple[int, State]:
        """The number of messages that were indexed, and the state of the index then."""
        # One is written where there is none yet.
        old = await self.update(owner, lambda found: found if found.passages else replace(found))
        since, now, count = max(old.caught_up_at, 0.0) - MARGIN, self._clock(), 0
        async for session in sessions_of(self._history, owner.tenant, owner.user):
            if session.last_active_at < since:
                break
            count += await self.index_session(SessionKey(owner.tenant, session.id))

        def with_caught_up(found: State) -> State:
            """Only if the index was neither rebuilt nor marked for another check meanwhile."""
            same = (found.created_at, found.caught_up_at) == (old.created_at, old.caught_up_at)
            return replace(found, caught_up_at=now) if same else found

        state = await self.update(owner, with_caught_up)
        self._on_up_to_date(owner)
        return count, state

    async def _is_mostly_dead(self, owner: Owner, state: State) -> bool:
        """Whether at least half of an index is of sessions that have expired or were deleted.  The
        live ones are counted again each time the index has doubled."""
        if state.passages < 2 * state.counted_passages + MIN_PASSAGES_TO_REBUILD:
            return False
        live = 0
        async for session in sessions_of(self._history, owner.tenant, owner.user):
            live += session.end
        if 2 * live <= state.passages:
            return True
        await self._set_counted(owner, state)
        return False

    async def _set_counted(self, owner: Owner, state: State) -> None:
        def with_counted(found: State) -> State:
            """Only if the index exists and was not rebuilt meanwhile."""
            same = found.created_at == state.created_at
            return replace(found, counted_passages=state.passages) if same else found

        await self.update(owner, with_counted)

    async def rebuild(self, owner: Owner) -> int:
        """Rebuild an index from history.  Raises StoreError."""
        data = (await self._index.lookup(owner, (), 0)).state
        await drop_index(self._index, owner, _kept_state(data, self._clock()))
        if owner.session:
            return await self.catch_up(owner)
        if await self._is_unknown_owner(owner):
            return 0
        count, state = await self._catch_up(owner)
        await self._set_counted(owner, state)
        return count

    async def dismiss(self, owner: Owner, *instructions: str) -> None:
        """Never pin standing instructions again.  Raises StoreError."""
        await self.update(owner, lambda old: reduce(State.with_dismissed, instructions, old))

    async def recheck_sessions(self, owner: Owner) -> None:
        """Have all sessions of an owner checked by the next ``catch_up``, old ones too: they are
        being imported.  Raises StoreError.
        """

        def not_caught_up(state: State) -> State:
            unknown = not state.caught_up_at and not state.passages
            return state if unknown else replace(state, caught_up_at=-self._clock())

        await self.update(owner, not_caught_up)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """Standing instructions that are not to be pinned, the newest last.  Raises StoreError."""
        return (await self._state(owner)).dismissed

    async def _step(self, key: SessionKey) -> Step:
        """Index the next messages."""
        seen = await self._index.unindexed(key, STATES, BATCH)
        if seen is None:
            return UP_TO_DATE
        session, lookup, page = seen
        owner = owner_of(key, session.user)
        state = read_state(lookup.state, self._clock())
        if state is None:
            await self._replace_index(owner, lookup.state)
            return TRY_AGAIN
        found = _unindexed(page, lookup.mark)
        if found is None:
            # Before the session gets another number, by which they are found.
            passages = await passages_of(self._index, owner, key.session)
            await zero_vectors(self._index, owner, passages)
            await self._index.drop_session(owner, key.session)
            return TRY_AGAIN
        before = page.items[0].card.created_at if lookup.mark else 0.0
        addition = Addition(lookup, state, session, found, self._own_text_of, previous_time=before)
        if found and not await self._write(owner, addition):
            return TRY_AGAIN
        is_up_to_date = page.after is None
        if is_up_to_date:
            self._on_up_to_date(owner)
        return Step(len(found), is_up_to_date=is_up_to_date)

    async def _write(self, owner: Owner, addition: Addition) -> bool:
        if addition.is_small:
            return await self._put(owner, addition.batch())
        async with self._tenant_locks.of(owner.tenant):
            batch = await asyncio.to_thread(addition.batch)
        return await self._put(owner, batch)

    async def _put(self, owner: Owner, batch: IndexBatch) -> bool:
        try:
            done = await self._index.write(owner, batch)
        except IndexLost:
            await self._replace_index(owner, batch.state)
            return False
        if done:
            self._on_write(owner, batch)
        return done

    async def _state(self, owner: Owner) -> State:
        data = (await self._index.lookup(owner, (), 0)).state
        return read_state(data) or State(dismissed=dismissed_in(data))

    async def _replace_index(self, owner: Owner, data: bytes) -> None:
        """Replace an index of another format, or one that has lost data, by a new one; ``data`` is
        its state."""
        now = self._clock()
        await drop_index(self._index, owner, _kept_state(data, now))
        await self._put(owner, _new_index_batch(data, now))

    async def update(self, owner: Owner, change: Callable[[State], State]) -> State:
        """Change the state of an index; ``change`` returns the same object for no change.

        Returns the state as it is then.  Raises StoreError.
        """
        for _ in range(TRIES):
            lookup = await self._index.lookup(owner, (), 0)
            state = read_state(lookup.state, self._clock())
            if state is None:
                await self._replace_index(owner, lookup.state)
                continue
            changed = change(state)
            if changed is state or await self._put(owner, _state_batch(lookup, changed)):
                return changed
        raise StoreError(TOO_MANY_WRITERS)


def _unindexed(page: Page[Message], mark: IndexMark | None) -> Sequence[Message] | None:
    """The messages after a mark, on a page that begins with the marked message.

    None if the page begins with another: the mark is of an earlier session with the same id.
    """
    if mark is None:
        return page.items
    marked = page.items[0] if page.items else None
    if marked is None or (marked.seq, mark_check(marked.card.id)) != (mark.seq, mark.check):
        return None
    return page.items[1:]


def _state_batch(lookup: IndexLookup, state: State) -> IndexBatch:
    """A batch that changes only the state."""
    return IndexBatch(
        revision=lookup.revision,
        state=write_state(state),
        session="",
        mark=None,
        first=state.passages,
    )


def _new_index_batch(data: bytes, now: float) -> IndexBatch:
    """The batch that creates a new index, with the dismissed instructions of the state ``data``."""
    return _state_batch(IndexLookup(), State(created_at=now, dismissed=dismissed_in(data)))


def _kept_state(data: bytes, now: float) -> bytes:
    """The state to keep when an index with the state ``data`` is dropped, so that dismissed
    instructions survive if the process is killed before the new index is written."""
    return _new_index_batch(data, now).state if dismissed_in(data) else b""


ROWS_AT_ONCE = 5_000
"""Rows that are read, and vectors that are written, at a time."""


class MessageVersions(NamedTuple):
    """Messages of a session, by seq; ``current_checks`` are the checks of their current texts."""

    seqs: Collection[int]
    current_checks: Collection[int] = ()


async def seqs_by_session(index: Index, owner: Owner) -> dict[str, array[int]]:
    """The seqs of an owner's passages by session, of which some have millions.  Raises
    StoreError."""
    found: dict[str, array[int]] = {}
    async for _, rows, names in _pages(index, owner, await _state(index, owner)):
        for number, seq in zip(rows["session"].tolist(), rows["seq"].tolist(), strict=True):
            if number in names:
                found.setdefault(names[number], array("Q")).append(seq)
    return found


async def passages_of(
    index: Index, owner: Owner, session: str, before: MessageVersions | None = None
) -> list[int]:
    """The numbers of a session's passages, ascending; with ``before`` only those of old texts of
    these messages.  Raises StoreError.
    """
    lookup = await index.lookup(owner, (), 0, session=session)
    state = read_state(lookup.state)
    if lookup.mark is None or state is None:
        return []
    found: list[int] = []
    async for first, rows, _ in _pages(index, owner, state):
        theirs = rows["session"] == lookup.mark.number
        if before is not None:
            theirs &= np.isin(rows["seq"], list(before.seqs))
            theirs &= ~np.isin(rows["check"], list(before.current_checks))
        found += (np.flatnonzero(theirs) + first).tolist()
    return found


async def replace_unreadable(index: Index, owner: Owner, now: float) -> None:
    """Drop an index of another format, before an erasure: its passages cannot be identified.
    Raises StoreError."""
    data = (await index.lookup(owner, (), 0)).state
    if read_state(data) is None:
        await index.drop(owner, _kept_state(data, now))
        await index.write(owner, _new_index_batch(data, now))


async def drop_index(index: Index, owner: Owner, state: bytes = b"") -> None:
    """Drop an index, but for a state.  Raises StoreError.

    First writes a zero vector of each model: a store that evicts keys may not know any more that it
    has vectors of this model, and learns it by the write.
    """
    await zero_vectors(index, owner, [0])
    await index.drop(owner, state)


async def zero_old_vectors(
    index: Index, owner: Owner, session: str, before: MessageVersions
) -> None:
    """Set the vectors of messages' old texts to zero.  Raises StoreError."""
    if (await _state(index, owner)).embedded_until:
        await zero_vectors(index, owner, await passages_of(index, owner, session, before))


async def zero_vectors(index: Index, owner: Owner, numbers: Sequence[int]) -> None:
    """Set the vectors of passages to zero, for all models.  Raises StoreError."""
    for name in (await _state(index, owner)).embedded_until:
        for first in range(0, len(numbers), ROWS_AT_ONCE):
            await put_zeros(index, owner, name, numbers[first : first + ROWS_AT_ONCE])


async def put_zeros(index: Index, owner: Owner, name: str, numbers: Sequence[int]) -> None:
    """The same for one model; ``name``: see ``semantic.vectors.vector_set_name``."""
    size = int(name.rpartition("/")[2])
    if numbers:
        await index.put_vectors(owner, name, size, dict.fromkeys(numbers, bytes(size)))


async def _pages(
    index: Index, owner: Owner, state: State
) -> AsyncIterator[tuple[int, Array, Mapping[int, str]]]:
    """All rows in pages: the number of the first, the rows, and their sessions' names."""
    for first in range(0, state.passages, ROWS_AT_ONCE):
        numbers = range(first, min(first + ROWS_AT_ONCE, state.passages))
        found = await index.rows(owner, numbers)
        yield first, read_rows(found.data), found.sessions


async def _state(index: Index, owner: Owner) -> State:
    """The state; a new one without an index, or for one of another format."""
    return read_state((await index.lookup(owner, (), 0)).state) or State()
