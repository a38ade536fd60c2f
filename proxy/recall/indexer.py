"""Keeping an index level with history, in the background.

After each commit the session's new messages are indexed.  What was missed (a process was killed, a
spool was replayed by another host, recall was switched on later) is found when the owner is next
heard of: nothing is recalled before somebody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import reduce

import msgspec

from proxy.memory.archive import Message, Session
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.addition import Addition
from proxy.recall.history import History, owner_of, sessions_of
from proxy.recall.index import Batch, Index, Look, Mark, Owner
from proxy.recall.packing import check_of
from proxy.recall.removal import blank, passages_of
from proxy.recall.state import State, dismissed_in, read_state, write_state

AT_ONCE = 100
"""Messages that are read and written in one go."""

IN_THE_LOOP = 16_000
"""Bytes of messages up to which a thread would cost more than it saves."""

TRIES = 8
"""Attempts to write against other writers of the same index."""

MARGIN = 300.0
"""Seconds by which clocks and commits under way may lag behind what has been caught up with."""


def nobody(owner: Owner) -> None:
    """Whom to tell of an index that is level where nobody wants to know."""


class Indexer:
    """Reads history, writes the index.

    ``text_of`` gives the text of a message's JSON.  ``on_level`` is told whose index has been made
    level with history.
    """

    def __init__(
        self,
        index: Index,
        history: History,
        text_of: Callable[[bytes], str],
        clock: Callable[[], float],
        on_level: Callable[[Owner], None] = nobody,
    ) -> None:
        self._index, self._history = index, history
        self._text_of, self._clock, self._on_level = text_of, clock, on_level

    async def level(self, key: SessionKey) -> int:
        """Index what a session has that its index lacks; the number of messages.

        Raises StoreError.
        """
        session = await self._history.session(key)
        return await self._level(key, session) if session else 0

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
                return await self._level(key, session)
            page = await self._history.messages(key, ("active", "superseded"), seq - 1, 1)
            found = [message for message in page.items if message.seq == seq]
            addition = Addition(look, state, session, found, self._text_of, again=True)
            if not found or await self._write(owner, addition):
                self._on_level(owner)
                return len(found)
        raise StoreError("too many write to an index at once")

    async def catch_up(self, owner: Owner) -> int:
        """Index what any session of an owner has that the index lacks.  Raises StoreError."""
        if owner.session:
            return await self.level(SessionKey(owner.tenant, owner.session))
        await self.update(owner, lambda old: old if old.passages else msgspec.structs.replace(old))
        state = await self._state(owner)
        since, now, count = state.caught_up - MARGIN, self._clock(), 0
        async for session in sessions_of(self._history, owner.tenant, owner.user):
            if session.last_active_at < since:
                break
            count += await self._level(SessionKey(owner.tenant, session.id), session)

        def level(found: State) -> State:
            """Not an index that took this one's place meanwhile: it knows nothing yet."""
            same = found.born == state.born
            return msgspec.structs.replace(found, caught_up=now) if same else found

        await self.update(owner, level)
        self._on_level(owner)
        return count

    async def rebuild(self, owner: Owner) -> int:
        """Make an index anew from history.  Raises StoreError."""
        dismissed = (await self._state(owner)).dismissed
        await self._index.drop(owner)
        await self.update(owner, lambda old: msgspec.structs.replace(old, dismissed=dismissed))
        return await self.catch_up(owner)

    async def dismiss(self, owner: Owner, *wishes: str) -> None:
        """Never pin standing wishes again.  Raises StoreError."""
        await self.update(owner, lambda old: reduce(State.without, wishes, old))

    async def look_again(self, owner: Owner) -> None:
        """Let all sessions of an owner be looked at when they are next heard of.

        Old ones are on their way back into history.  Raises StoreError.
        """

        def behind(found: State) -> State:
            return msgspec.structs.replace(found, caught_up=0.0) if found.caught_up else found

        await self.update(owner, behind)

    async def dismissed(self, owner: Owner) -> tuple[str, ...]:
        """The standing wishes that are not to be pinned, the newest last.  Raises StoreError."""
        return (await self._state(owner)).dismissed

    async def _level(self, key: SessionKey, session: Session) -> int:
        owner, count = owner_of(key, session.user), 0
        for _ in range(TRIES):
            while (written := await self._step(owner, key, session)) > 0:
                count += written
            if written == 0:
                self._on_level(owner)
                return count
        raise StoreError("too many write to an index at once")

    async def _step(self, owner: Owner, key: SessionKey, session: Session) -> int:
        """Index the next messages; how many, 0 at the end, -1 if it has to be tried again."""
        look = await self._index.look(owner, (), 0, session=key.session)
        state = read_state(look.state, self._clock())
        if state is None:
            await self._renew(owner, look.state)
            return -1
        found = await self._behind(key, look.mark)
        if found is None:
            # Before: by their old number nobody finds them any more.
            passages = await passages_of(self._index, owner, key.session)
            await blank(self._index, owner, passages)
            await self._index.drop_session(owner, key.session)
            return -1
        if not found:
            return 0
        addition = Addition(look, state, session, found, self._text_of)
        return len(found) if await self._write(owner, addition) else -1

    async def _write(self, owner: Owner, addition: Addition) -> bool:
        large = sum(len(message.wire) for message in addition.found) > IN_THE_LOOP
        batch = await asyncio.to_thread(addition.batch) if large else addition.batch()
        if not await self._index.write(owner, batch):
            return False
        await self._take_back(owner, addition)
        return True

    async def _take_back(self, owner: Owner, addition: Addition) -> None:
        """A session that was erased while it was indexed leaves nothing.

        Behind the writing: who erases meanwhile either finds it in the index, or it is found here.
        An index that was there is only added to as it was, so an erased person's was made anew.
        """
        session = addition.session
        there = await self._history.session(SessionKey(owner.tenant, session.id))
        if there is not None and there.created_at == session.created_at:
            return
        if addition.look.revision:
            await self._index.drop_session(owner, session.id)
        else:
            await self._index.drop(owner)

    async def _behind(self, key: SessionKey, mark: Mark | None) -> Sequence[Message] | None:
        """The next messages behind a mark, of any state: that is asked when they are recalled.

        None if history does not bear the mark out: it is of an earlier session of this name.
        """
        after = mark.seq - 1 if mark else 0
        page = await self._history.messages(key, ("active", "superseded"), after, AT_ONCE)
        if mark is None:
            return page.items
        marked = page.items[0] if page.items else None
        if marked is None or (marked.seq, check_of(marked.card.id)) != (mark.seq, mark.check):
            return None
        return page.items[1:]

    async def _state(self, owner: Owner) -> State:
        data = (await self._index.look(owner, (), 0)).state
        return read_state(data) or State(dismissed=dismissed_in(data))

    async def _renew(self, owner: Owner, data: bytes) -> None:
        """Begin an index of this format in the place of one of another, of which ``data`` tells."""
        await self._index.drop(owner)
        state = State(born=self._clock(), dismissed=dismissed_in(data))
        await self._index.write(owner, _marked(await self._index.look(owner, (), 0), state))

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
            if changed is state or await self._index.write(owner, _marked(look, changed)):
                return
        raise StoreError("too many write to an index at once")


def _marked(look: Look, state: State) -> Batch:
    """A batch that changes nothing but the state."""
    return Batch(
        revision=look.revision,
        state=write_state(state),
        session="",
        mark=None,
        first=state.passages,
    )
