"""The lists of sessions in Redis (of each tenant, of each user), and deleting and moving sessions.

A list is in another slot than its sessions: each session that it names is looked up by itself, and
names of expired ones are removed.  A user's list keeps the names of sessions that have lost their
head but not all other keys (evicted, say), since an erasure of the user finds them by it alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from math import inf

from proxy.memory.archive import PAGE_BYTES, OnProgress, Page, Session
from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey
from proxy.stores.common.history import read_cursor, sessions_cursor
from proxy.stores.redis.base import (
    ANY_LIST,
    RedisBase,
    format_time,
    head_pattern,
    limits_concurrency,
    list_keys,
    mark_key,
    read_head,
    read_tenant,
    session_keys,
    with_timeout,
)
from proxy.stores.redis.codec import read_session
from proxy.stores.redis.connection import collect_keys
from proxy.stores.redis.wire import raise_errors

DropIndexes = Callable[[SessionKey, str, str], Awaitable[None]]
"""Drops the indexes that moving a session makes wrong; gets its key, its owner and the new
tenant."""

ListPosition = tuple[float, str]
"""Where a session is in a list: the time of its last activity, and its id."""

START: ListPosition = (inf, "")
"""Before everything in a list: the latest activity comes first."""

Found = tuple[ListPosition, Session]

FIRST_BATCH, SMALL_BATCH_BYTES = 2, 1_000_000
"""Sessions in the first batch, and the bytes of a batch up to which the next is twice as large: a
session may have a system message of megabytes."""

SKIPPED_AT_ONCE = 500
"""Names that are checked at once after a batch of expired sessions only."""

TIMEOUT_SHARE = 0.5
"""Share of a read's timeout after which a page ends early."""

MOVE_SECONDS = 3600.0
"""Timeout (s) of moving a tenant and of listing all tenants."""


