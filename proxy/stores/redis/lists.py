"""The lists of sessions in Redis, and what takes sessions from them: deleting, moving.

A list of sessions lives in another slot than the sessions: what it names is looked up one by one,
and what is dead is dropped from it.  A person's keeps the names of sessions that have lost their
heads but not all else, since who erases the person finds them by nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from math import inf

from proxy.memory.archive import PAGE_BYTES, OnProgress, Page, Session
from proxy.memory.erasure import Subject
from proxy.memory.model import SessionKey
from proxy.stores.common.history import read_cursor, sessions_cursor, with_tenant
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
"""Drops the indexes that a move makes wrong: those of a session, its owner, and the new tenant."""

Place = tuple[float, str]
"""In a list: the time of the last activity, and the session."""

START: Place = (inf, "")
"""Before all that a list has: the latest comes first."""

Found = tuple[Place, Session]

FEW, SMALL = 2, 1_000_000
"""Sessions that are read at once at first, and the bytes up to which twice as many are then: one
may have a system message of megabytes."""

DEAD = 500
"""Names that are looked at together where nothing but dead ones were found."""

SHARE = 0.5
"""Of the time of a read: a page ends early behind it."""

MOVE_SECONDS = 3600.0
"""Moving a tenant, or finding them all, takes as long as it takes; it must end even so."""


class RedisLists(RedisBase):
    """See :class:`proxy.memory.archive.Archive`; what begins with _ raises errors of Redis."""

    @with_timeout(MOVE_SECONDS)
    async def tenants(self) -> Sequence[str]:
        keys = await collect_keys(self._link.scan(ANY_LIST))
        return sorted({tenant for tenant in map(read_tenant, keys) if tenant})

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """The head of each session says whose it is.  A list may lack some where its key was
        evicted, a server came back empty, or a proxy was killed between a session and its lists."""
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
        asked = [(key, ("HMGET", key, "owner", "active_at", "ttl")) for key in heads]
        found = zip(heads.values(), await self._link.many(asked), strict=True)
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
        until = now() + SHARE * self._timeout
        place: Place | None = START if after is None else read_cursor(after)
        found, size, at_once = list[Found](), 0, FEW
        while place is not None and len(found) <= limit and (size < PAGE_BYTES or not found):
            most = min(at_once, limit + 1 - len(found))
            living, read, place = await self._next(tenant, user, place, most)
            found += living
            size, at_once = size + read, 2 * at_once if read < SMALL else FEW
            if now() >= until:
                break
        if len(found) > limit:
            place = found[limit - 1][0]
        more = None if place is None else sessions_cursor(*place)
        return Page(tuple(session for _, session in found[:limit]), more)

    async def _next(
        self, tenant: str, user: str | None, place: Place, most: int
    ) -> tuple[list[Found], int, Place | None]:
        """What lives among the next of a list, how many bytes were read, and the place up to which
        the list is read: None at its end.

        What is dead there is dropped at once, so that a walk that is cut off has got on.
        """
        rows = await self._places_after(list_keys(tenant, user)[0], place, most)
        if not rows:
            return [], 0, None
        sessions, size = await self._read_sessions(tenant, [name for _, name in rows])
        living, dead = list[Found](), dict[Place, bool]()
        for row, session in zip(rows, sessions, strict=True):
            if session is not None and user in (None, session.user):
                living.append((row, session))
            else:
                dead[row] = session is None
        await self._drop_expired(tenant, user, dead)
        end = rows[-1] if living else await self._skip_expired(tenant, user, rows[-1])
        return living, size, end

    async def _skip_expired(self, tenant: str, user: str | None, place: Place) -> Place:
        """The place behind those that are dead from here on, ``DEAD`` at most.  Of what lives there
        nothing is read yet."""
        rows = await self._places_after(list_keys(tenant, user)[0], place, DEAD)
        metas = [session_keys(SessionKey(tenant, name))[0] for _, name in rows]
        heads = await self._link.many([(meta, ("EXISTS", meta)) for meta in metas])
        pairs = zip(rows, heads, strict=True)
        dead = [row for row, _ in takewhile(lambda pair: not pair[1], pairs)]
        await self._drop_expired(tenant, user, dict.fromkeys(dead, True))
        return dead[-1] if dead else place

    async def _drop_expired(
        self, tenant: str, user: str | None, dead: Mapping[Place, bool]
    ) -> None:
        """Drop these from a list; ``dead`` says of each whether the session's head is gone.  A
        person's list keeps those of which all else is not."""
        headless = [name for (_, name), lost in dead.items() if lost and user is not None]
        keys = [session_keys(SessionKey(tenant, name)) for name in headless]
        left = await self._link.many([(rest[0], ("EXISTS", *rest)) for _, *rest in keys])
        kept = {name for name, there in zip(headless, left, strict=True) if there}
        gone = [part for at, name in dead if name not in kept for part in (name, repr(at))]
        if gone:
            await self._scripts.read(self._scripts.forget, list_keys(tenant, user), gone)

    async def _places_after(self, key: bytes, place: Place, limit: int) -> list[Place]:
        """Some of the list behind a place, the latest first; none at its end."""
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

    async def _rank(self, key: bytes, place: Place) -> int:
        """A rank at or before the first behind a place.

        Any number may have one time, as imports do that have none: it is looked for by name first,
        and only if that one has gone from there are all of its time gone through.
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
        """The sessions of these names, and how many bytes they have."""
        metas = [session_keys(SessionKey(tenant, name))[0] for name in names]
        replies = await self._link.many([(meta, ("HGETALL", meta)) for meta in metas])
        sessions = [read_session(name, fields) for name, fields in zip(names, replies, strict=True)]
        return sessions, sum([len(field) for fields in replies for field in fields])

    async def _remove(self, key: SessionKey, stamp: bytes = b"") -> tuple[int, str]:
        """A status and the owner, '' where nobody's or unknown.

        1: it was removed; 0: it is not as ``stamp`` says; -1: there was none.
        """
        try:
            reply = await self._scripts.write(self._scripts.discard, session_keys(key), (stamp,))
        finally:
            self._clear_caches()
        status, owner = int(reply[0]), reply[1].decode()
        if status == 1:
            await self._unlist(key, owner)
        return status, owner

    async def _unlist(self, key: SessionKey, owner: str) -> None:
        for user in _listing(owner):
            keys = list_keys(key.tenant, user)
            await self._scripts.write(self._scripts.forget, keys, (key.session, ""))

    async def _move_sessions(
        self, old: str, new: str, drop: DropIndexes, on_progress: OnProgress
    ) -> int:
        """Session by session: copied, then deleted, so that a move cut short can be done again."""
        listed = list_keys(old)[0]
        (names,) = raise_errors(await self._link.run(listed, ("ZRANGE", listed, 0, -1)))
        moved = 0
        for name in names:
            moved += await self._move_session(SessionKey(old, name.decode()), new, drop)
            on_progress(moved, len(names))
        return moved

    async def _move_session(self, key: SessionKey, new: str, drop: DropIndexes) -> bool:
        """False: it is not there any more, or ``new`` has a session of this id.

        What is written to it between copying and deleting is copied once more: over the copy that
        was made before, by its stamp, and over nothing else.
        """
        there = with_tenant(key, new)
        copied = b""
        while True:
            dump = await self._scripts.read(self._scripts.dump, session_keys(key), ())
            if not dump:
                return False
            stamp, left, owner, at, ttl, payloads = dump
            arguments = (copied or stamp, left, *payloads)
            adopted = await self._scripts.write(self._scripts.adopt, session_keys(there), arguments)
            await drop(key, owner.decode(), new)
            if not adopted:
                return False
            copied = stamp
            await self._list(there, owner.decode(), (at, ttl))
            status, _ = await self._remove(key, stamp)
            if status != 0:  # else it was written to meanwhile
                return True

    async def _list(
        self,
        key: SessionKey,
        owner: str,
        activity: Sequence[bytes],
        since: float | None = None,
        *,
        new: bool = True,
    ) -> bool:
        """Put a session into its tenant's list and its owner's.

        ``activity`` is its last activity and its ttl.  False: what began at ``since`` may not get
        into the list of its owner, who has been erased; unless it is not ``new`` and was there.
        """
        arguments = (key.session, *activity, format_time(since), int(new))
        for user in _listing(owner):
            keys = [*list_keys(key.tenant, user), mark_key(Subject(key.tenant, user or ""))]
            if not await self._scripts.write(self._scripts.touch, keys, arguments):
                return False
        return True


def _listing(owner: str) -> Sequence[str | None]:
    """In whose lists a session stands: its tenant's, None, and its owner's, "" for nobody's."""
    return (None, owner) if owner else (None,)
