"""Keeping an index level with history, in the background.

After each commit the session's new messages are indexed.  What was missed (a process was killed, a
spool was replayed by another host, recall was switched on later) is found when the owner is next
heard of: nothing is recalled before somebody asks.

Passages are taken out as far as an index can be taken from.  A session that is deleted has no name
there any more, and where a message was removed or edited history has none, or another, so that rows
and postings, which are hashes and numbers, lead nowhere.  A vector tells what a text was about: it
is put to zero.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import msgspec
import numpy as np

from proxy.memory.archive import Message, Page
from proxy.memory.model import SessionKey
from proxy.memory.model import State as MessageState
from proxy.memory.store import StoreError
from proxy.recall.index import (
    Index,
    IndexBatch,
    IndexLost,
    IndexMark,
    Look,
    Owner,
    OwnOf,
    PassageHistory,
    owner_of,
    sessions_of,
)
from proxy.recall.indexing.state import Addition, State, dismissed_in, read_state, write_state
from proxy.recall.ranking.packing import Array, mark_check, read_rows

AT_ONCE = 100
"""Messages that are read and written in one go."""

STATES: tuple[MessageState, ...] = ("active", "superseded")
"""Of what is indexed, whatever it is: that is asked when it is recalled."""

IN_THE_LOOP = 16_000
"""Bytes of messages up to which a thread would cost more than it saves."""

FEW = 16
"""And so many of them: each takes a tenth of a millisecond, however little it says."""

TRIES = 8
"""Attempts to write against other writers of the same index."""

OVERTAKEN = "too many write to an index at once"

MARGIN = 300.0
"""Seconds by which clocks and commits under way may lag behind what has been caught up with."""


class Step(NamedTuple):
    """How many messages were indexed, and whether these were the last; if neither, once more.

    What is recorded meanwhile is work of its own.
    """

    written: int = 0
    level: bool = False


ONCE_MORE = Step()
LEVEL = Step(level=True)


def nobody(owner: Owner) -> None:
    """Whom to tell of an index that is level where nobody wants to know."""


OnWrite = Callable[[Owner, IndexBatch], None]
"""Told of each batch that is in an index now."""


def nowhere(owner: Owner, batch: IndexBatch) -> None:
    """Where to note what was written where nobody keeps it in mind."""


class Indexer:
    """Reads history, writes the index.

    ``own_of`` gives what is its writer's own of a message's JSON.  ``on_level`` is told whose index
    has been made level with history, ``on_write`` each batch that is in an index.
    """

    def __init__(
        self,
        index: Index,
        history: PassageHistory,
        own_of: OwnOf,
        clock: Callable[[], float],
        on_level: Callable[[Owner], None] = nobody,
        on_write: OnWrite = nowhere,
    ) -> None:
        self._index, self._history, self._on_write = index, history, on_write
        self._own_of, self._clock, self._on_level = own_of, clock, on_level

    async def level(self, key: SessionKey) -> int:
        """Index what a session has that its index lacks; the number of messages.

        Raises StoreError.
        """
        count = 0
        for _ in range(TRIES):
            step = await self._step(key)
            while step.written and not step.level:
                count += step.written
                step = await self._step(key)
            if step.level:
                return count + step.written
        raise StoreError(OVERTAKEN)

    async def again(self, key: SessionKey, seq: int) -> int:
        """Index a message that says something else now; the number of messages.

        What the index had of it leads nowhere since: its check is of what it said.  Raises
        StoreError.
        """
        session = await self._history.session(key)
        if session is None:
            return 0
        owner = owner_of(key, session.user)
        for _ in range(TRIES):
            look = await self._index.look(owner, (), 0, session=key.session)
            state = read_state(look.state, self._clock())
            if state is None or look.mark is None or look.mark.seq < seq:
                return await self.level(key)
            page = await self._history.messages(key, STATES, seq - 1, 1)
            found = [message for message in page.items if message.seq == seq]
            addition = Addition(look, state, session, found, self._own_of, again=True)
            if not found or await self._write(owner, addition):
                self._on_level(owner)
                return len(found)
        raise StoreError(OVERTAKEN)

    async def catch_up(self, owner: Owner) -> int:
        """Index what any session of an owner has that the index lacks.  Raises StoreError."""
        if owner.session:
            return await self.level(SessionKey(owner.tenant, owner.session))
        await self.update(owner, lambda old: old if old.passages else msgspec.structs.replace(old))
        state = await self._state(owner)
        since, now, count = max(state.caught_up, 0.0) - MARGIN, self._clock(), 0
        async for session in sessions_of(self._history, owner.tenant, owner.user):
            if session.last_active_at < since:
                break
            count += await self.level(SessionKey(owner.tenant, session.id))

        def level(found: State) -> State:
            """Not an index that took this one's place meanwhile, nor one that was doubted."""
            same = (found.born, found.caught_up) == (state.born, state.caught_up)
            return msgspec.structs.replace(found, caught_up=now) if same else found

        await self.update(owner, level)
        self._on_level(owner)
        return count

    async def rebuild(self, owner: Owner) -> int:
        """Make an index anew from history.  Raises StoreError."""
        dismissed = (await self._state(owner)).dismissed
        await drop_index(self._index, owner)
        await self.update(owner, lambda old: msgspec.structs.replace(old, dismissed=dismissed))
        return await self.catch_up(owner)

    async def dismiss(self, owner: Owner, *instructions: str) -> None:
        """Never pin standing instructions again.  Raises StoreError."""
        await self.update(owner, lambda old: reduce(State.without, instructions, old))

    async def look_again(self, owner: Owner) -> None:
        """Let all sessions of an owner be looked at when they are next heard of.

        Old ones are on their way back into history.  Raises StoreError.
        """

        def behind(found: State) -> State:
            unknown = not found.caught_up and not found.passages
            return found if unknown else msgspec.structs.replace(found, caught_up=-self._clock())

        await self.update(owner, behind)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """Standing instructions that are not to be pinned, the newest last.  Raises StoreError."""
        return (await self._state(owner)).dismissed

    async def _step(self, key: SessionKey) -> Step:
        """Index the next messages."""
        seen = await self._index.behind(key, STATES, AT_ONCE)
        if seen is None:
            return LEVEL
        session, look, page = seen
        owner = owner_of(key, session.user)
        state = read_state(look.state, self._clock())
        if state is None:
            await self._renew(owner, look.state)
            return ONCE_MORE
        found = _new(page, look.mark)
        if found is None:
            # Before: by their old number nobody finds them any more.
            passages = await passages_of(self._index, owner, key.session)
            await blank(self._index, owner, passages)
            await self._index.drop_session(owner, key.session)
            return ONCE_MORE
        before = page.items[0].card.created_at if look.mark else 0.0
        addition = Addition(look, state, session, found, self._own_of, before=before)
        if found and not await self._write(owner, addition):
            return ONCE_MORE
        level = page.after is None
        if level:
            self._on_level(owner)
        return Step(len(found), level=level)

    async def _write(self, owner: Owner, addition: Addition) -> bool:
        found = addition.found
        small = len(found) <= FEW and sum(len(message.wire) for message in found) <= IN_THE_LOOP
        batch = addition.batch() if small else await asyncio.to_thread(addition.batch)
        return await self._put(owner, batch)

    async def _put(self, owner: Owner, batch: IndexBatch) -> bool:
        try:
            done = await self._index.write(owner, batch)
        except IndexLost:
            await self._renew(owner, batch.state)
            return False
        if done:
            self._on_write(owner, batch)
        return done

    async def _state(self, owner: Owner) -> State:
        data = (await self._index.look(owner, (), 0)).state
        return read_state(data) or State(dismissed=dismissed_in(data))

    async def _renew(self, owner: Owner, data: bytes) -> None:
        """Begin an index in the place of one of another format, or of one that has lost a part; of
        either ``data`` tells."""
        await drop_index(self._index, owner)
        await self._put(owner, _anew(data, self._clock()))

    async def update(self, owner: Owner, change: Callable[[State], State]) -> None:
        """Change what an index knows of itself; the same object means no change.

        Raises StoreError.
        """
        for _ in range(TRIES):
            look = await self._index.look(owner, (), 0)
            state = read_state(look.state, self._clock())
            if state is None:
                await self._renew(owner, look.state)
                continue
            changed = change(state)
            if changed is state or await self._put(owner, _marked(look, changed)):
                return
        raise StoreError(OVERTAKEN)


