"""What the load of a request has told of its session, for what the same request looks up next.

A request sees memory as of its load: what another process changes meanwhile it may see or not.  So
messages of that session that are known need not be asked for again, if they are those of the stamp
that the load has just brought.  That holds for one look, for a moment, and within the task (or one
that it has begun): what is asked later, or by others, is asked of the server.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import msgspec

from proxy.memory.model import SessionKey
from proxy.stores.common.known_passages import KnownMessages

FRESH = 0.05
"""Seconds from the beginning of the load."""


class Told(msgspec.Struct):
    """The stamp and the owner of a session of the store that keeps ``known``, up to a time."""

    known: KnownMessages
    key: SessionKey
    stamp: bytes
    owner: str | None
    until: float

    def bears_out(self, key: SessionKey, user: str | None, stamp: bytes) -> bool:
        """Whether what is known at a stamp is so, and that user's (None: anybody's)."""
        same = self.key == key and self.stamp == stamp
        return same and (user is None or user == self.owner)


_told: ContextVar[Told | None] = ContextVar("told", default=None)


def now() -> float:
    return asyncio.get_running_loop().time()


def tell(known: KnownMessages, key: SessionKey, stamp: bytes, owner: str | None, at: float) -> None:
    _told.set(Told(known, key, stamp, owner, at + FRESH))


def take(known: KnownMessages) -> Told | None:
    """What was told of this store, once."""
    told = _told.get()
    if told is None or told.known is not known or told.until < now():
        return None
    told.until = 0.0
    return told


def outdate() -> None:
    """This request has written."""
    if told := _told.get():
        told.until = 0.0
