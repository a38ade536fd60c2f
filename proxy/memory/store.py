"""The contract of a store.  ``tests/stores/test_contract.py`` runs it on every back end.

A store knows sessions, exchanges and messages, and no policy: what to inject, to supersede or to
evict has been decided before it is called.  Decided inside ``commit``, because only there it is
free of races: idempotency, ownership, and the later of two window starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from proxy.memory.archive import Archive, Message
from proxy.memory.erasure import Erasures
from proxy.memory.model import (
    Amendment,
    Ask,
    Commit,
    Due,
    Kind,
    Outcome,
    SessionKey,
    Snapshot,
    Summary,
    Work,
)


class StoreError(Exception):
    """A store could not do what it was asked: unreachable, out of time, full, read-only.

    Nothing is known of the outcome; committing again is safe by exchange id.
    """


class StoreTimeout(StoreError):
    """The store did not answer in time."""


class StoreInUse(StoreError):
    """What was removed is gone for everybody, but still in the store's files: somebody is reading
    what they were."""


class StoreFull(StoreError):
    """The store has no room: it can be read, and what is there can be erased."""


class Memory(Protocol):
    """What a chat request needs."""

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        """One consistent look, in one round trip.  An unknown session is ``Snapshot()``."""
        ...

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        """The JSON of the messages with these ids; ids that are not there are left out."""
        ...

    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        """The JSON as it came of those of these messages that said more than is carried back."""
        ...

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        """Active messages by session and seq; ``wire`` is the JSON that a later request carries.

        Left out is what is not there or not active any more, and all sessions that do not belong
        to ``user`` (None: of anybody).  One round trip to each server.
        """
        ...

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        """Put an exchange into history: atomic, contiguous, once per exchange id, durable."""
        ...

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        """Add usage and further choices to a recorded exchange, and put the answer that is edited
        in its place, if that is as it was.  Doing it twice is doing it once.

        The seq of what says something else now, None where nothing does.  An unknown exchange is a
        no-op.
        """
        ...


class Summaries(Protocol):
    """Implemented by every store.  All methods raise StoreError.

    A commit that supersedes or activates a message drops, in the same instant, every version that
    covers its place: the newest of the others is the summary then.
    """

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        """The versions that are kept, newest first; the first is the one in force."""
        ...

    async def put_summary(
        self,
        key: SessionKey,
        summary: Summary,
        after: int,
        changes: int | None,
        since: float | None = None,
        began: float | None = None,
        seen: str | None = None,
    ) -> bool:
        """Make this the session's summary, its version one above ``after``; False: not done.

        Only if the version in force is ``after`` (0: there is none), the session exists, and, but
        for None, its count of ``changes`` is still this one, it was not erased at ``since`` (when
        it was read) or later, it is the one that ``began`` then (one that expires leaves no mark
        behind, and another may have its id), and the message at the seq that the summary has seen
        is ``seen``, by its id: a server that has lost its newest writes gives their seqs to others.
        The session is not stalled any more.
        """
        ...

    async def drop_summaries(self, key: SessionKey) -> bool:
        """Forget all versions; False if there were none.

        Counts as a change, so that what was being written from one of them is not put.
        """
        ...

    async def stall(self, key: SessionKey, began: float | None = None) -> None:
        """Mark that the turns behind the window could not be summarised: see Snapshot.stalled.

        But for None only in the session that ``began`` then.
        """
        ...


class Queue(Protocol):
    """Implemented by every store.  All methods raise StoreError; ``now`` is in Unix seconds.

    ``Commit.due`` enqueues with the commit itself, all or nothing (in a Redis Cluster, where the
    queue lives in another slot: behind it, and before it returns).
    """

    async def enqueue(self, key: SessionKey, due: Due) -> None:
        """Ask for work.

        A new piece is due as ``due`` says, and one that waits as the latest ``due`` says; but one
        that has failed keeps its time, and one that is held stays held: ``finish`` minds it.
        """
        ...

    async def waiting(
        self, now: float, limit: int, without: Collection[str] = ()
    ) -> Sequence[Work]:
        """What is due and not held, the longest overdue first; nothing of these tenants."""
        ...

    async def asked_for(
        self, tenant: str, sessions: Sequence[str], kind: Kind
    ) -> Mapping[str, str]:
        """Those of the sessions for which work of this kind is in the queue, due or not, held or
        not; each with the profile that says how to do it."""
        ...

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        """Hold it ``until`` then; None if it is held, gone, or not due any more."""
        ...

    async def extend(self, work: Work, until: float) -> bool:
        """Hold it longer; False if it is not held by this claim any more."""
        ...

    async def finish(self, work: Work, again: float) -> None:
        """It is done: forget it; if it was asked for meanwhile, it is due ``again``.

        Without effect if it is not held by this claim any more.
        """
        ...

    async def put_off(self, work: Work, due: float, *, failed: bool) -> None:
        """Let go of it until ``due``; ``failed`` counts as an attempt, else none have failed.

        Without effect if it is not held by this claim any more.
        """
        ...


class Store(Memory, Archive, Summaries, Queue, Erasures, Protocol):
    """Everything, and its lifetime."""

    name: str
    """The normalised URL without credentials: spooled exchanges belong to it."""

    async def open(self) -> None:
        """Get ready.  Does not need the server to be there: a proxy starts without its store."""
        ...

    def part_of(self, key: SessionKey) -> str:
        """Which of its servers has this session, as far as known; "" where there is but one."""
        ...

    async def ping(self, key: SessionKey | None = None) -> None:
        """Raise StoreError unless reads and writes work: on the server that has this session, if
        one is given."""
        ...

    async def peek(self, key: SessionKey) -> None:
        """Raise StoreError unless the server that has this session can be read.

        Cheap whatever the session's size, and no slow work on a session delays it.
        """
        ...

    async def concerns(self) -> Sequence[str]:
        """What endangers memory although reads and writes work: sentences without secrets.

        Empty where all is well, or where the server does not tell.  Raises StoreError.
        """
        ...

    async def close(self) -> None: ...
