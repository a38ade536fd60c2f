"""The queue of work in Redis: in one slot, whosever the work is."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from proxy.memory.model import SessionKey
from proxy.memory.work import Due, Work
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_link import bounded
from proxy.stores.redis_scripts import Script
from proxy.stores.redis_work_codec import (
    QUEUE_KEYS,
    all_names,
    due_arguments,
    name_of,
    read_piece,
)


class RedisQueue(RedisBase):
    """See :class:`proxy.memory.store.Queue`."""

    async def enqueue(self, key: SessionKey, due: Due) -> None:
        await bounded(self._enqueue(key, (due,)), self._commit_timeout)

    async def _enqueue(self, key: SessionKey, dues: Sequence[Due]) -> None:
        arguments = due_arguments(key, dues)
        await self._scripts.write(self._scripts.work_enqueue, QUEUE_KEYS, arguments)

    async def waiting(self, now: float, limit: int) -> Sequence[Work]:
        return await bounded(self._waiting(now, limit), self._timeout)

    async def _waiting(self, now: float, limit: int) -> Sequence[Work]:
        due, pieces = QUEUE_KEYS
        search = ("ZRANGEBYSCORE", due, "-inf", repr(now), "WITHSCORES", "LIMIT", 0, limit)
        (found,) = await self._link.many([(due, search)])
        names, scores = found[::2], found[1::2]
        if not names:
            return ()
        (packed,) = await self._link.many([(pieces, ("HMGET", pieces, *names))])
        rows = zip(names, scores, packed, strict=True)
        return [read_piece(name, score, piece) for name, score, piece in rows if piece]

    async def claim(self, work: Work, now: float, until: float) -> Work | None:
        lease = secrets.token_hex(8)
        arguments = (repr(now), repr(until), lease)
        reply = await self._change(self._scripts.work_claim, work, arguments)
        if not reply:
            return None
        asked, attempts, profile = reply
        return replace(
            work,
            profile=profile.decode(),
            due=until,
            asked=asked,
            attempts=attempts,
            lease=lease,
        )

    async def extend(self, work: Work, until: float) -> bool:
        arguments = (work.lease, repr(until))
        return bool(await self._change(self._scripts.work_extend, work, arguments))

    async def finish(self, work: Work, again: float) -> None:
        arguments = (work.lease, work.asked, repr(again))
        await self._change(self._scripts.work_finish, work, arguments)

    async def put_off(self, work: Work, due: float, *, failed: bool) -> None:
        arguments = (work.lease, repr(due), int(failed))
        await self._change(self._scripts.work_put_off, work, arguments)

    async def _forget_work(self, key: SessionKey) -> None:
        script, names = self._scripts.work_forget, all_names(key)
        await bounded(self._scripts.write(script, QUEUE_KEYS, names), self._commit_timeout)

    async def _change(self, script: Script, work: Work, arguments: Sequence[Any]) -> Any:
        running = self._scripts.write(script, QUEUE_KEYS, (name_of(work), *arguments))
        return await bounded(running, self._commit_timeout)
