"""What a process knows of the passages in its SQLite file.

It is true as long as an era lasts (see ``changes``), but for what the process itself writes, which
tells of it.  Texts are in it: erasing forgets all.  What expires by itself is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping

from proxy.memory.archive import Message
from proxy.memory.model import SessionKey
from proxy.stores.sqlite.known.changes import Era

MOST_BYTES = 8 * 1024 * 1024
"""Of all passages that are kept: texts, and MESSAGE_BYTES for each."""

MESSAGE_BYTES = 1_000
"""What a message takes in memory besides its text, about."""

Places = Mapping[str, Collection[int]]
"""Seqs by session."""


class _Passages:
    """Active messages of one session, as ``user`` may read them."""

    def __init__(self, era: Era, user: str | None) -> None:
        self.era, self.user = era, user
        self.messages: dict[int, Message] = {}
        self.size = 0


class KnownPassages:
    """Of the sessions that were read last, within ``most`` bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._size = most, 0
        self._sessions: OrderedDict[SessionKey, _Passages] = OrderedDict()
        self.steps = 0
        """Changes whenever something is not as it was: what was read before must not be kept."""

    def __repr__(self) -> str:
        return f"<KnownPassages [{len(self._sessions)}, bytes: {self._size}]>"

    def of(
        self, tenant: str, user: str | None, places: Places, era: Era | None
    ) -> tuple[dict[tuple[str, int], Message], dict[str, Collection[int]]]:
        """What is known of these, by session and seq, and what is not."""
        found: dict[tuple[str, int], Message] = {}
        missing: dict[str, Collection[int]] = {}
        for session, seqs in places.items():
            known = self._sessions.get(SessionKey(tenant, session))
            if known is None or known.era is not era or known.user != user:
                missing[session] = seqs
                continue
            messages = known.messages
            found.update([((session, seq), messages[seq]) for seq in seqs if seq in messages])
            if lacking := [seq for seq in seqs if seq not in messages]:
                missing[session] = lacking
        return found, missing

    def put(
        self,
        tenant: str,
        user: str | None,
        found: Mapping[tuple[str, int], Message],
        lasting: Collection[str],
        era: Era,
    ) -> None:
        """Keep what was read in this era of the sessions that last."""
        for (session, seq), message in found.items():
            if session in lasting:
                self._keep(SessionKey(tenant, session), user, seq, message, era)
        while self._size > self._most:
            self._drop(next(iter(self._sessions)))

    def _keep(
        self, key: SessionKey, user: str | None, seq: int, message: Message, era: Era
    ) -> None:
        known = self._sessions.get(key)
        if known is None or known.era is not era or known.user != user:
            self._drop(key)
            known = self._sessions[key] = _Passages(era, user)
        self._sessions.move_to_end(key)
        size = 0 if seq in known.messages else len(message.wire) + MESSAGE_BYTES
        known.messages[seq] = message
        known.size, self._size = known.size + size, self._size + size

    def changed(self, key: SessionKey) -> None:
        """What was active in this session may be so no longer, or the other way round."""
        self.steps += 1
        self._drop(key)

    def forget(self) -> None:
        self.steps += 1
        self._sessions.clear()
        self._size = 0

    def _drop(self, key: SessionKey) -> None:
        if known := self._sessions.pop(key, None):
            self._size -= known.size


def lasting(homes: Iterable[tuple[str, bool]]) -> set[str]:
    """The sessions that do not expire by themselves, of those with whether they do not."""
    return {session for session, lasts in homes if lasts}
