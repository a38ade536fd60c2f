"""InMemoryStore: for tests, demos, and as the oracle of the other stores.  One process, no disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from proxy.memory.archive import Archived, Details, Line, Message, Page, Placed, Revision, Session
from proxy.memory.model import (
    Amendment,
    Ask,
    Commit,
    Exchange,
    Outcome,
    SessionKey,
    Snapshot,
    State,
)
from proxy.memory.summary import Summary
from proxy.recall.index import Owner
from proxy.stores import ledger_archive
from proxy.stores.inmemory_index import InMemoryIndex
from proxy.stores.inmemory_items import InMemoryItems
from proxy.stores.inmemory_usage import InMemoryMeter
from proxy.stores.inmemory_work import InMemoryQueue
from proxy.stores.ledger import Ledger
from proxy.stores.marks import forbids, of_session, of_users
from proxy.stores.places import read_cursor, rehomed, sessions_cursor


class InMemoryStore(InMemoryIndex, InMemoryItems, InMemoryMeter, InMemoryQueue):
    """Everything in dicts.  ``clock`` gives Unix seconds, for expiry alone."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        InMemoryIndex.__init__(self, clock)
        InMemoryItems.__init__(self, clock)
        InMemoryMeter.__init__(self)
        InMemoryQueue.__init__(self)
        self.name = "memory://"
        self._clock = clock
        self._ledgers: dict[SessionKey, Ledger] = {}
        self._expiry: dict[SessionKey, float] = {}

    def __repr__(self) -> str:
        return f"<InMemoryStore [{len(self._ledgers)} sessions]>"

    def patient(self, seconds: float) -> Self:
        return self

    async def open(self) -> None:
        """Nothing to get ready."""

    async def ping(self) -> None:
        """Memory is always there."""

    async def peek(self, key: SessionKey) -> None:
        """Memory is always there."""

    async def concerns(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        self._ledgers.clear()
        self._expiry.clear()
        self._shelves.clear()
        self._items.clear()
        self._spent.clear()
        self._pieces.clear()
        self._marks.clear()

    # Memory

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        ledger = self._find(key)
        return ledger.look(ask, self._clock()) if ledger else Snapshot()

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        ledger = self._find(key)
        if ledger is None:
            return {}
        lines = ((id, ledger.find(id)) for id in ids)
        return {id: line.body for id, line in lines if line is not None}

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        found: dict[tuple[str, int], Message] = {}
        for session, seqs in places.items():
            ledger = self._find(SessionKey(tenant, session))
            if ledger and user in (None, ledger.owner):
                found |= {(session, message.seq): message for message in ledger.passages(seqs)}
        return found

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        at = commit.exchange.created_at
        ledger = self._find(key) or Ledger(at, at, details=Details(ttl=commit.ttl))
        mark = self._mark_of([of_session(key), *of_users(key.tenant, commit.user, ledger.owner)])
        outcome = ledger.commit(commit, mark)
        if outcome == "recorded":
            self._ledgers[key] = ledger
            self._slide(key, ledger)
            for due in commit.due:
                self._enqueue(key, due)
        return outcome

    async def amend(self, key: SessionKey, amendment: Amendment) -> None:
        ledger = self._find(key)
        if ledger:
            ledger.amend(amendment)

    # Summaries

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        ledger = self._find(key)
        return tuple(ledger.versions) if ledger else ()

    async def put_summary(
        self,
        key: SessionKey,
        summary: Summary,
        after: int,
        changes: int | None,
        since: float | None = None,
    ) -> bool:
        ledger = self._find(key)
        if ledger is None or forbids(self._mark_of([of_session(key)]), since):
            return False
        return ledger.put_summary(summary, after, changes)

    async def drop_summaries(self, key: SessionKey) -> bool:
        ledger = self._find(key)
        return ledger is not None and ledger.drop_summaries()

    async def stall(self, key: SessionKey) -> None:
        ledger = self._find(key)
        if ledger:
            ledger.stalled = True

    # Archive

    async def session(self, key: SessionKey) -> Session | None:
        ledger = self._find(key)
        return ledger_archive.describe(key.session, ledger) if ledger else None

    async def tenants(self) -> Sequence[str]:
        return sorted({key.tenant for key in list(self._ledgers) if self._find(key)})

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        mine = [key for key in list(self._ledgers) if key.tenant == tenant and self._find(key)]
        rows = [ledger_archive.describe(key.session, self._ledgers[key]) for key in mine]
        if user is not None:
            rows = [row for row in rows if row.user == user]
        if after is not None:
            place = read_cursor(after)
            rows = [row for row in rows if (row.last_active_at, row.id) < place]
        rows.sort(key=lambda row: (row.last_active_at, row.id), reverse=True)
        more = len(rows) > limit
        page = tuple(rows[:limit])
        return Page(page, sessions_cursor(page[-1].last_active_at, page[-1].id) if more else None)

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        ledger = self._find(key)
        rows = ledger_archive.messages(ledger, states, after) if ledger else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].seq) if len(rows) > limit else None)

    async def message(self, key: SessionKey, message: str) -> Line | None:
        ledger = self._find(key)
        return ledger.find(message) if ledger else None

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[Line]:
        ledger = self._find(key)
        rows = ledger_archive.lines(ledger, after) if ledger else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].position.seq) if len(rows) > limit else None)

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        ledger = self._find(key)
        record = ledger.records.get(exchange) if ledger else None
        if ledger is None or record is None:
            return None
        return record.value, ledger.ids(exchange)

    async def exchanges(self, key: SessionKey, before: int | None, limit: int) -> Page[Placed]:
        ledger = self._find(key)
        rows = ledger_archive.exchanges(ledger, before) if ledger else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].first) if len(rows) > limit else None)

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        ledger = self._find(key)
        if ledger is None:
            return False
        ttl = ledger.details.ttl
        done = ledger_archive.revise(ledger, revision)
        if ledger.details.ttl != ttl:
            self._slide(key, ledger)
        return done

    async def restore(self, key: SessionKey, archived: Archived) -> bool:
        if self._find(key) is not None:
            return False
        self._ledgers[key] = ledger_archive.restore(archived)
        self._slide(key, self._ledgers[key])
        return True

    async def delete(self, key: SessionKey) -> bool:
        ledger = self._find(key)
        await self.drop(Owner(key.tenant, session=key.session))
        if ledger and ledger.owner:
            await self.drop_session(Owner(key.tenant, user=ledger.owner), key.session)
        self._drop(key)
        self._forget_work(*key)
        return ledger is not None

    async def move(self, old: str, new: str) -> int:
        mine = [key for key in list(self._ledgers) if key.tenant == old and self._find(key)]
        free = [key for key in mine if self._find(rehomed(key, new)) is None]
        for key in free:
            self._ledgers[rehomed(key, new)] = self._ledgers[key]
            self._expiry[rehomed(key, new)] = self._expiry[key]
            self._drop(key)
            await self.drop(Owner(new, user=self._ledgers[rehomed(key, new)].owner or ""))
        if old != new:
            self._drop_tenant(old)
            self._forget_work(old)
            self._move_items(old, new)
            self._move_spent(old, new)
        return len(free)

    # Expiry

    def _find(self, key: SessionKey) -> Ledger | None:
        if self._expiry.get(key, 0.0) <= self._clock():
            self._drop(key)
        return self._ledgers.get(key)

    def _slide(self, key: SessionKey, ledger: Ledger) -> None:
        self._expiry[key] = (
            self._clock() + ledger.details.ttl if ledger.details.ttl else float("inf")
        )

    def _drop(self, key: SessionKey) -> None:
        self._ledgers.pop(key, None)
        self._expiry.pop(key, None)
