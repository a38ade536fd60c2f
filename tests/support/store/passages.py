"""History as recall sees it: a store that has been told things, without a proxy around it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from proxy.chat.message import typed_text_of
from proxy.memory.model import Commit, SessionKey
from proxy.recall.index import Owner
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.index_updater import IndexUpdater
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import State, read_state
from proxy.recall.query.query import RecallOptions, RecallQuery
from proxy.recall.ranking.packing import read_rows
from proxy.recall.recaller import Recaller
from proxy.recall.results import Recollection
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.commits import draft, record

TENANT = "tenant"


def said(exchange: str, *texts: str, roles: str = "ua", **fields: object) -> Commit:
    """An exchange that says these texts, by user and assistant in turn."""
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool"}
    drafts = []
    for i, text in enumerate(texts):
        role = names[roles[i % len(roles)]]
        answers = "c1" if role == "tool" else None
        made = draft(exchange, i, role, answers=answers, blank=not text)
        body = json.dumps({"role": role, "content": text}).encode()
        drafts.append(type(made)(card=made.card, turn=made.turn, body=body))
    return record(exchange, *drafts, **fields)  # type: ignore[arg-type]


@dataclass
class Memory:
    """A store, what indexes it, and what recalls from it."""

    store: Backend
    clock: Clock
    indexer: Indexer
    index_updater: IndexUpdater
    recaller: Recaller

    async def commit(self, session: str, commit: Commit, *, indexed: bool = True) -> SessionKey:
        key = SessionKey(TENANT, session)
        assert await self.store.commit(key, commit) == "recorded"
        if indexed:
            await self.indexer.index_session(key)
        return key

    async def state(self, owner: Owner) -> State:
        state = read_state((await self.store.lookup(owner, (), 0)).state)
        assert state is not None
        return state

    async def indexed(self, owner: Owner) -> list[tuple[str, int]]:
        """Session and seq of every passage, in the order of the index."""
        count = (await self.state(owner)).passages
        found = await self.store.rows(owner, range(count + 5))
        rows = read_rows(found.data)[:count]
        return [(found.sessions.get(int(row["session"]), ""), int(row["seq"])) for row in rows]

    async def recall(self, text: str, **fields: object) -> Recollection:
        """As the user kai in a new session, unless told otherwise."""
        known: dict[str, object] = {
            "key": SessionKey(TENANT, "asking"),
            "user": "kai",
            "session_owner": None,
            "budget": 1000,
            "options": RecallOptions(min_score=0),
            "count": lambda each: len(each.split()),
        }
        wanted = RecallQuery(text=text, **(known | fields))  # type: ignore[arg-type]
        return await self.recaller.recall(wanted)


KAI = Owner(TENANT, user="kai")


def whole(body: bytes) -> tuple[str, float]:
    """A body is its text."""
    return body.decode(), 1.0


def ids(found: Recollection) -> list[str]:
    return sorted(each.id for each in found.all)


def memory(store: Backend, clock: Clock) -> Memory:
    """The parts of recall over a store; the index_updater is not open."""
    indexer = Indexer(store, store, typed_text_of, clock)
    index_updater = IndexUpdater(indexer, clock, lambda count: None, delay=0)
    recaller = Recaller(IndexCache(store), store, index_updater, typed_text_of, clock)
    return Memory(store, clock, indexer, index_updater, recaller)