class RedisLists(RedisBase):
    """See :class:`proxy.memory.archive.Archive`; methods that begin with _ raise Redis' errors."""

    @with_timeout(MOVE_SECONDS)
    async def tenants(self) -> Sequence[str]:
        keys = await collect_keys(self._link.scan(ANY_LIST))
        return sorted({tenant for tenant in map(read_tenant, keys) if tenant})

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """Add the user's sessions that their list lacks, found by the owner in each session's head.

        A list lacks some if its key was evicted, if a server came back empty, or if a proxy was
        killed between writing a session and its lists.
        """
        (listed, _) = list_keys(tenant, user)
        lost = {name.decode() for name in await self._run_command(listed, "ZRANGE", listed, 0, -1)}
        async for keys in self._scan(head_pattern(tenant)):
            heads = {key: name for key in keys if (name := read_head(key))}
            lost.difference_update(heads.values())
            if heads:
                await self._relist_some(tenant, user, heads)
        return sorted(lost)

    @with_timeout("write")
    async def _relist_some(self, tenant: str, user: str, heads: Mapping[bytes, str]) -> None:
        commands = [(key, ("HMGET", key, "owner", "active_at", "ttl")) for key in heads]
        found = zip(heads.values(), await self._link.many(commands), strict=True)
        theirs = [(name, at, ttl) for name, (owner, at, ttl) in found if owner == user.encode()]
        arguments = [part for one in theirs for part in one]
        for whose in (None, user) if theirs else ():
            keys = list_keys(tenant, whose)
            await self._scripts.write(self._scripts.relist, keys, arguments)

    @limits_concurrency
    @with_timeout("read")
    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        now = asyncio.get_running_loop().time
        until = now() + TIMEOUT_SHARE * self._timeout
        place: ListPosition | None = START if after is None else read_cursor(after)
        found, size, at_once = list[Found](), 0, FIRST_BATCH
        while place is not None and len(found) <= limit and (size < PAGE_BYTES or not found):
            batch_limit = min(at_once, limit + 1 - len(found))
            existing, read, place = await self._read_batch(tenant, user, place, batch_limit)
            found += existing
            size, at_once = size + read, 2 * at_once if read < SMALL_BATCH_BYTES else FIRST_BATCH
            if now() >= until:
                break
        if len(found) > limit:
            place = found[limit - 1][0]
        more = None if place is None else sessions_cursor(*place)
        return Page(tuple(session for _, session in found[:limit]), more)

    async def _read_batch(
        self, tenant: str, user: str | None, place: ListPosition, batch_limit: int
    ) -> tuple[list[Found], int, ListPosition | None]:
        """Read some sessions of a list: those that exist, the bytes that were read, and
        the position up to which the list is read (None at its end).

        Expired names are removed at once, so that a read that times out has made progress.
        """
        rows = await self._places_after(list_keys(tenant, user)[0], place, batch_limit)
        if not rows:
            return [], 0, None
        sessions, size = await self._read_sessions(tenant, [name for _, name in rows])
        existing, expired = list[Found](), dict[ListPosition, bool]()
        for row, session in zip(rows, sessions, strict=True):
            if session is not None and user in (None, session.user):
                existing.append((row, session))
            else:
                expired[row] = session is None
        await self._drop_expired(tenant, user, expired)
        end = rows[-1] if existing else await self._skip_expired(tenant, user, rows[-1])
        return existing, size, end

    async def _skip_expired(
        self, tenant: str, user: str | None, place: ListPosition
    ) -> ListPosition:
        """The position after the expired sessions that follow, at most ``SKIPPED_AT_ONCE``; they
        are removed from the list."""
        rows = await self._places_after(list_keys(tenant, user)[0], place, SKIPPED_AT_ONCE)
        metas = [session_keys(SessionKey(tenant, name))[0] for _, name in rows]
        heads = await self._link.many([(meta, ("EXISTS", meta)) for meta in metas])
        pairs = zip(rows, heads, strict=True)
        expired = [row for row, _ in takewhile(lambda pair: not pair[1], pairs)]
        await self._drop_expired(tenant, user, dict.fromkeys(expired, True))
        return expired[-1] if expired else place

    async def _drop_expired(
        self, tenant: str, user: str | None, expired: Mapping[ListPosition, bool]
    ) -> None:
        """Remove these from a list; ``expired`` says of each whether the session's head is gone.

        A user's list keeps sessions without a head that have other keys.
        """
        headless = [name for (_, name), lost in expired.items() if lost and user is not None]
        keys = [session_keys(SessionKey(tenant, name)) for name in headless]
        left = await self._link.many([(rest[0], ("EXISTS", *rest)) for _, *rest in keys])
        with_keys = {name for name, has_keys in zip(headless, left, strict=True) if has_keys}
        removed = [
            part for at, name in expired if name not in with_keys for part in (name, repr(at))
        ]
        if removed:
            await self._scripts.read(self._scripts.forget, list_keys(tenant, user), removed)

    async def _places_after(
        self, key: bytes, place: ListPosition, limit: int
    ) -> list[ListPosition]:
        """Some of the list after a position, the latest first; none at its end."""
        rank = await self._rank(key, place) if place != START else 0
        while True:
            command = ("ZREVRANGE", key, rank, rank + limit - 1, "WITHSCORES")
            (reply,) = raise_errors(await self._link.run(key, command))
            pairs = zip(reply[1::2], reply[::2], strict=True)
            rows = [(float(score), name.decode()) for score, name in pairs]
            behind = [row for row in rows if row < place]
            if behind or not rows:
                return behind
            rank += len(rows)

    async def _rank(self, key: bytes, place: ListPosition) -> int:
        """A rank at or before the first entry after a position.

        Any number of sessions may have the same time, as imported ones without times do: so the
        rank is that of the name, and only if it has moved that of the first with its time.
        """
        at, name = place
        score, rank, newer = raise_errors(
            await self._link.run(
                key,
                ("ZSCORE", key, name),
                ("ZREVRANK", key, name),
                ("ZCOUNT", key, f"({at!r}", "+inf"),
            )
        )
        return rank + 1 if rank is not None and float(score) == at else int(newer)

    async def _read_sessions(
        self, tenant: str, names: Sequence[str]
    ) -> tuple[list[Session | None], int]:
        """The sessions of these names (None: no head), and their bytes."""
        metas = [session_keys(SessionKey(tenant, name))[0] for name in names]
        replies = await self._link.many([(meta, ("HGETALL", meta)) for meta in metas])
        sessions = [read_session(name, fields) for name, fields in zip(names, replies, strict=True)]
        return sessions, sum([len(field) for fields in replies for field in fields])

    async def _remove(self, key: SessionKey, stamp: bytes = b"") -> tuple[int, str]:
        """Remove a session; a status and its owner ("": none or unknown).

        1: removed; 0: it has changed since ``stamp``, and stays; -1: there was none.
        """
        try:
            reply = await self._scripts.write(self._scripts.discard, session_keys(key), (stamp,))
        finally:
            self._clear_caches()
        status, owner = int(reply[0]), reply[1].decode()
        if status == 1:
            await self._remove_from_lists(key, owner)
        return status, owner

    async def _remove_from_lists(self, key: SessionKey, owner: str) -> None:
        for user in _list_owners(owner):
            keys = list_keys(key.tenant, user)
            await self._scripts.write(self._scripts.forget, keys, (key.session, ""))

    async def _move_sessions(
        self, old: str, new: str, drop: DropIndexes, on_progress: OnProgress
    ) -> int:
        """Copy, then delete, session by session, so that an interrupted move can be repeated."""
        listed = list_keys(old)[0]
        (names,) = raise_errors(await self._link.run(listed, ("ZRANGE", listed, 0, -1)))
        moved = 0
        for name in names:
            moved += await self._move_session(SessionKey(old, name.decode()), new, drop)
            on_progress(moved, len(names))
        return moved

    async def _move_session(self, key: SessionKey, new: str, drop: DropIndexes) -> bool:
        """Move a session; False if it does not exist any more, or ``new`` has one with this id.

        If it is written to between copying and deleting it is copied again; the stamp makes sure
        that this replaces the earlier copy and nothing else.
        """
        target = key._replace(tenant=new)
        copied = b""
        while True:
            dump = await self._scripts.read(self._scripts.dump, session_keys(key), ())
            if not dump:
                return False
            stamp, left, owner, at, ttl, payloads = dump
            arguments = (copied or stamp, left, *payloads)
            adopted = await self._scripts.write(
                self._scripts.adopt, session_keys(target), arguments
            )
            await drop(key, owner.decode(), new)
            if not adopted:
                return False
            copied = stamp
            await self._add_to_lists(target, owner.decode(), (at, ttl))
            status, _ = await self._remove(key, stamp)
            if status != 0:  # else it was written to meanwhile
                return True

    async def _add_to_lists(
        self,
        key: SessionKey,
        owner: str,
        activity: Sequence[bytes],
        since: float | None = None,
        *,
        new: bool = True,
    ) -> bool:
        """Put a session into its tenant's list and its owner's.

        ``activity`` is its last activity and its ttl.  False if its owner was erased after
        ``since``, unless it is not ``new`` and in the list already.
        """
        arguments = (key.session, *activity, format_time(since), int(new))
        for user in _list_owners(owner):
            keys = [*list_keys(key.tenant, user), mark_key(Subject(key.tenant, user or ""))]
            if not await self._scripts.write(self._scripts.touch, keys, arguments):
                return False
        return True


def _list_owners(owner: str) -> Sequence[str | None]:
    """Whose lists have a session: the tenant's (None) and its owner's, if it has one."""
    return (None, owner) if owner else (None,)
