"""Remembers what the load of a request read of its session, for the next reads of that request.

A request sees memory as of its load; concurrent changes it may see or not.  So cached messages of
the session with the stamp of the load need not be checked again, nor the head of its index.  This
holds for one read of each, for a moment, and within the task or tasks that it started; all other
reads ask the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import msgspec

from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.stores.common.known_passages import PassageCache

FRESH_SECONDS = 0.05
"""Seconds from the beginning of the load."""


class LoadedSession(msgspec.Struct):
    """Stamp and owner of a loaded session and the head of its index, valid until a time of the
    loop.

    ``known`` is the cache of the store that loaded it.
    """

    known: PassageCache
    key: SessionKey
    stamp: bytes
    owner: str | None
    lookup: Sequence[Any]
    until: float

    def confirms(self, key: SessionKey, user: str | None, stamp: bytes) -> bool:
        """Whether the load had this session with this stamp and user (None: any)."""
        same = self.key == key and self.stamp == stamp
        return same and (user is None or user == self.owner)


_loaded: ContextVar[LoadedSession | None] = ContextVar("loaded", default=None)


def now() -> float:
    return asyncio.get_running_loop().time()


def remember(
    known: PassageCache,
    key: SessionKey,
    stamp: bytes,
    owner: str | None,
    lookup: Sequence[Any],
    at: float,
) -> None:
    _loaded.set(LoadedSession(known, key, stamp, owner, lookup, at + FRESH_SECONDS))


def take(known: PassageCache) -> LoadedSession | None:
    """The session just loaded by the store with this cache, only once; else None."""
    told = _of(known)
    if told is not None:
        told.until = 0.0
    return told


def take_index_lookup(known: PassageCache, owner: Owner, session: str) -> Sequence[Any]:
    """The head of this index if the load read it, only once; else empty."""
    told = _of(known)
    if told is None or owner.session != session or told.key != SessionKey(owner.tenant, session):
        return ()
    lookup, told.lookup = told.lookup, ()
    return lookup


def _of(known: PassageCache) -> LoadedSession | None:
    told = _loaded.get()
    return told if told and told.known is known and told.until >= now() else None


def expire() -> None:
    """Forget the loaded session, because this request has written."""
    if told := _loaded.get():
        told.until = 0.0
