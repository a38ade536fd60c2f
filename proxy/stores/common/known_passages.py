"""Messages that a process has looked up by their seqs, so that who recalls them again reads only
what is new.

As with ``known_logs`` a store tells whether anything but what was appended has changed since (the
``stamp``).  Several processes may write: what is kept here counts only while a store bears it out,
in whatever way it can tell.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from proxy.memory.archive import Message
from proxy.memory.model import SessionKey

MOST_BYTES = 8 * 1024 * 1024
"""Of all that is kept: texts, and MESSAGE_BYTES for each message."""

MESSAGE_BYTES = 700
"""What a message takes in memory besides its text, about."""


class KnownPassages(msgspec.Struct, frozen=True, gc=False):
    """Active messages of a session by seq, as they were at one ``stamp``."""

    stamp: Any = b""
    messages: Mapping[int, Message] = msgspec.field(default_factory=dict)

    def lacks(self, seqs: Collection[int]) -> list[int]:
        there = self.messages
        return [seq for seq in seqs if seq not in there]

    def of(self, session: str, seqs: Collection[int]) -> dict[tuple[str, int], Message]:
        """Those of these seqs that there are."""
        there = self.messages
        return {(session, seq): there[seq] for seq in seqs if seq in there}

    def and_(self, read: Mapping[int, Message]) -> KnownPassages:
        """With what was read at the same stamp."""
        return KnownPassages(self.stamp, {**self.messages, **read}) if read else self


NOTHING_KNOWN = KnownPassages()


class KnownMessages:
    """Those of the sessions that were asked last, within ``most`` bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._sessions: OrderedDict[SessionKey, tuple[KnownPassages, int]] = OrderedDict()
        self._size = 0
        self.era = 0
        """Changes when all is forgotten: what was read before must not come back."""

    def __repr__(self) -> str:
        return f"<KnownMessages [{len(self._sessions)}, bytes: {self._size}]>"

    def of(self, key: SessionKey) -> KnownPassages:
        known = self._sessions.get(key)
        return known[0] if known else NOTHING_KNOWN

    def put(self, key: SessionKey, passages: KnownPassages, era: int) -> None:
        """Keep what was read in this era."""
        if era != self.era:
            return
        if passages.messages and passages is self.of(key):
            return self._sessions.move_to_end(key)
        self._drop(key)
        size = sum([len(message.wire) + MESSAGE_BYTES for message in passages.messages.values()])
        if not size:
            return
        self._sessions[key], self._size = (passages, size), self._size + size
        while self._size > self._most:
            self._drop(next(iter(self._sessions)))

    def changed(self, key: SessionKey) -> None:
        """What is kept of a session, and what is being read, may not be what there is."""
        self._drop(key)
        self.era += 1

    def forget(self) -> None:
        """Something was erased."""
        self._sessions.clear()
        self._size, self.era = 0, self.era + 1

    def _drop(self, key: SessionKey) -> None:
        _, size = self._sessions.pop(key, (None, 0))
        self._size -= size
