"""RedisStore: memory in any Redis or Valkey, for any number of hosts.

Loads and commits are one script each; what Redis calls its errors never leaves this package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Self

from proxy.memory.archive import Message, Page, Session
from proxy.memory.model import Ask, SessionKey, Snapshot
from proxy.recall.index import Owner
from proxy.stores import redis_codec as codec
from proxy.stores.places import locate_all
from proxy.stores.redis_commit import RedisCommits
from proxy.stores.redis_concerns import QUESTIONS, concerns_of
from proxy.stores.redis_erasures import RedisErasures
from proxy.stores.redis_history import RedisHistory
from proxy.stores.redis_index import RedisIndex
from proxy.stores.redis_items import RedisItems
from proxy.stores.redis_keys import field_of, list_keys, session_keys
from proxy.stores.redis_link import Link, bounded
from proxy.stores.redis_load import load
from proxy.stores.redis_revise import RedisRevisions
from proxy.stores.redis_scripts import Scripts
from proxy.stores.redis_summaries import RedisSummaries
from proxy.stores.redis_usage import RedisMeter
from proxy.stores.redis_values import read_stored

ANSWER_SHARE = 0.3
"""Of the commit's time, for WAIT's answer, which says more than a timeout: the server looks for
waits that are over ten times a second, and a busy machine takes longer to hear it."""

MOVE_SECONDS = 3600.0
"""Moving a tenant, or finding them all, takes as long as it takes; it must end even so."""


class RedisStore(
    RedisCommits,
    RedisHistory,
    RedisRevisions,
    RedisErasures,
    RedisIndex,
    RedisItems,
    RedisMeter,
    RedisSummaries,
):
    """``timeout`` bounds each read, ``commit_timeout`` each write, in seconds; see RedisBase."""

    def __init__(
        self,
        name: str,
        link: Link,
        *,
        one_slot: bool,
        timeout: float = 0.25,
        commit_timeout: float = 0.5,
        wait_replicas: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        scripts = Scripts(link, wait_replicas, commit_timeout * (1 - ANSWER_SHARE))
        super().__init__(link, scripts, timeout, commit_timeout, clock, one_slot=one_slot)
        self.name = name
        self._shared = False
        self._replicas = wait_replicas

    def __repr__(self) -> str:
        return f"<RedisStore [{self.name}]>"

    async def open(self) -> None:
        """Nothing to get ready: connections are made when they are needed."""

    def patient(self, seconds: float) -> Self:
        twin = copy(self)
        twin._timeout = twin._commit_timeout = seconds
        twin._shared = True
        return twin

    async def close(self) -> None:
        if not self._shared:
            await self._link.close()

    async def ping(self) -> None:
        key = list_keys("")[0]
        # A write that leaves nothing: a replica, or a server that is out of memory, refuses it.
        command = ("SET", key, "", "PX", 1)
        await self._ask(key, *command)

    async def peek(self, key: SessionKey) -> None:
        meta = session_keys(key)[0]
        await bounded(self._link.many([(meta, ("EXISTS", meta))]), self._timeout)

    async def concerns(self) -> Sequence[str]:
        replies = await bounded(self._link.each(*QUESTIONS), self._commit_timeout)
        found = (concern for server in replies for concern in concerns_of(server, self._replicas))
        return list(dict.fromkeys(found))

    # Memory

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        work = load(self._scripts, key, ask, self._clock())
        return await bounded(work, self._timeout)

    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        return await bounded(self._bodies(key, ids), self._timeout)

    async def _bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        places = locate_all(ids)
        if not places:
            return {}
        _, _, log, _, exchanges, *_ = session_keys(key)
        fields = [f"x{place.exchange}" for place in places]
        values = await self._ask(exchanges, "HMGET", exchanges, *fields)
        seqs: dict[str, int] = {}
        for place, value in zip(places, values, strict=True):
            seq = read_stored(value).span.seq(place.number) if value else None
            if seq is not None:
                seqs[f"{place.exchange}.{place.number}"] = seq
        if not seqs:
            return {}
        found = await self._ask(log, "HMGET", log, *map(field_of, seqs.values()))
        return {id: body for id, body in zip(seqs, found, strict=True) if body is not None}

    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        whose = (int(user is not None), user or "")
        calls = [
            (session_keys(SessionKey(tenant, name)), (*whose, *seqs))
            for name, seqs in places.items()
        ]
        work = self._scripts.many(self._scripts.passages, calls)
        return codec.read_passages(list(places), await bounded(work, self._timeout))

    # Archive

    async def tenants(self) -> Sequence[str]:
        return await bounded(self._archive.tenants(), MOVE_SECONDS)

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        work = self._archive.sessions(tenant, user, after, limit)
        return await bounded(work, self._timeout)

    async def delete(self, key: SessionKey) -> bool:
        status, owner = await bounded(self._archive.delete(key), self._commit_timeout)
        await self._forget_work(key)
        await self.drop(Owner(key.tenant, session=key.session))
        if owner:
            await self.drop_session(Owner(key.tenant, user=owner), key.session)
        return status == 1

    async def move(self, old: str, new: str) -> int:
        return await bounded(self._move(old, new), MOVE_SECONDS)

    async def _move(self, old: str, new: str) -> int:
        if old == new:
            return 0
        moved = await self._archive.move(old, new, self._drop_moved)
        await self._move_items(old, new)
        await self._move_spent(old, new)
        return moved

    async def _drop_moved(self, key: SessionKey, user: str, new: str) -> None:
        """Drop the work on a session that moves to tenant ``new``, or should, and its indexes."""
        await self._forget_work(key)
        await self.drop(Owner(key.tenant, session=key.session))
        for tenant in (key.tenant, new) if user else ():
            await self.drop(Owner(tenant, user=user))
