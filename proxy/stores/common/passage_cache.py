"""A cache of messages looked up by seq, for recall.

As in ``log_cache`` the store's ``stamp`` changes with everything but appends.  Several processes
may write: a cached message is used only while the store confirms its stamp.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any

import msgspec
from cachetools import LRUCache

from proxy.memory.archive import Message
from proxy.memory.model import SessionKey
from proxy.stores.common.log_cache import Newest

MAX_BYTES = 8 * 1024 * 1024
"""The size of the cache: texts, and MESSAGE_BYTES for each message."""

MESSAGE_BYTES = 700
"""Approximate memory of a message without its text."""


class CachedPassages(msgspec.Struct, frozen=True, gc=False):
    """Active messages of a session by seq, as they were at one ``stamp``, and their ``size`` in
    bytes."""

    stamp: Any = b""
    messages: Mapping[int, Message] = msgspec.field(default_factory=dict)
    size: int = 0

    @property
    def newest(self) -> Newest:
        seq = max(self.messages, default=0)
        return Newest(seq, self.messages[seq].card.id) if seq else Newest()

    def missing(self, seqs: Collection[int]) -> list[int]:
        cached = self.messages
        return [seq for seq in seqs if seq not in cached]

    def select(self, session: str, seqs: Collection[int]) -> dict[tuple[str, int], Message]:
        """Those of the messages with these seqs that are cached."""
        cached = self.messages
        return {(session, seq): cached[seq] for seq in seqs if seq in cached}

    def merged_with(self, read: Mapping[int, Message]) -> CachedPassages:
        """With messages that were missing, read at the same stamp."""
        if not read:
            return self
        size = sum([len(message.wire) + MESSAGE_BYTES for message in read.values()])
        return CachedPassages(self.stamp, {**self.messages, **read}, self.size + size)


NO_PASSAGES = CachedPassages()


class PassageCache:
    """Passages of the sessions used last, at most ``max_bytes``."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._sessions: LRUCache[SessionKey, CachedPassages] = LRUCache(
            max_bytes, getsizeof=attrgetter("size")
        )
        self.era = 0
        """Changes when entries are dropped: what was read before must not be put into the cache."""

    def __repr__(self) -> str:
        return f"<PassageCache [{len(self._sessions)}, bytes: {self._sessions.currsize}]>"

    def get(self, key: SessionKey) -> CachedPassages:
        return self._sessions.get(key, NO_PASSAGES)

    def put(self, key: SessionKey, passages: CachedPassages, era: int) -> None:
        """Cache what was read in this era."""
        if era != self.era or (passages.messages and passages is self.get(key)):
            return
        if 0 < passages.size <= self._sessions.maxsize:
            self._sessions[key] = passages
        else:
            self._sessions.pop(key, None)

    def invalidate(self, key: SessionKey) -> None:
        """Drop a session that was written to, and reject what is being read now."""
        self._sessions.pop(key, None)
        self.era += 1

    def clear(self) -> None:
        """Clear the cache, because something was erased."""
        self._sessions.clear()
        self.era += 1