def _new(page: Page[Message], mark: IndexMark | None) -> Sequence[Message] | None:
    """The next messages behind a mark, of those that begin with the one that it names.

    None if history does not bear the mark out: it is of an earlier session of this name.
    """
    if mark is None:
        return page.items
    marked = page.items[0] if page.items else None
    if marked is None or (marked.seq, mark_check(marked.card.id)) != (mark.seq, mark.check):
        return None
    return page.items[1:]


def _marked(look: Look, state: State) -> IndexBatch:
    """A batch that changes nothing but the state."""
    return IndexBatch(
        revision=look.revision,
        state=write_state(state),
        session="",
        mark=None,
        first=state.passages,
    )


def _anew(data: bytes, now: float) -> IndexBatch:
    """The batch that begins an index in the place of one of which ``data`` tells."""
    return _marked(Look(), State(born=now, dismissed=dismissed_in(data)))


ROWS_AT_ONCE = 5_000
"""Rows that are read, and vectors that are put, in one go."""


class Said(NamedTuple):
    """Messages of a session, by seq; ``now`` are the checks of what they say now."""

    seqs: Collection[int]
    now: Collection[int] = ()


async def places_of(index: Index, owner: Owner) -> dict[str, array[int]]:
    """Where an owner's passages lead to: seqs by session, of which some have millions.

    Raises StoreError.
    """
    found: dict[str, array[int]] = {}
    async for _, rows, names in _pages(index, owner, await _state(index, owner)):
        for number, seq in zip(rows["session"].tolist(), rows["seq"].tolist(), strict=True):
            if number in names:
                found.setdefault(names[number], array("Q")).append(seq)
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


