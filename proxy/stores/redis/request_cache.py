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
from proxy.stores.common.passage_cache import PassageCache

FRESH_SECONDS = 0.05
"""Seconds from the beginning of the load."""


class LoadedSession(msgspec.Struct):
    """Stamp and owner of a loaded session and the head of its index, valid ``until`` a time of the
    event loop's clock.

    ``cache`` is that of the store that loaded it.
    """

    cache: PassageCache
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
    cache: PassageCache,
    key: SessionKey,
    stamp: bytes,
    owner: str | None,
    lookup: Sequence[Any],
    at: float,
) -> None:
    _loaded.set(LoadedSession(cache, key, stamp, owner, lookup, at + FRESH_SECONDS))


def take(cache: PassageCache) -> LoadedSession | None:
    """The session just loaded by the store with this cache, only once; else None."""
    loaded = _of(cache)
    if loaded is not None:
        loaded.until = 0.0
    return loaded


def take_index_lookup(cache: PassageCache, owner: Owner, session: str) -> Sequence[Any]:
    """The head of this index if the load has read it, only once; else empty."""
    loaded = _of(cache)
    if (
        loaded is None
        or owner.session != session
        or loaded.key != SessionKey(owner.tenant, session)
    ):
        return ()
    lookup, loaded.lookup = loaded.lookup, ()
    return lookup


def _of(cache: PassageCache) -> LoadedSession | None:
    loaded = _loaded.get()
    return loaded if loaded and loaded.cache is cache and loaded.until >= now() else None


def expire() -> None:
    """Forget the loaded session, because this request has written."""
    if loaded := _loaded.get():
        loaded.until = 0.0
