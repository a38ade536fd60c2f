"""Logs that a process has read, so that who asks again reads only what has come since.

A store tells whether anything but what was appended has changed (the ``stamp``); what it appends
has seqs from ``end`` on.  Several processes may write: each look asks the store.  One that can lose
what it has said, and then says something else in its place, is asked for the ``newest`` too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from proxy.memory.model import Ask, Entry, SessionKey, Snapshot

MAX_BYTES = 32 * 1024 * 1024
"""Of all that is kept: bodies, and ENTRY_BYTES for each entry."""

ENTRY_BYTES = 700
"""What an entry takes in memory besides its body, about."""


class Newest(NamedTuple):
    """The newest message of what is known: while it is where it was, so is all before it."""

    seq: int = 0
    id: str = ""


class LastLoad(NamedTuple):
    """What the newest load asked for; and what it would find in this era, where that is known."""

    ask: Ask
    snapshot: Snapshot | None = None
    era: object = None


class CachedLog(msgspec.Struct, frozen=True, gc=False):
    """The log of a session from the turn ``begin`` to its end, and no turns before it.

    ``stamp`` tells the session, and all that has changed but what was appended.  ``end`` is the
    first seq that is free, ``messages`` counts the whole active log.  ``never_expires``: the
    session does not expire by itself; ``is_ownerless``: it belongs to no user.
    """

    stamp: bytes
    end: int
    messages: int
    begin: int
    log: tuple[Entry, ...]
    bodies: Mapping[str, bytes]
    never_expires: bool = False
    is_ownerless: bool = False
    seen: LastLoad | None = None
    newest: Newest = Newest()

    @property
    def size(self) -> int:
        """Bytes in memory, about; 0 if there is nothing in it."""
        return sum(map(len, self.bodies.values())) + ENTRY_BYTES * len(self.log)

    def since(self, begin: int) -> LogPart:
        """What is known from a turn on that is not before ``begin``."""
        at = bisect_left(self.log, begin, key=lambda entry: entry.position.turn)
        if not at:
            return LogPart(self.log, self.bodies)
        log = self.log[at:]
        return LogPart(log, {entry.card.id: self.bodies[entry.card.id] for entry in log})


class LogPart(NamedTuple):
    """Entries in their order, and the bodies of all of them by message id."""

    entries: tuple[Entry, ...]
    bodies: Mapping[str, bytes]


class LogCache:
    """Those of the sessions that asked last, within ``most`` bytes."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._logs: LRUCache[SessionKey, tuple[CachedLog, int]] = LRUCache(
            most, getsizeof=itemgetter(1)
        )
        self.era = 0
        """Changes when all is forgotten: what was read before must not come back."""
        self.writes = 0
        """Changes with each write: what was read before may not be what is there."""

    def __repr__(self) -> str:
        return f"<KnownLogs [{len(self._logs)}, bytes: {self._logs.currsize}]>"

    def of(self, key: SessionKey) -> CachedLog | None:
        known = self._logs.get(key)
        return known[0] if known else None

    def put(self, key: SessionKey, log: CachedLog | None, era: int) -> None:
        """Keep what was read in this era, None: there is nothing to keep."""
        before = self._logs.get(key)
        if era != self.era or (before and before[0] is log):
            return
        if log is None or not 0 < (size := log.size) <= self._logs.maxsize:
            self._logs.pop(key, None)
        elif not before or before[0].stamp != log.stamp or before[0].end <= log.end:
            self._logs[key] = log, size  # else another look was faster

    def written(self, key: SessionKey, log: CachedLog | None, era: int) -> None:
        """Something was written to the session, which has this log now; None: that is not known."""
        self.writes += 1
        if log is not None:
            return self.put(key, log, era)
        known, size = self._logs.get(key, (None, 0))
        if known is not None and known.seen is not None:
            self._logs[key] = (replace(known, seen=LastLoad(known.seen.ask)), size)

    def forget(self) -> None:
        """Something was erased."""
        self._logs.clear()
        self.era += 1