async def renew_unread(index: Index, owner: Owner, now: float) -> None:
    """Begin an index of another format anew: what of it is whose, nobody can tell who erases.

    Raises StoreError.
    """
    data = (await index.look(owner, (), 0)).state
    if read_state(data) is None:
        await index.drop(owner)
        await index.write(owner, _anew(data, now))


async def drop_index(index: Index, owner: Owner) -> None:
    """Forget an index.  A store that evicts keys may not know any more of what models it has
    vectors; the index does, and who puts one tells the store.  Raises StoreError.
    """
    await blank(index, owner, [0])
    await index.drop(owner)


async def blank_messages(index: Index, owner: Owner, session: str, before: Said) -> None:
    """Put the vectors of what messages do not say now to zero.  Raises StoreError."""
    if (await _state(index, owner)).embedded:
        await blank(index, owner, await passages_of(index, owner, session, before))


async def blank(index: Index, owner: Owner, numbers: Sequence[int]) -> None:
    """Put the vectors of passages to zero, of whatever model.  Raises StoreError."""
    for name in (await _state(index, owner)).embedded:
        for first in range(0, len(numbers), ROWS_AT_ONCE):
            await put_zeros(index, owner, name, numbers[first : first + ROWS_AT_ONCE])


async def put_zeros(index: Index, owner: Owner, name: str, numbers: Sequence[int]) -> None:
    """The same for one model; ``name``: see ``proxy.recall.semantic.vectors.name_of``."""
    size = int(name.rpartition("/")[2])
    if numbers:
        await index.put_vectors(owner, name, size, dict.fromkeys(numbers, bytes(size)))


async def _pages(
    index: Index, owner: Owner, state: State
) -> AsyncIterator[tuple[int, Array, Mapping[int, str]]]:
    """All rows, so many together: the number of the first, they, and their sessions' names."""
    for first in range(0, state.passages, ROWS_AT_ONCE):
        numbers = range(first, min(first + ROWS_AT_ONCE, state.passages))
        found = await index.rows(owner, numbers)
        yield first, read_rows(found.data), found.sessions


async def _state(index: Index, owner: Owner) -> State:
    """A new one where there is no index, or one of another format."""
    return read_state((await index.look(owner, (), 0)).state) or State()
