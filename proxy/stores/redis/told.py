"""What the load of a request has told of its session, for what the same request looks up next.

A request sees memory as of its load: what another process changes meanwhile it may see or not.  So
messages of that session that are known need not be asked for again, if they are those of the stamp
that the load has just brought, nor what its own index says of itself.  That holds for one look at
each, for a moment, and within the task (or one that it has begun): what is asked later, or by
others, is asked of the server.
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
    """Stamp and owner of a session of the store that keeps ``known``, and a look at its own index,
    up to a time."""

    known: PassageCache
    key: SessionKey
    stamp: bytes
    owner: str | None
    look: Sequence[Any]
    until: float

    def confirms(self, key: SessionKey, user: str | None, stamp: bytes) -> bool:
        """Whether what is known at a stamp is so, and that user's (None: anybody's)."""
        same = self.key == key and self.stamp == stamp
        return same and (user is None or user == self.owner)


_loaded: ContextVar[LoadedSession | None] = ContextVar("told", default=None)


def now() -> float:
    return asyncio.get_running_loop().time()


def remember(
    known: PassageCache,
    key: SessionKey,
    stamp: bytes,
    owner: str | None,
    look: Sequence[Any],
    at: float,
) -> None:
    _loaded.set(LoadedSession(known, key, stamp, owner, look, at + FRESH_SECONDS))


def take(known: PassageCache) -> LoadedSession | None:
    """What the load has told, if it was of the store that keeps ``known``; only once."""
    told = _of(known)
    if told is not None:
        told.until = 0.0
    return told


def take_index_look(known: PassageCache, owner: Owner, session: str) -> Sequence[Any]:
    """What the load has told of this index, only once; empty where that is nothing."""
    told = _of(known)
    if told is None or owner.session != session or told.key != SessionKey(owner.tenant, session):
        return ()
    look, told.look = told.look, ()
    return look


def _of(known: PassageCache) -> LoadedSession | None:
    told = _loaded.get()
    return told if told and told.known is known and told.until >= now() else None


def expire() -> None:
    """This request has written."""
    if told := _loaded.get():
        told.until = 0.0
