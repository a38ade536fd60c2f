"""The marks of what was erased, in Redis: a key for each, which ends by itself."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.memory.erasure import Subject
from proxy.stores.marks import expiry, forbids
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_keys import mark_key
from proxy.stores.redis_link import bounded

LONGEST = 1e10
"""Seconds that a mark lives at most: times to live have a limit."""


class RedisErasures(RedisBase):
    """See :class:`proxy.memory.erasure.Erasures`."""

    async def mark(self, subject: Subject, until: float) -> None:
        key, left = mark_key(subject), min(expiry(until) - self._clock(), LONGEST)
        life = max(1, int(left * 1000))
        work = self._scripts.put(key, "SET", key, repr(until), "PX", life)
        await bounded(work, self._commit_timeout)

    async def unmark(self, subject: Subject) -> None:
        key = mark_key(subject)
        await bounded(self._scripts.put(key, "DEL", key), self._commit_timeout)

    async def erased(self, subjects: Sequence[Subject], began: float) -> bool:
        keys = [mark_key(subject) for subject in subjects]
        marks = await bounded(self._link.many([(key, ("GET", key)) for key in keys]), self._timeout)
        return any(forbids(float(mark), began) for mark in marks if mark is not None)
