"""RedisStore: memory in any Redis or Valkey, for any number of hosts.

Loads and commits are one script each; exceptions of the Redis client never leave this package.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from typing import Self

from proxy.memory.archive import OnProgress, do_nothing
from proxy.memory.model import SessionKey, State
from proxy.memory.store import StoreError
from proxy.recall.index import Owner, Unindexed, read_unindexed, sessions_of
from proxy.stores.redis.archive import SCANNED_AT_ONCE, RedisArchive, RedisSummaries, page_of
from proxy.stores.redis.base import PAGES_AT_ONCE, bounded, list_keys, session_keys, with_timeout
from proxy.stores.redis.codec import read_messages, read_session
from proxy.stores.redis.commit import RedisCommits, RedisErasures
from proxy.stores.redis.concerns import QUESTIONS, warnings_of
from proxy.stores.redis.connection import Link
from proxy.stores.redis.index import RedisIndex, index_keys, read_lookup
from proxy.stores.redis.items import RedisItems
from proxy.stores.redis.lists import MOVE_SECONDS
from proxy.stores.redis.read import RedisReading
from proxy.stores.redis.scripts import Scripts
from proxy.stores.redis.work import RedisMeter

ANSWER_SHARE = 0.3
"""Share of the commit timeout left for WAIT's reply, whose error says more than a timeout: the
server checks only ten times a second for waits that are over, and a busy machine adds to that."""


class RedisStore(
    RedisReading,
    RedisCommits,
    RedisArchive,
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

    async def unindexed(
        self, key: SessionKey, states: Collection[State], limit: int
    ) -> Unindexed | None:
        """One round trip if the session has no user: then its index is in its own slot."""
        keys = index_keys(Owner(key.tenant, session=key.session))
        wanted = (int("active" in states), int("superseded" in states))
        reply = await self._read_script(
            self._scripts.unindexed,
            [*session_keys(key), keys[0], keys[2]],
            (key.session, limit + 1, *wanted, SCANNED_AT_ONCE),
        )
        session = read_session(key.session, reply[0])
        if session is None:
            return None
        if reply[1:]:
            _, lookup, (more, *found) = reply
            rows = read_messages(*found)
            if not more or len(rows) > limit:
                return Unindexed(session, read_lookup(lookup, 0), page_of(rows, limit))
        return await read_unindexed(self, key, states, limit)

    async def open(self) -> None:
        """Nothing to do: connections are opened when they are needed."""

    def with_long_timeout(self, seconds: float) -> Self:
        twin = copy(self)
        twin._timeout = twin._commit_timeout = seconds
        twin._page_slots = asyncio.Semaphore(PAGES_AT_ONCE)
        twin._shared = True
        return twin

    async def close(self) -> None:
        if not self._shared:
            await self._link.close()

    def server_of(self, key: SessionKey) -> str:
        return self._link.server_of(session_keys(key)[0])

    @with_timeout("write")
    async def ping(self, key: SessionKey | None = None) -> None:
        at = session_keys(key, prefix=b"ping-")[0] if key else list_keys("")[0]
        # A write that expires at once: a replica, or a server that is out of memory, refuses it.
        # If all keys should be on one server, also a key of another slot: a Cluster refuses both.
        keys = (at, list_keys("")[1]) if self._one_slot else (at,)
        check = ("EVAL", self._scripts.check_commands.text, len(keys), *keys)
        commands = ("SET", at, "", "PX", 1), check
        _, refused = await self._link.many([(at, command) for command in commands])
        if refused:
            names = b", ".join(refused).decode()
            raise StoreError(f"Redis: this user may not run {names} in a script")

    @with_timeout("read")
    async def peek(self, key: SessionKey) -> None:
        await self._scripts.read(self._scripts.peek, session_keys(key)[:1], ())

    @with_timeout("write")
    async def warnings(self) -> Sequence[str]:
        replies = await self._link.each(*QUESTIONS)
        now = self._clock()
        found = (each for server in replies for each in warnings_of(server, self._replicas, now))
        return list(dict.fromkeys(found))

    # Archive

    async def delete(self, key: SessionKey) -> bool:
        # First: without the session nobody would know whose index has it, if this is interrupted.
        if owner := await self._owner_of(key):
            await self.drop_session(Owner(key.tenant, user=owner), key.session)
        status, owner = await bounded(self._remove(key), self._commit_timeout)
        await self._forget_work(key)
        await self.drop(Owner(key.tenant, session=key.session))
        if owner:
            await self.drop_session(Owner(key.tenant, user=owner), key.session)
        return status == 1

    async def _owner_of(self, key: SessionKey) -> str:
        meta = session_keys(key)[0]
        return (await self._run_command(meta, "HGET", meta, "owner") or b"").decode()

    async def clear(self, tenant: str, user: str) -> None:
        """The server has removed expired sessions, staged ones too; listing the user's sessions
        removes their names."""
        async for _ in sessions_of(self, tenant, user):
            pass

    async def purge_files(self) -> None:
        """Nothing to do: only the server writes its files."""

    @with_timeout(MOVE_SECONDS)
    async def move(self, old: str, new: str, on_progress: OnProgress = do_nothing) -> int:
        if old == new:
            return 0
        moved = await self._move_sessions(old, new, self._drop_moved, on_progress)
        await self._move_items(old, new)
        await self._move_spent(old, new)
        return moved

    async def _drop_moved(self, key: SessionKey, user: str, new: str) -> None:
        """Drop a session's work and indexes when it moves to tenant ``new``, or cannot."""
        await self._forget_work(key)
        await self.drop(Owner(key.tenant, session=key.session))
        for tenant in (key.tenant, new) if user else ():
            await self.drop(Owner(tenant, user=user))
