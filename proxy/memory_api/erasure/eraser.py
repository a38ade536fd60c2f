"""Permanent erasure of a person or a session, and its marks.

A mark is set before anything is removed, with a time in the future until the end: meanwhile neither
requests that have loaded the erased data nor background work can write it again.  Then everything
is removed from all places, repeatedly until nothing is found, so an interrupted erasure can also be
repeated.  What begins after the receipt is recorded as usual.

Each place is either read after the mark was set, or its writers check for a mark after writing: see
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
from proxy.memory_api.erasure.caches import TextCaches
from proxy.memory_api.erasure.receipt import Counts, Receipt
from proxy.memory_api.overview.counts import MemoryStore, item_counts, session_counts
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
"""Seconds that marks lie in the future: those of an interrupted erasure expire by themselves."""

RENEWAL = 20.0
"""Seconds after which they are renewed."""

AT_ONCE = 100
"""Sessions that are marked with one call to the store."""

CONCURRENT_SESSIONS = 8
"""Sessions that are counted or removed concurrently: each takes a dozen calls to the store."""


class Marks:
    """The marks of one erasure: writes of what began before its end are refused, so that no request
    writes back what it had loaded.

    ``clock`` gives Unix seconds.  All methods raise StoreError.
    """

    def __init__(self, erasures: Erasures, clock: Callable[[], float]) -> None:
        self._erasures, self._clock = erasures, clock
        self._subjects: dict[Subject, bool] = {}
        """The marked ones; True while the mark lies in the future."""
        self._renew_at = clock() + RENEWAL

    @property
    def sessions(self) -> list[str]:
        return [subject.session for subject in self._subjects if subject.session]

    async def put(self, *subjects: Subject) -> None:
        """Mark these, and renew the others if it is time."""
        self._subjects |= dict.fromkeys(subjects, True)
        await self._mark(subjects)
        await self.renew()

    async def renew(self) -> None:
        """Renew the marks if it is time.  Must be called more often than once per lease."""
        if self._clock() < self._renew_at:
            return
        await self._mark(self._held())
        self._renew_at = self._clock() + RENEWAL

    async def lower(self, subjects: Sequence[Subject]) -> float:
        """Set the marks of these, of which nothing is left, to the current time; returns it (Unix
        seconds).

        What begins after this call is recorded again.
        """
        end = self._clock()
        await self._mark(subjects, end)
        self._subjects |= dict.fromkeys(subjects, False)
        return end

    async def settle(self) -> float:
        """Lower all marks at the end of the erasure; returns its time."""
        return await self.lower(self._held())

    @property
    def settled(self) -> bool:
        """Whether no mark lies in the future."""
        return not self._held()

    def _held(self) -> list[Subject]:
        return [subject for subject, is_held in self._subjects.items() if is_held]

    async def _mark(self, subjects: Sequence[Subject], end: float | None = None) -> None:
        for at in range(0, len(subjects), AT_ONCE):
            until = self._clock() + LEASE if end is None else end
            await self._erasures.mark(subjects[at : at + AT_ONCE], until)


LOWER_ATTEMPTS, LOWER_AFTER = 10, 0.5
"""Attempts to lower the marks of a failed erasure, and seconds between them."""

LOWERED_WITHIN = 1.0
"""Seconds for which the failure's answer waits for that."""

MAX_LOWERED = 64
"""Failed erasures whose marks are being lowered; those of more expire by themselves."""

CLOSE_SECONDS = 2.0
"""Seconds for lowering marks when the process ends."""

MAX_ROUNDS = 10
"""Passes through all places while something is still found."""


