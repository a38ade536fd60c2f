"""A cache of session logs: a later load reads only what was appended since.

A store's ``stamp`` changes with everything but appends; appended messages have seqs from ``end``
on. Several processes may write, so each load asks the store for the stamp.  A store that may lose
its latest writes, and then reuse their seqs, is also asked for the ``newest`` message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from proxy.memory.model import Entry, LoadOptions, SessionKey, Snapshot

MAX_BYTES = 32 * 1024 * 1024
"""The size of the cache: bodies, and ENTRY_BYTES for each entry."""

ENTRY_BYTES = 700
"""Approximate memory of an entry without its body."""


class Newest(NamedTuple):
    """The newest cached message: while the store still has it, it has all before it."""

    seq: int = 0
    id: str = ""


class LastLoad(NamedTuple):
    """What the latest load asked for, and its result in this era, if known."""

    options: LoadOptions
    snapshot: Snapshot | None = None
    era: object = None


class CachedLog(msgspec.Struct, frozen=True, gc=False):
    """The log of a session from the turn ``begin`` to its end, and no turns before it.

    ``stamp`` identifies the session and its state without appends.  ``end`` is the
    first seq that is free, ``messages`` counts the whole active log.  ``never_expires``: the
    session has no time to live; ``is_ownerless``: it belongs to no user.
    """

    stamp: bytes
    end: int
    messages: int
    begin: int
    log: tuple[Entry, ...]
    bodies: Mapping[str, bytes]
    never_expires: bool = False
    is_ownerless: bool = False
    last_load: LastLoad | None = None
    newest: Newest = Newest()

    @property
    def size(self) -> int:
        """Approximate bytes in memory; 0 if it is empty."""
        return sum(map(len, self.bodies.values())) + ENTRY_BYTES * len(self.log)

    def part_from(self, begin: int) -> LogPart:
        """The part from turn ``begin`` on, which is not before ``self.begin``."""
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
    """Logs of the sessions used last, at most ``max_bytes``."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._logs: LRUCache[SessionKey, tuple[CachedLog, int]] = LRUCache(
            max_bytes, getsizeof=itemgetter(1)
        )
        self.era = 0
        """Changes when the cache is cleared: what was read before must not be put into it."""
        self.writes = 0
        """Changes with each write: what was read before may be outdated."""

    def __repr__(self) -> str:
        return f"<LogCache [{len(self._logs)}, bytes: {self._logs.currsize}]>"

    def get(self, key: SessionKey) -> CachedLog | None:
        known = self._logs.get(key)
        return known[0] if known else None

    def put(self, key: SessionKey, log: CachedLog | None, era: int) -> None:
        """Cache what was read in this era; None drops the session."""
        before = self._logs.get(key)
        if era != self.era or (before and before[0] is log):
            return
        if log is None or not 0 < (size := log.size) <= self._logs.maxsize:
            self._logs.pop(key, None)
        elif not before or before[0].stamp != log.stamp or before[0].end <= log.end:
            self._logs[key] = log, size  # else a concurrent load has cached a longer log

    def on_write(self, key: SessionKey, log: CachedLog | None, era: int) -> None:
        """Update the cache after a write to the session; ``log`` is its log now, None if
        unknown."""
        self.writes += 1
        if log is not None:
            return self.put(key, log, era)
        known, size = self._logs.get(key, (None, 0))
        if known is not None and known.last_load is not None:
            self._logs[key] = (replace(known, last_load=LastLoad(known.last_load.options)), size)

    def clear(self) -> None:
        """Clear the cache, because something was erased."""
        self._logs.clear()
        self.era += 1
