"""Messages that a process has looked up by their seqs, so that who recalls them again reads only
what is new.

As with ``known_logs`` a store tells whether anything but what was appended has changed since (the
``stamp``).  Several processes may write: what is kept here counts only while a store bears it out,
in whatever way it can tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import Any

import msgspec
from cachetools import LRUCache

from proxy.memory.archive import Message
from proxy.memory.model import SessionKey
from proxy.stores.common.known_logs import Newest

MAX_BYTES = 8 * 1024 * 1024
"""Of all that is kept: texts, and MESSAGE_BYTES for each message."""

MESSAGE_BYTES = 700
"""What a message takes in memory besides its text, about."""


class CachedPassages(msgspec.Struct, frozen=True, gc=False):
    """Active messages of a session by seq, as they were at one ``stamp``."""

    stamp: Any = b""
    messages: Mapping[int, Message] = msgspec.field(default_factory=dict)

    @property
    def newest(self) -> Newest:
        seq = max(self.messages, default=0)
        return Newest(seq, self.messages[seq].card.id) if seq else Newest()

    def lacks(self, seqs: Collection[int]) -> list[int]:
        there = self.messages
        return [seq for seq in seqs if seq not in there]

    def of(self, session: str, seqs: Collection[int]) -> dict[tuple[str, int], Message]:
        """The messages with these seqs, as far as they are known."""
        there = self.messages
        return {(session, seq): there[seq] for seq in seqs if seq in there}

    def merged_with(self, read: Mapping[int, Message]) -> CachedPassages:
        """With what was read at the same stamp."""
        return CachedPassages(self.stamp, {**self.messages, **read}) if read else self


NO_PASSAGES = CachedPassages()


class PassageCache:
    """Those of the sessions that were asked last, within ``most`` bytes."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._sessions: LRUCache[SessionKey, tuple[CachedPassages, int]] = LRUCache(
            most, getsizeof=itemgetter(1)
        )
        self.era = 0
        """Changes when all is forgotten: what was read before must not come back."""

    def __repr__(self) -> str:
        return f"<KnownMessages [{len(self._sessions)}, bytes: {self._sessions.currsize}]>"

    def of(self, key: SessionKey) -> CachedPassages:
        known = self._sessions.get(key)
        return known[0] if known else NO_PASSAGES

    def put(self, key: SessionKey, passages: CachedPassages, era: int) -> None:
        """Keep what was read in this era."""
        if era != self.era or (passages.messages and passages is self.of(key)):
            return
        size = sum([len(message.wire) + MESSAGE_BYTES for message in passages.messages.values()])
        if 0 < size <= self._sessions.maxsize:
            self._sessions[key] = passages, size
        else:
            self._sessions.pop(key, None)

    def changed(self, key: SessionKey) -> None:
        """What is kept of a session, and what is being read, may not be what there is."""
        self._sessions.pop(key, None)
        self.era += 1

    def forget(self) -> None:
        """Something was erased."""
        self._sessions.clear()
        self.era += 1