class Eraser:
    """Counts and erases people and sessions.

    All methods raise StoreError, SpoolError and Busy; what was erased before stays erased, and the
    call can be repeated.  ``clock`` returns Unix seconds.
    """

    def __init__(
        self,
        store: MemoryStore,
        spool: Spool,
        learned: Learned,
        caches: TextCaches,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._spool, self._learned, self._clock = store, spool, learned, clock
        self._caches = caches
        self._turns: Locks[Subject] = Locks()
        """One erasure or count of a subject at a time."""
        self._lowering: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait briefly for marks that are being lowered; others expire by themselves."""
        tasks = list(self._lowering)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # A person

    async def count_person(self, tenant: str, user: str) -> Receipt:
        """What ``erase_person`` would remove now."""
        subject = Subject(tenant, user)
        async with self._turns.of(subject):
            orphaned = await self._store.repair_session_list(tenant, user)
            return Receipt(subject, await self._person_counts(tenant, user, orphaned))

    async def _person_counts(self, tenant: str, user: str, orphaned: Sequence[str]) -> Counts:
        counts = await item_counts(self._store, ItemOwner(tenant, user), self._learned.kinds)
        ids: list[str] = []
        indexed_seqs = await seqs_by_session(self._store, Owner(tenant, user=user))
        async for keys in _batches(self._sessions(tenant, user, orphaned), CONCURRENT_SESSIONS):
            ids += [key.session for key in keys]
            for counts_of_one in await _gather(keys, partial(self._session_counts, indexed_seqs)):
                counts.add(counts_of_one)
        session_ids = set(ids)
        counts.proposals = await self._learned.feedback_forgetter.forget_person(
            tenant, user, session_ids, dry_run=True
        )
        counts.spooled = await self._count_spooled(EntryOwner(tenant, ids, user))
        return counts

    async def erase_person(self, tenant: str, user: str, removed: Counts | None = None) -> Receipt:
        """Remove all data of a person.

        ``removed`` is filled with the counts, also if it fails part-way.
        """
        subject, total = Subject(tenant, user), Counts() if removed is None else removed
        async with self._erasure(subject) as marks:
            # Before the mark, since it may take longer than the lease; current writers maintain
            # the lists.
            orphaned = await self._store.repair_session_list(tenant, user)
            await marks.put(subject)
            for _ in range(MAX_ROUNDS):
                removed_now = Counts()
                try:
                    await self._remove_person(tenant, user, orphaned, marks, removed_now)
                finally:
                    total.add(removed_now)
                if not removed_now:
                    return Receipt(subject, total, await self._finish(marks))
        raise Busy

    async def _remove_person(
        self, tenant: str, user: str, orphaned: Sequence[str], marks: Marks, removed: Counts
    ) -> None:
        """Remove everything once, and add the counts to ``removed``."""
        item_owner, owner = ItemOwner(tenant, user), Owner(tenant, user=user)
        indexed_seqs = await seqs_by_session(self._store, owner)
        async for keys in _batches(self._sessions(tenant, user, orphaned), AT_ONCE):
            await marks.put(*(Subject(tenant, session=key.session) for key in keys))
            # First: proposals made of their feedback must find that it is gone.
            ids = {key.session for key in keys}
            removed.proposals += await self._learned.feedback_forgetter.forget_person(
                tenant, user, ids
            )
            await self._forget_names(tenant, keys)
            for at in range(0, len(keys), CONCURRENT_SESSIONS):
                batch = keys[at : at + CONCURRENT_SESSIONS]
                await _gather(batch, partial(self._erase_session_of, indexed_seqs, removed))
                # Now: if this is interrupted, nobody can find out which ones had been removed.
                await marks.lower([Subject(tenant, session=key.session) for key in batch])
                await marks.renew()
        await self._store.clear(tenant, user)
        await marks.renew()
        items = await item_counts(self._store, item_owner, self._learned.kinds)
        await self._store.drop_items(item_owner, ())
        removed.add(items)
        await marks.renew()
        # After the sessions: what is indexed later of a removed one, the indexer itself removes.
        await drop_index(self._store, owner)
        await marks.renew()
        entry_owner = EntryOwner(tenant, marks.sessions, user)
        removed.spooled += await asyncio.to_thread(self._spool.erase, entry_owner)

    async def _session_counts(
        self, indexed_seqs: Mapping[str, Collection[int]], key: SessionKey
    ) -> Counts:
        """The counts of a session, with feedback that was given before it had a user."""
        counts = await session_counts(self._store, key, indexed_seqs.get(key.session, ()))
        counts.feedback = await count_feedback(self._store, key, None)
        return counts

    async def _erase_session_of(
        self, indexed_seqs: Mapping[str, Collection[int]], removed: Counts, key: SessionKey
    ) -> None:
        """Remove a session of a person who is erased, and add its counts to ``removed``."""
        counts = await session_counts(self._store, key, indexed_seqs.get(key.session, ()))
        feedback = await forget_feedback(self._store, key, None)
        removed.feedback += feedback
        if await self._delete(key):
            removed.add(counts)

    async def _sessions(
        self, tenant: str, user: str, orphaned: Sequence[str]
    ) -> AsyncIterator[SessionKey]:
        """A person's sessions: those in the store's list, those in ``orphaned``, which the list had
        lost, and those that replaying the spool will make theirs."""
        async for session in sessions_of(self._store, tenant, user):
            yield SessionKey(tenant, session.id)
        for id in orphaned:
            key = SessionKey(tenant, id)
            if await self._store.session(key) is None:
                yield key
        for id in await asyncio.to_thread(self._spool.sessions_of, tenant, user):
            key = SessionKey(tenant, id)
            session_found = await self._store.session(key)
            if session_found is None or not session_found.user:
                yield key

    # A session

    async def count_session(self, key: SessionKey) -> Receipt | None:
        """What ``erase_session`` would remove now; None where there is nothing of this name."""
        async with self._turns.of(Subject(key.tenant, session=key.session)):
            return await self._session_receipt(key)

    async def _session_receipt(self, key: SessionKey) -> Receipt | None:
        session = await self._store.session(key)
        counts = await session_counts(self._store, key, await self._indexed_seqs(key, session))
        counts.spooled = await self._count_spooled(EntryOwner(key.tenant, (key.session,)))
        if not counts:
            return None
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user, dry_run=True)
        counts.memories.update(repeated.memories)
        counts.feedback, counts.proposals = repeated.feedback, repeated.proposals
        return Receipt(Subject(key.tenant, session=key.session), counts)

    async def erase_session(self, key: SessionKey, removed: Counts | None = None) -> Receipt | None:
        """Remove a session with all that it owns, and the examples, comments and proposals made of
        it.

        Other memories learned from it stay.  None if there is no such session: then remains of an
        interrupted erasure are removed too.  ``removed``: as for a person.
        """
        subject = Subject(key.tenant, session=key.session)
        total = Counts() if removed is None else removed
        async with self._erasure(subject) as marks:
            session = await self._store.session(key)
            exists = session or await self._count_spooled(EntryOwner(key.tenant, (key.session,)))
            # Also if an interrupted erasure has left a mark: the end of this one lowers it.
            if exists or await self._store.is_erased([subject], self._clock()):
                await marks.put(subject)
            owner = owner_of(key, session.user if session else None)
            await replace_unreadable(self._store, owner, self._clock())
            passages = await passages_of(self._store, owner, key.session)
            indexed = await self._indexed_seqs(key, session)
            for _ in range(MAX_ROUNDS):
                # Before and after: whoever embeds it meanwhile checks again after writing, too.
                await zero_vectors(self._store, owner, passages)
                removed_now = Counts()
                try:
                    await self._remove_session(
                        key, await self._store.session(key), indexed, removed_now
                    )
                finally:
                    total.add(removed_now)
                if not removed_now:
                    receipt = Receipt(subject, total, await self._finish(marks))
                    return receipt if exists or total else None
                await marks.put(subject)
        raise Busy

    async def _remove_session(
        self, key: SessionKey, session: Session | None, indexed: Collection[int], removed: Counts
    ) -> None:
        """Remove everything once, and add the counts to ``removed``."""
        # First: who tries again must find the session to know whose it was.
        user = session.user if session else None
        repeated = await self._learned.drop_session(key, user)
        removed.memories.update(repeated.memories)
        removed.feedback, removed.proposals = repeated.feedback, repeated.proposals
        removed.spooled = await asyncio.to_thread(
            self._spool.erase, EntryOwner(key.tenant, (key.session,))
        )
        counts = await session_counts(self._store, key, indexed)
        await self._forget_names(key.tenant, [key])
        if await self._delete(key):
            removed.add(counts)

    async def _forget_names(self, tenant: str, keys: Sequence[SessionKey]) -> None:
        """Remove the references that were issued for these sessions."""
        places = [reference_place(reference_of(key.session)) for key in keys]
        await self._store.change_items(ItemOwner(tenant), [*map(delete_change, places)])

    async def _delete(self, key: SessionKey) -> bool:
        self._caches.forget_session(key)
        return await self._store.delete(key)

    async def _indexed_seqs(self, key: SessionKey, session: Session | None) -> Collection[int]:
        """The seqs of the session's messages in recall's index."""
        owner = owner_of(key, session.user if session else None)
        return (await seqs_by_session(self._store, owner)).get(key.session, ())

    async def _finish(self, marks: Marks) -> float:
        """Lower the marks and wipe the store's files; returns the time of the erasure.  Raises
        StoreInUse if the files may still contain a text: then the call is to be repeated."""
        at = await marks.settle()
        await self._store.purge_files()
        return at

    async def _count_spooled(self, owner: EntryOwner) -> int:
        return await asyncio.to_thread(self._spool.count, owner)

    @asynccontextmanager
    async def _erasure(self, subject: Subject) -> AsyncIterator[Marks]:
        """One erasure of a subject at a time, since the end of one would lower the other's mark.

        At the end the caches of texts are cleared.  If it fails, the marks are lowered if the store
        permits, so that what follows is recorded.
        """
        marks = Marks(self._store, self._clock)
        try:
            async with self._turns.of(subject):
                yield marks
        except BaseException:
            await self._begin_lowering(subject, marks)
            raise
        finally:
            self._caches.forget(subject.tenant)

    async def _begin_lowering(self, subject: Subject, marks: Marks) -> None:
        """Lower the marks of a failed erasure in a task, and wait for it briefly: without that all
        that is said until the lease expires would be lost."""
        if marks.settled or len(self._lowering) >= MAX_LOWERED:
            return
        task = asyncio.create_task(self._lower(subject, marks), name="lowering marks")
        self._lowering.add(task)
        task.add_done_callback(self._lowering.discard)
        await asyncio.wait({task}, timeout=LOWERED_WITHIN)

    async def _lower(self, subject: Subject, marks: Marks) -> None:
        for _ in range(LOWER_ATTEMPTS):
            with suppress(StoreError):
                async with self._turns.of(subject):
                    await marks.settle()
                return
            await asyncio.sleep(LOWER_AFTER)


async def _gather(keys: Sequence[SessionKey], get: Callable[[SessionKey], Awaitable[T]]) -> list[T]:
    """The results for some sessions, computed concurrently.  If one fails, all have ended when the
    exception is raised, so that nothing is removed after it."""
    answers = await asyncio.gather(*map(get, keys), return_exceptions=True)
    return [_result_or_raise(each) for each in answers]


def _result_or_raise(result: T | BaseException) -> T:
    if isinstance(result, BaseException):
        raise result
    return result


async def _batches(keys: AsyncIterator[SessionKey], size: int) -> AsyncIterator[list[SessionKey]]:
    """Batches of up to ``size`` keys; the last one may be empty."""
    batch: list[SessionKey] = []
    async for key in keys:
        batch.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch
