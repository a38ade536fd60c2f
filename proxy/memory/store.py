"""The contract of a store.  ``tests/stores/test_contract.py`` runs it on every back end.

A store knows sessions, exchanges and messages, and no policy: what to inject, supersede or evict is
decided by the caller.  ``commit`` itself decides what would otherwise be a race: idempotency,
ownership, and the later of two window starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from proxy.memory.archive import Archive, Message
from proxy.memory.erasure import Erasures
from proxy.memory.model import (
    Amendment,
    Commit,
    Kind,
    LoadOptions,
    Outcome,
    SessionKey,
    Snapshot,
    Summary,
    Work,
    WorkRequest,
)


class StoreError(Exception):
    """An operation of the store failed: unreachable, timed out, full, read-only.

    The outcome is unknown; a commit can be repeated safely, by its exchange id.
    """


class StoreTimeout(StoreError):
    """The store did not answer in time."""


class StoreInUse(StoreError):
    """Removed data is not visible any more, but still in the store's files, as an older snapshot
    of them is being read."""


class StoreFull(StoreError):
    """The store is full: it can be read, and data can be erased."""


class Memory(Protocol):
    """What a chat request needs."""

    async def load(self, key: SessionKey, options: LoadOptions) -> Snapshot:
        """A consistent snapshot, in one round trip; ``Snapshot()`` for an unknown session."""
        ...

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        """The JSON of the messages with these ids, without those that do not exist."""
        ...

    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        """The original JSON of these messages, of those where it differs from the body."""
        ...

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        """Active messages by session and seq; ``wire`` is the JSON that a later request carries.

        Without those that do not exist or are not active, and without sessions of other users than
        ``user`` (None: any).  One round trip to each server.
        """
        ...

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        """Append an exchange to history: atomic, contiguous, once per exchange id, durable."""
        ...

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        """Add usage and further choices to a recorded exchange, and replace the edited answer if
        that is unchanged since.  Idempotent; a no-op for an unknown exchange.

        Returns the seq of a message whose text has changed, None without one.
        """
        ...


class Summaries(Protocol):
    """Implemented by every store.  All methods raise StoreError.

    A commit that supersedes or activates a message drops, in the same transaction, every version
    that covers it; the newest remaining version is then current.
    """

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        """The stored versions, newest first; the first is current."""
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
        """Make this the session's summary, with the version ``after`` + 1; False: not done.

        Conditions: the session exists and its current version is ``after`` (0: none).  And of those
        that are not None: its count of ``changes`` is still this; it was not erased at ``since``
        (when it was read) or later; it is the session that ``began`` then (another one may have the
        id of an expired one); and the message at the seq ``summary.seen`` has the id ``seen`` (a
        server that lost its newest writes gives their seqs to others).
        On success the session is not stalled any more.
        """
        ...

    async def drop_summaries(self, key: SessionKey) -> bool:
        """Delete all versions; False if there were none.

        Counts as a change, so that a summary that is being written from one of them is not stored.
        """
        ...

    async def mark_stalled(self, key: SessionKey, began: float | None = None) -> None:
        """Note that the evicted turns could not be summarised: see Snapshot.stalled.

        Unless ``began`` is None, only in the session that began then.
        """
        ...


class Queue(Protocol):
    """Implemented by every store.  All methods raise StoreError; ``now`` is in Unix seconds.

    ``Commit.work_requests`` are enqueued in the commit's transaction (in a Redis Cluster, where the
    queue is in another slot: after it, before the commit returns).
    """

    async def enqueue(self, key: SessionKey, due: WorkRequest) -> None:
        """Request work.

        A new piece of work, or one that waits, is due as this ``due`` says.  One that has failed
        keeps its time, and a claimed one stays claimed: ``finish`` takes the request into account.
        """
        ...

    async def waiting(
        self, now: float, limit: int, without: Collection[str] = ()
    ) -> Sequence[Work]:
        """Work that is due and not claimed, the longest overdue first, except of the tenants
        ``without``."""
        ...

    async def requested_profiles(
        self, tenant: str, sessions: Sequence[str], kind: Kind
    ) -> Mapping[str, str]:
        """The sessions for which work of this kind is in the queue, due or not, claimed or not;
        each with its profile."""
        ...

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        """Claim it ``until`` then; None if it is claimed, gone, or not due any more."""
        ...

    async def extend(self, work: Work, until: float) -> bool:
        """Extend the lease; False if this claim has lost it."""
        ...

    async def finish(self, work: Work, again: float) -> None:
        """Remove finished work; if it was requested meanwhile, it is due at ``again``.

        Without effect if this claim has lost it.
        """
        ...

    async def postpone(self, work: Work, due: float, *, failed: bool) -> None:
        """Release it until ``due``; ``failed`` adds an attempt, else the count is reset to 0.

        Without effect if this claim has lost it.
        """
        ...


class Store(Memory, Archive, Summaries, Queue, Erasures, Protocol):
    """All parts of the contract, and the store's lifetime."""

    name: str
    """The normalised URL without credentials, by which spooled exchanges name their store."""

    async def open(self) -> None:
        """Get ready.  The server need not be reachable: a proxy starts without its store."""
        ...

    def server_of(self, key: SessionKey) -> str:
        """The name of the server that has this session, as far as known; "" if there is only
        one."""
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

    async def warnings(self) -> Sequence[str]:
        """Risks for memory although reads and writes work, as sentences without secrets.

        Empty if there are none, or if the server does not tell.  Raises StoreError.
        """
        ...

    async def close(self) -> None: ...
