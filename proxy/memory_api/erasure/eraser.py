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
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

from proxy.learning.collection import Busy, delete_change
from proxy.learning.feedback import count_feedback, forget_feedback
from proxy.learning.learned import Learned
from proxy.memory.archive import Session
from proxy.memory.erasure import Erasures, Subject
from proxy.memory.items import ItemOwner
from proxy.memory.locks import Locks
from proxy.memory.model import SessionKey
from proxy.memory.naming import reference_of, reference_place
from proxy.memory.recording.spool import Spool
from proxy.memory.recording.spool_owners import EntryOwner
from proxy.memory.store import StoreError
from proxy.memory_api.erasure.caches import forget_session, forget_texts
from proxy.memory_api.erasure.receipt import Counts, Receipt
from proxy.memory_api.overview.counts import Counted, item_counts, session_counts
from proxy.recall.index import Owner, owner_of, sessions_of
from proxy.recall.indexing.indexer import (
    drop_index,
    passages_of,
    replace_unreadable,
    seqs_by_session,
    zero_vectors,
)

T = TypeVar("T")

LEASE = 60.0
"""Seconds that marks lie ahead: what an erasure that was cut off leaves runs out by itself."""

RENEWAL = 20.0
"""Seconds after which they are set anew."""

AT_ONCE = 100
"""Sessions that are marked with one question to the store: some have thousands."""

SEVERAL = 8
"""Sessions that are counted or removed at the same time: each asks the store a dozen times."""


class Marks:
    """The marks of one erasure: what began before its end is refused, so that no request writes
    back what it had loaded.

    ``clock`` gives Unix seconds.  All methods raise StoreError.
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
        """Lower all marks to this moment, the end of the erasure, and return it (Unix seconds).

        What begins after this call is recorded again; what begins during it only if its mark is
        lowered already.
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

MAX_LOWERED = 64
"""Erasures whose marks are being lowered; those of others run out by themselves."""

ENDING = 2.0
"""Seconds that the marks have at the end of the process."""

ROUNDS = 10
"""How often all places are gone through while something is found in them still."""


