"""InMemoryStore: the meaning of the contract in dicts, which the stores are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from proxy.memory.archive import (
    Details,
    Message,
    OnProgress,
    Page,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
    do_nothing,
)
from proxy.memory.model import (
    Amendment,
    Commit,
    Exchange,
    LoadOptions,
    Outcome,
    SessionKey,
    Snapshot,
    State,
    Summary,
)
from proxy.recall.index import Owner, Unindexed, read_unindexed
from proxy.stores.common.history import read_cursor, sessions_cursor
from proxy.stores.common.rules import is_refused, session_subject, user_subjects
from tests.support.oracle import archive as oracle_archive
from tests.support.oracle.index import InMemoryIndex
from tests.support.oracle.items import InMemoryItems
from tests.support.oracle.session import SessionState
from tests.support.oracle.usage import InMemoryMeter
from tests.support.oracle.work import InMemoryQueue


class InMemoryStore(InMemoryIndex, InMemoryItems, InMemoryMeter, InMemoryQueue):
    """Everything in dicts.  ``clock`` gives Unix seconds, for expiry alone."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        InMemoryIndex.__init__(self, clock)
        InMemoryItems.__init__(self, clock)
        InMemoryMeter.__init__(self)
        InMemoryQueue.__init__(self)
        self.name = "memory://"
        self._clock = clock
        self._sessions: dict[SessionKey, SessionState] = {}
        self._expiry: dict[SessionKey, float] = {}

    def __repr__(self) -> str:
        return f"<InMemoryStore [{len(self._sessions)} sessions]>"

    def with_long_timeout(self, seconds: float) -> Self:
        return self

    async def open(self) -> None:
        """Nothing to get ready."""

    def server_of(self, key: SessionKey) -> str:
        return ""

    async def ping(self, key: SessionKey | None = None) -> None:
        """Memory is always there."""

    def _began(self, owner: Owner, session: str) -> float | None:
        state = self._find(SessionKey(owner.tenant, session))
        return state.created_at if state else None

    async def unindexed(
        self, key: SessionKey, states: Collection[State], limit: int
    ) -> Unindexed | None:
        return await read_unindexed(self, key, states, limit)

    async def peek(self, key: SessionKey) -> None:
        """Memory is always there."""

    async def warnings(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        self._sessions.clear()
        self._expiry.clear()
        self._shelves.clear()
        self._items.clear()
        self._spent.clear()
        self._pieces.clear()
        self._marks.clear()

    # Memory

    async def load(self, key: SessionKey, options: LoadOptions) -> Snapshot:
        state = self._find(key)
        return state.look(options, self._clock()) if state else Snapshot()

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        state = self._find(key)
        if state is None:
            return {}
        lines = ((id, state.find(id)) for id in ids)
        return {id: line.body for id, line in lines if line is not None}

    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        state = self._find(key)
        lines = ((id, state.find(id)) for id in ids) if state else ()
        return {id: line.wire for id, line in lines if line is not None and line.wire is not None}

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        found: dict[tuple[str, int], Message] = {}
        for session, seqs in places.items():
            state = self._find(SessionKey(tenant, session))
            if state and user in (None, state.owner):
                found |= {(session, message.seq): message for message in state.passages(seqs)}
        return found

    async def commit(self, key: SessionKey, commit: Commit) -> Outcome:
        at = commit.exchange.created_at
        state = self._find(key) or SessionState(at, at, details=Details(ttl=commit.ttl))
        mark = self._mark_of(
            [session_subject(key), *user_subjects(key.tenant, commit.user, state.owner)]
        )
        outcome = state.commit(commit, mark)
        if outcome == "recorded":
            self._sessions[key] = state
            self._slide(key, state)
            for due in commit.work_requests:
                self._enqueue(key, due)
        return outcome

    async def amend(self, key: SessionKey, amendment: Amendment) -> int | None:
        state = self._find(key)
        return state.amend(amendment) if state else None

    # Summaries

    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        state = self._find(key)
        return tuple(state.versions) if state else ()

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
        state = self._find_as_of(key, began)
        if state is None or is_refused(self._mark_of([session_subject(key)]), since):
            return False
        line = state.lines.get(summary.seen)
        if seen not in (None, line.card.id if line else None):
            return False
        return state.put_summary(summary, after, changes)

    async def drop_summaries(self, key: SessionKey) -> bool:
        state = self._find(key)
        return state is not None and state.drop_summaries()

    async def mark_stalled(self, key: SessionKey, began: float | None = None) -> None:
        state = self._find_as_of(key, began)
        if state:
            state.stalled = True

    # Archive

    async def session(self, key: SessionKey) -> Session | None:
        state = self._find(key)
        return oracle_archive.describe(key.session, state) if state else None

    async def tenants(self) -> Sequence[str]:
        return sorted({key.tenant for key in list(self._sessions) if self._find(key)})

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        mine = [key for key in list(self._sessions) if key.tenant == tenant and self._find(key)]
        rows = [oracle_archive.describe(key.session, self._sessions[key]) for key in mine]
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
        state = self._find(key)
        rows = oracle_archive.messages(state, states, after) if state else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].seq) if len(rows) > limit else None)

    async def message(self, key: SessionKey, message: str) -> StoredMessage | None:
        state = self._find(key)
        return state.find(message) if state else None

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        state = self._find(key)
        rows = oracle_archive.lines(state, after) if state else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].position.seq) if len(rows) > limit else None)

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        state = self._find(key)
        record = state.records.get(exchange) if state else None
        if state is None or record is None:
            return None
        return record.value, state.ids(exchange)

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]:
        state = self._find(key)
        rows = oracle_archive.exchanges(state, before) if state else []
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].first) if len(rows) > limit else None)

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        state = self._find(key)
        if state is None:
            return False
        ttl = state.details.ttl
        done = oracle_archive.revise(state, revision)
        if state.details.ttl != ttl:
            self._slide(key, state)
        return done

    async def restore(
        self, key: SessionKey, archived: SessionArchive, since: float | None = None
    ) -> bool:
        whose = [session_subject(key), *user_subjects(key.tenant, archived.session.user)]
        if self._find(key) is not None or is_refused(self._mark_of(whose), since):
            return False
        self._sessions[key] = oracle_archive.restore(archived)
        self._slide(key, self._sessions[key])
        return True

    async def delete(self, key: SessionKey) -> bool:
        state = self._find(key)
        await self.drop(Owner(key.tenant, session=key.session))
        if state and state.owner:
            await self.drop_session(Owner(key.tenant, user=state.owner), key.session)
        self._drop(key)
        self._forget_work(*key)
        return state is not None

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """What it lists are the sessions themselves."""
        return ()

    async def clear(self, tenant: str, user: str) -> None:
        """What has expired is gone when it is looked for."""

    async def move(self, old: str, new: str, on_progress: OnProgress = do_nothing) -> int:
        mine = [key for key in list(self._sessions) if key.tenant == old and self._find(key)]
        free = [key for key in mine if self._find(key._replace(tenant=new)) is None]
        for key in free:
            self._sessions[key._replace(tenant=new)] = self._sessions[key]
            self._expiry[key._replace(tenant=new)] = self._expiry[key]
            self._drop(key)
            await self.drop(Owner(new, user=self._sessions[key._replace(tenant=new)].owner or ""))
        if old != new:
            self._drop_tenant(old)
            self._forget_work(old)
            self._move_items(old, new)
            self._move_spent(old, new)
        on_progress(len(free), len(mine))
        return len(free)

    # Expiry

    def _find(self, key: SessionKey) -> SessionState | None:
        if self._expiry.get(key, 0.0) <= self._clock():
            self._drop(key)
        return self._sessions.get(key)

    def _find_as_of(self, key: SessionKey, began: float | None) -> SessionState | None:
        state = self._find(key)
        return state if state and began in (None, state.created_at) else None

    def _slide(self, key: SessionKey, state: SessionState) -> None:
        self._expiry[key] = self._clock() + state.details.ttl if state.details.ttl else float("inf")

    def _drop(self, key: SessionKey) -> None:
        self._sessions.pop(key, None)
        self._expiry.pop(key, None)
