"""Erasing a person or a session for good, and the marks of an erasure.

The mark is set before anything is removed and lies ahead of time until the end: a request that has
loaded what is erased cannot write it any more, nor can the background.  Then all places are gone
through, again and again until nothing is found in any of them; so it can also be repeated after it
was cut off.  Behind the receipt everything that begins is recorded as ever.

Each place is either looked at after the mark was set, or its writers look behind themselves: see
``FeedbackService.take``, ``EpisodeExtractor`` and ``EmbeddingBackfill``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress

from proxy.learning.collection import Busy
from proxy.learning.learned import Learned
from proxy.memory.archive import Session
from proxy.memory.erasure import Erasures, Subject
from proxy.memory.items import Change, ItemOwner
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.naming import named_session, reference_of
from proxy.memory.recording.spool import Spool
from proxy.memory.recording.spool_owners import EntryOwner
from proxy.memory.store import StoreError
from proxy.memory_api.erasure.in_mind import forget_session, forget_texts
from proxy.memory_api.erasure.receipt import Counts, Receipt
from proxy.memory_api.overview.counts import Counted, session_counts, shelf_counts
from proxy.recall.index import Owner, owner_of, sessions_of
from proxy.recall.indexing.indexer import (
    blank,
    drop_index,
    passages_of,
    places_of,
    renew_unread,
)

LEASE = 60.0
"""Seconds that marks lie ahead: what an erasure that was cut off leaves runs out by itself."""

RENEWAL = 20.0
"""Seconds after which they are set anew."""

AT_ONCE = 100
"""Marks that are set with one question to the store: some have thousands of sessions."""


class Marks:
    """What began before the end is refused meanwhile, so that nothing that a request has loaded
    comes back behind the erasure.  ``clock`` gives Unix seconds.  All methods raise StoreError.
    """

    def __init__(self, erasures: Erasures, clock: Callable[[], float]) -> None:
        self._erasures, self._clock = erasures, clock
        self._subjects: dict[Subject, None] = {}
        self._renew_at = clock() + RENEWAL
        self.settled = False

    @property
    def sessions(self) -> list[str]:
        """Those that have been marked."""
        return [subject.session for subject in self._subjects if subject.session]

    async def put(self, *subjects: Subject) -> None:
        """Mark some more, and the others anew where it is time."""
        self._subjects |= dict.fromkeys(subjects)
        await self._mark(subjects)
        await self.renew()

    async def renew(self) -> None:
        """To be called often enough: nothing between two calls may last as long as a lease."""
        if self._clock() < self._renew_at:
            return
        await self._mark(list(self._subjects))
        self._renew_at = self._clock() + RENEWAL

    async def settle(self) -> float:
        """The end, in Unix seconds.  What begins behind this call is written again; of what begins
        while it lasts, what finds its mark lowered already.
        """
        end = self._clock()
        await self._mark(list(self._subjects), end)
        self.settled = True
        return end

    async def _mark(self, subjects: Sequence[Subject], end: float | None = None) -> None:
        for at in range(0, len(subjects), AT_ONCE):
            until = self._clock() + LEASE if end is None else end
            await self._erasures.mark(subjects[at : at + AT_ONCE], until)


LOWERINGS, LOWER_AFTER = 10, 0.5
"""How often the marks of an erasure that failed are tried to be lowered, and seconds in between."""

LOWERED_WITHIN = 1.0
"""Seconds for which who is told of the failure waits for that."""

MOST_LOWERED = 64
"""Erasures whose marks are being lowered; those of others run out by themselves."""

ENDING = 2.0
"""Seconds that the marks have at the end of the process."""

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
        self._turns: Locks[Subject] = Locks()
        """Counting takes turns as well: of much it takes long."""
        self._lowering: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Marks that could not be lowered run out by themselves."""
        under_way = list(self._lowering)
        if under_way:
            await asyncio.wait(under_way, timeout=ENDING)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    # A person

    async def count_person(self, tenant: str, user: str) -> Receipt:
        """What ``person`` would remove now."""
        subject = Subject(tenant, user)
        async with self._turns.of(subject):
            lost = await self._store.relist(tenant, user)
            return Receipt(subject, await self._person_counts(tenant, user, lost))

    async def _person_counts(self, tenant: str, user: str, lost: Sequence[str]) -> Counts:
        counts = await shelf_counts(self._store, ItemOwner(tenant, user), self._learned.kinds)
        ids: list[str] = []
        places = await places_of(self._store, Owner(tenant, user=user))
        async for key in self._sessions(tenant, user, lost):
            ids.append(key.session)
            indexed = places.get(key.session, ())
            counts.add(await session_counts(self._store, key, indexed))
            repeated = await self._learned.drop_session(key, None, dry_run=True)
            counts.feedback += repeated.feedback
        counts.proposals = await self._learned.remarks.person(tenant, user, ids, dry_run=True)
        counts.spooled = await self._spooled(EntryOwner(tenant, ids, user))
        return counts

    async def person(self, tenant: str, user: str) -> Receipt:
        """Remove all that is known of a person, and all that they said."""
        subject, total = Subject(tenant, user), Counts()
        async with self._erasing(subject) as marks:
            # Before the mark, which this may outlast: who writes now writes the lists as well.
            lost = await self._store.relist(tenant, user)
            await marks.put(subject)
            for _ in range(ROUNDS):
                found = await self._person(tenant, user, lost, marks)
                total.add(found)
                if not found:
                    return Receipt(subject, total, await self._end(marks))
        raise Busy

    async def _person(self, tenant: str, user: str, lost: Sequence[str], marks: Marks) -> Counts:
        """Remove what is there now; what it was."""
        found, shelf, owner = Counts(), ItemOwner(tenant, user), Owner(tenant, user=user)
        # First: what is proposed of their remarks must find that they are gone.
        found.proposals = await self._learned.remarks.person(tenant, user)
        places = await places_of(self._store, owner)
        async for keys in _together(self._sessions(tenant, user, lost)):
            await marks.put(*(Subject(tenant, session=key.session) for key in keys))
            for key in keys:
                found.add(await self._theirs(key, places.get(key.session, ())))
                await marks.renew()
        await self._store.clear(tenant, user)
        await marks.renew()
        found.add(await shelf_counts(self._store, shelf, self._learned.kinds))
        await self._store.drop_items(shelf, ())
        await marks.renew()
        # Behind the sessions: what is indexed of one that is gone is removed by who indexes it.
        await drop_index(self._store, owner)
        await marks.renew()
        whose = EntryOwner(tenant, marks.sessions, user)
        found.spooled = await asyncio.to_thread(self._spool.erase, whose)
        return found

    async def _theirs(self, key: SessionKey, indexed: Collection[int]) -> Counts:
        """Remove a session of somebody who is erased; what it was."""
        found = Counts()
        counts = await session_counts(self._store, key, indexed)
        repeated = await self._learned.drop_session(key, None)
        found.feedback, found.proposals = repeated.feedback, repeated.proposals
        if await self._delete(key):
            found.add(counts)
        return found

    async def _sessions(
        self, tenant: str, user: str, lost: Sequence[str]
    ) -> AsyncIterator[SessionKey]:
        """A person's sessions: those in the store, those of which it has ``lost`` what says whose
        they are, and those that the spool will make theirs."""
        async for session in sessions_of(self._store, tenant, user):
            yield SessionKey(tenant, session.id)
        for id in lost:
            key = SessionKey(tenant, id)
            if await self._store.session(key) is None:
                yield key
        for id in await asyncio.to_thread(self._spool.sessions_of, tenant, user):
            key = SessionKey(tenant, id)
            found = await self._store.session(key)
            if found is None or not found.user:
                yield key

    # A session

    async def count_session(self, key: SessionKey) -> Receipt | None:
        """What ``session`` would remove now; None where there is nothing of this name."""
        async with self._turns.of(Subject(key.tenant, session=key.session)):
            return await self._session_receipt(key)

    async def _session_receipt(self, key: SessionKey) -> Receipt | None:
        session = await self._store.session(key)
        counts = await session_counts(self._store, key, await self._indexed(key, session))
        counts.spooled = await self._spooled(EntryOwner(key.tenant, (key.session,)))
        if not counts:
            return None
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user, dry_run=True)
        counts.memories.update(repeated.memories)
        counts.feedback, counts.proposals = repeated.feedback, repeated.proposals
        return Receipt(Subject(key.tenant, session=key.session), counts)

    async def session(self, key: SessionKey) -> Receipt | None:
        """Remove a session with all that it owns, and what repeats it: examples, comments, and what
        was proposed because of these.

        What was learned of it otherwise stays.  None where there is nothing of this name: then what
        an erasure that was cut off may have left is gone as well.
        """
        subject, total = Subject(key.tenant, session=key.session), Counts()
        async with self._erasing(subject) as marks:
            session = await self._store.session(key)
            known = session or await self._spooled(EntryOwner(key.tenant, (key.session,)))
            if known:
                await marks.put(subject)
            owner = owner_of(key, session.user if session else None)
            await renew_unread(self._store, owner, self._clock())
            passages = await passages_of(self._store, owner, key.session)
            indexed = await self._indexed(key, session)
            for _ in range(ROUNDS):
                # Before and behind its end: whoever embeds it meanwhile looks behind himself too.
                await blank(self._store, owner, passages)
                found = await self._session(key, await self._store.session(key), indexed)
                total.add(found)
                if not found:
                    receipt = Receipt(subject, total, await self._end(marks))
                    return receipt if known or total else None
                await marks.put(subject)
        raise Busy

    async def _session(
        self, key: SessionKey, session: Session | None, indexed: Collection[int]
    ) -> Counts:
        """Remove what is there now; what it was."""
        found = Counts()
        # First: who tries again must find the session to know whose it was.
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user)
        found.memories.update(repeated.memories)
        found.feedback, found.proposals = repeated.feedback, repeated.proposals
        found.spooled = await asyncio.to_thread(
            self._spool.erase, EntryOwner(key.tenant, (key.session,))
        )
        counts = await session_counts(self._store, key, indexed)
        if await self._delete(key):
            found.add(counts)
        return found

    async def _delete(self, key: SessionKey) -> bool:
        """Remove the session, and what leads to it from names that were given out."""
        place = named_session(reference_of(key.session))
        gone = Change(namespace=place.namespace, key=place.key, value=None)
        await self._store.change_items(ItemOwner(key.tenant), [gone])
        forget_session(key)
        return await self._store.delete(key)

    async def _indexed(self, key: SessionKey, session: Session | None) -> Collection[int]:
        """The seqs that recall's index leads to."""
        owner = owner_of(key, session.user if session else None)
        return (await places_of(self._store, owner)).get(key.session, ())

    async def _end(self, marks: Marks) -> float:
        """When it was erased.  All is gone before the files are looked at, and what is said then is
        recorded: raises StoreInUse where a text is in them yet, and is to be repeated.
        """
        at = await marks.settle()
        await self._store.wipe()
        return at

    async def _spooled(self, whose: EntryOwner) -> int:
        return await asyncio.to_thread(self._spool.count, whose)

    @asynccontextmanager
    async def _erasing(self, subject: Subject) -> AsyncIterator[Marks]:
        """One erasure of the same at a time: the end of one would lower the other's mark.

        At its end this process has nothing of what it had in mind of texts, and also where it fails
        no mark lies ahead, if the store takes that: what is said behind it is recorded.
        """
        marks = Marks(self._store, self._clock)
        try:
            async with self._turns.of(subject):
                yield marks
        except Exception:
            await self._begin_lowering(subject, marks)
            raise
        finally:
            forget_texts()

    async def _begin_lowering(self, subject: Subject, marks: Marks) -> None:
        """Nothing is removed any more: what is said from now on need not be lost, nor until the
        lease runs out.  A store that has just failed may take longer than who waits here."""
        if marks.settled or len(self._lowering) >= MOST_LOWERED:
            return
        task = asyncio.create_task(self._lower(subject, marks), name="lowering marks")
        self._lowering.add(task)
        task.add_done_callback(self._lowering.discard)
        await asyncio.wait({task}, timeout=LOWERED_WITHIN)

    async def _lower(self, subject: Subject, marks: Marks) -> None:
        for _ in range(LOWERINGS):
            with suppress(StoreError):
                async with self._turns.of(subject):
                    await marks.settle()
                return
            await asyncio.sleep(LOWER_AFTER)


async def _together(keys: AsyncIterator[SessionKey]) -> AsyncIterator[list[SessionKey]]:
    """As many as are marked at once."""
    some: list[SessionKey] = []
    async for key in keys:
        some.append(key)
        if len(some) == AT_ONCE:
            yield some
            some = []
    yield some
