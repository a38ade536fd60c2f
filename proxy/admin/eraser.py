"""Erasing a person or a session for good.

The mark is set before anything is removed and lies ahead of time until the end: a request that has
loaded what is erased cannot write it any more, nor can the background.  Then all places are gone
through, again and again until nothing is found in any of them; so it can also be repeated after it
was cut off.  Behind the receipt everything that begins is recorded as ever.

Each place is either looked at after the mark was set, or its writers look behind themselves: see
``FeedbackDesk.take``, ``EpisodeStudent`` and ``Filler``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from proxy.admin.counting import Counted, session_counts, shelf_counts
from proxy.admin.erasure_marks import Marks
from proxy.admin.receipt import Counts, Receipt
from proxy.learning.forgetting import Busy
from proxy.learning.learned import Learned
from proxy.memory.archive import Session
from proxy.memory.erasure import Subject
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey
from proxy.memory.spool import Spool
from proxy.memory.spool_people import Whose
from proxy.recall.history import owner_of, sessions_of
from proxy.recall.index import Owner
from proxy.recall.removal import blank, passages_of, places_of

ROUNDS = 10
"""How often all places are gone through while something is found in them still."""


class Eraser:
    """All methods raise StoreError and SpoolError, with nothing lost but time: they are repeated.

    Raise Busy as well.  ``clock`` gives Unix seconds.
    """

    def __init__(
        self, store: Counted, spool: Spool, learned: Learned, clock: Callable[[], float]
    ) -> None:
        self._store, self._spool, self._learned, self._clock = store, spool, learned, clock
        self._turns: WeakValueDictionary[Subject, asyncio.Lock] = WeakValueDictionary()

    # A person

    async def count_person(self, tenant: str, user: str) -> Receipt:
        """What ``person`` would remove now."""
        counts = await shelf_counts(self._store, Shelf(tenant, user))
        ids: list[str] = []
        places = await places_of(self._store, Owner(tenant, user=user))
        async for key in self._sessions(tenant, user):
            ids.append(key.session)
            indexed = places.get(key.session, set())
            counts.add(await session_counts(self._store, key, indexed))
            repeated = await self._learned.drop_session(key, None, dry_run=True)
            counts.feedback += repeated.feedback
        counts.proposals = await self._learned.remarks.person(tenant, user, ids, dry_run=True)
        counts.spooled = await self._spooled(Whose(tenant, ids, user))
        return Receipt(Subject(tenant, user), counts)

    async def person(self, tenant: str, user: str) -> Receipt:
        """Remove all that is known of a person, and all that they said."""
        subject, total = Subject(tenant, user), Counts()
        async with self._turn(subject):
            marks = Marks(self._store, self._clock)
            await marks.put(subject)
            for _ in range(ROUNDS):
                found = await self._person(tenant, user, marks)
                total.add(found)
                if not found:
                    return Receipt(subject, total, await marks.settle())
        raise Busy

    async def _person(self, tenant: str, user: str, marks: Marks) -> Counts:
        """Remove what is there now; what it was."""
        found, shelf, owner = Counts(), Shelf(tenant, user), Owner(tenant, user=user)
        # First: what is proposed of their remarks must find that they are gone.
        found.proposals = await self._learned.remarks.person(tenant, user)
        places = await places_of(self._store, owner)
        async for key in self._sessions(tenant, user):
            await marks.put(Subject(tenant, session=key.session))
            indexed = places.get(key.session, set())
            counts = await session_counts(self._store, key, indexed)
            repeated = await self._learned.drop_session(key, None)
            found.feedback += repeated.feedback
            found.proposals += repeated.proposals
            if await self._store.delete(key):
                found.add(counts)
        found.add(await shelf_counts(self._store, shelf))
        await self._store.drop_items(shelf, ())
        await marks.renew()
        # Behind the sessions: what is indexed of one that is gone is removed by who indexes it.
        await self._store.drop(owner)
        await marks.renew()
        whose = Whose(tenant, marks.sessions, user)
        found.spooled = await asyncio.to_thread(self._spool.erase, whose)
        return found

    async def _sessions(self, tenant: str, user: str) -> AsyncIterator[SessionKey]:
        """A person's sessions: those in the store, and those that the spool will make theirs."""
        async for session in sessions_of(self._store, tenant, user):
            yield SessionKey(tenant, session.id)
        for id in await asyncio.to_thread(self._spool.sessions_of, tenant, user):
            key = SessionKey(tenant, id)
            found = await self._store.session(key)
            if found is None or not found.user:
                yield key

    # A session

    async def count_session(self, key: SessionKey) -> Receipt | None:
        """What ``session`` would remove now; None where there is nothing of this name."""
        session = await self._store.session(key)
        counts = await session_counts(self._store, key, await self._indexed(key, session))
        counts.spooled = await self._spooled(Whose(key.tenant, (key.session,)))
        if not counts:
            return None
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user, dry_run=True)
        counts.memories["episode"], counts.feedback, counts.proposals = repeated
        return Receipt(Subject(key.tenant, session=key.session), counts)

    async def session(self, key: SessionKey) -> Receipt | None:
        """Remove a session with all that it owns, and what repeats it: examples, comments, and what
        was proposed because of these.

        What was learned of it otherwise stays.  None where there is nothing of this name.
        """
        subject, total = Subject(key.tenant, session=key.session), Counts()
        async with self._turn(subject):
            session = await self._store.session(key)
            if session is None and not await self._spooled(Whose(key.tenant, (key.session,))):
                return None
            marks = Marks(self._store, self._clock)
            await marks.put(subject)
            owner = owner_of(key, session.user if session else None)
            passages = await passages_of(self._store, owner, key.session)
            indexed = await self._indexed(key, session)
            for _ in range(ROUNDS):
                # Before and behind its end: whoever embeds it meanwhile looks behind himself too.
                await blank(self._store, owner, passages)
                found = await self._session(key, await self._store.session(key), indexed)
                total.add(found)
                if not found:
                    return Receipt(subject, total, await marks.settle())
                await marks.renew()
        raise Busy

    async def _session(
        self, key: SessionKey, session: Session | None, indexed: Collection[int]
    ) -> Counts:
        """Remove what is there now; what it was."""
        found = Counts()
        # First: who tries again must find the session to know whose it was.
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user)
        found.memories["episode"], found.feedback, found.proposals = repeated
        found.spooled = await asyncio.to_thread(
            self._spool.erase, Whose(key.tenant, (key.session,))
        )
        counts = await session_counts(self._store, key, indexed)
        if await self._store.delete(key):
            found.add(counts)
        return found

    async def _indexed(self, key: SessionKey, session: Session | None) -> Collection[int]:
        """The seqs that recall's index leads to."""
        owner = owner_of(key, session.user if session else None)
        return (await places_of(self._store, owner)).get(key.session, set())

    async def _spooled(self, whose: Whose) -> int:
        return await asyncio.to_thread(self._spool.count, whose)

    @asynccontextmanager
    async def _turn(self, subject: Subject) -> AsyncIterator[None]:
        """One erasure of the same at a time: the end of one would lower the other's mark."""
        async with self._turns.setdefault(subject, asyncio.Lock()):
            yield