class Eraser:
    """Counts and erases people and sessions.

    All methods raise StoreError, SpoolError and Busy; what was erased until then stays erased, and
    the call can be repeated.  ``clock`` gives Unix seconds.
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
            lost = await self._store.repair_session_list(tenant, user)
            return Receipt(subject, await self._person_counts(tenant, user, lost))

    async def _person_counts(self, tenant: str, user: str, lost: Sequence[str]) -> Counts:
        counts = await item_counts(self._store, ItemOwner(tenant, user), self._learned.kinds)
        ids: list[str] = []
        places = await seqs_by_session(self._store, Owner(tenant, user=user))
        async for keys in _batches(self._sessions(tenant, user, lost), SEVERAL):
            ids += [key.session for key in keys]
            for found in await _gather(keys, partial(self._history, places)):
                counts.add(found)
        theirs = set(ids)
        counts.proposals = await self._learned.feedback_forgetter.forget_person(
            tenant, user, theirs, dry_run=True
        )
        counts.spooled = await self._spooled(EntryOwner(tenant, ids, user))
        return counts

    async def person(self, tenant: str, user: str, gone: Counts | None = None) -> Receipt:
        """Remove all that is known of a person, and all that they said.

        ``gone`` is told what is, also where it fails part-way.
        """
        subject, total = Subject(tenant, user), Counts() if gone is None else gone
        async with self._erasing(subject) as marks:
            # Before the mark, which this may outlast: who writes now writes the lists as well.
            lost = await self._store.repair_session_list(tenant, user)
            await marks.put(subject)
            for _ in range(ROUNDS):
                found = Counts()
                try:
                    await self._person(tenant, user, lost, marks, found)
                finally:
                    total.add(found)
                if not found:
                    return Receipt(subject, total, await self._end(marks))
        raise Busy

    async def _person(
        self, tenant: str, user: str, lost: Sequence[str], marks: Marks, found: Counts
    ) -> None:
        """Remove what is there now, and add to ``found`` what it was."""
        item_owner, owner = ItemOwner(tenant, user), Owner(tenant, user=user)
        places = await seqs_by_session(self._store, owner)
        async for keys in _batches(self._sessions(tenant, user, lost), AT_ONCE):
            await marks.put(*(Subject(tenant, session=key.session) for key in keys))
            # First: what is proposed of their remarks must find that they are gone.
            ids = {key.session for key in keys}
            found.proposals += await self._learned.feedback_forgetter.forget_person(
                tenant, user, ids
            )
            await self._forget_names(tenant, keys)
            for at in range(0, len(keys), SEVERAL):
                some = keys[at : at + SEVERAL]
                await _gather(some, partial(self._erase_session_of, places, found))
                await marks.renew()
        await self._store.clear(tenant, user)
        await marks.renew()
        kept = await item_counts(self._store, item_owner, self._learned.kinds)
        await self._store.drop_items(item_owner, ())
        found.add(kept)
        await marks.renew()
        # Behind the sessions: what is indexed of one that is gone is removed by who indexes it.
        await drop_index(self._store, owner)
        await marks.renew()
        whose = EntryOwner(tenant, marks.sessions, user)
        found.spooled += await asyncio.to_thread(self._spool.erase, whose)

    async def _history(self, places: Mapping[str, Collection[int]], key: SessionKey) -> Counts:
        """What there is of a session, with what was said of it while it was nobody's."""
        counts = await session_counts(self._store, key, places.get(key.session, ()))
        counts.feedback = await count_feedback(self._store, key, None)
        return counts

    async def _erase_session_of(
        self, places: Mapping[str, Collection[int]], found: Counts, key: SessionKey
    ) -> None:
        """Remove a session of somebody who is erased, and add to ``found`` what it was."""
        counts = await session_counts(self._store, key, places.get(key.session, ()))
        feedback = await forget_feedback(self._store, key, None)
        found.feedback += feedback
        if await self._delete(key):
            found.add(counts)

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

    async def session(self, key: SessionKey, gone: Counts | None = None) -> Receipt | None:
        """Remove a session with all that it owns, and what repeats it: examples, comments, and what
        was proposed because of these.

        What was learned of it otherwise stays.  None where there is nothing of this name: then what
        an erasure that was cut off may have left is gone as well.  ``gone``: as for a person.
        """
        subject = Subject(key.tenant, session=key.session)
        total = Counts() if gone is None else gone
        async with self._erasing(subject) as marks:
            session = await self._store.session(key)
            known = session or await self._spooled(EntryOwner(key.tenant, (key.session,)))
            # Also where the mark of one that was cut off lies ahead: the end of this one lowers it.
            if known or await self._store.is_erased([subject], self._clock()):
                await marks.put(subject)
            owner = owner_of(key, session.user if session else None)
            await replace_unreadable(self._store, owner, self._clock())
            passages = await passages_of(self._store, owner, key.session)
            indexed = await self._indexed(key, session)
            for _ in range(ROUNDS):
                # Before and behind its end: whoever embeds it meanwhile looks behind himself too.
                await zero_vectors(self._store, owner, passages)
                found = Counts()
                try:
                    await self._session(key, await self._store.session(key), indexed, found)
                finally:
                    total.add(found)
                if not found:
                    receipt = Receipt(subject, total, await self._end(marks))
                    return receipt if known or total else None
                await marks.put(subject)
        raise Busy

    async def _session(
        self, key: SessionKey, session: Session | None, indexed: Collection[int], found: Counts
    ) -> None:
        """Remove what is there now, and add to ``found`` what it was."""
        # First: who tries again must find the session to know whose it was.
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user)
        found.memories.update(repeated.memories)
        found.feedback, found.proposals = repeated.feedback, repeated.proposals
        found.spooled = await asyncio.to_thread(
            self._spool.erase, EntryOwner(key.tenant, (key.session,))
        )
        counts = await session_counts(self._store, key, indexed)
        await self._forget_names(key.tenant, [key])
        if await self._delete(key):
            found.add(counts)

    async def _forget_names(self, tenant: str, keys: Sequence[SessionKey]) -> None:
        """Remove what leads to these sessions from names that were given out."""
        places = [reference_place(reference_of(key.session)) for key in keys]
        await self._store.change_items(ItemOwner(tenant), [*map(delete_change, places)])

    async def _delete(self, key: SessionKey) -> bool:
        forget_session(key)
        return await self._store.delete(key)

    async def _indexed(self, key: SessionKey, session: Session | None) -> Collection[int]:
        """The seqs that recall's index leads to."""
        owner = owner_of(key, session.user if session else None)
        return (await seqs_by_session(self._store, owner)).get(key.session, ())

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
        or the process ends no mark lies ahead, if the store takes that: what is said behind it is
        recorded.
        """
        marks = Marks(self._store, self._clock)
        try:
            async with self._turns.of(subject):
                yield marks
        except BaseException:
            await self._begin_lowering(subject, marks)
            raise
        finally:
            forget_texts(subject.tenant)

    async def _begin_lowering(self, subject: Subject, marks: Marks) -> None:
        """Nothing is removed any more: what is said from now on need not be lost, nor until the
        lease runs out.  A store that has just failed may take longer than who waits here."""
        if marks.settled or len(self._lowering) >= MAX_LOWERED:
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


async def _gather(keys: Sequence[SessionKey], ask: Callable[[SessionKey], Awaitable[T]]) -> list[T]:
    """The answers for some sessions, asked for at once; where one fails the others have ended too:
    nothing is removed any more behind a failure."""
    answers = await asyncio.gather(*map(ask, keys), return_exceptions=True)
    return [_answer(each) for each in answers]


def _answer(found: T | BaseException) -> T:
    if isinstance(found, BaseException):
        raise found
    return found


async def _batches(keys: AsyncIterator[SessionKey], most: int) -> AsyncIterator[list[SessionKey]]:
    """So many at once; the last ones may be none."""
    some: list[SessionKey] = []
    async for key in keys:
        some.append(key)
        if len(some) == most:
            yield some
            some = []
    yield some
