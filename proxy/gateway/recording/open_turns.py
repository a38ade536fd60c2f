"""The turns under way, by session: a client that breaks one off and asks again must find it
recorded, as far as it came."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from proxy.memory.model import SessionKey
from proxy.wire.relay import Presence

PATIENCE = 0.25
"""Seconds that a request waits for what was broken off."""

NEWEST = 8
"""So many of a session's turns are looked at: who asks again has broken off one of the last."""


class OpenTurns:
    """Those of one worker."""

    def __init__(self) -> None:
        self._open: dict[SessionKey, dict[Presence, None]] = {}

    @contextmanager
    def turn(self, key: SessionKey, presence: Presence) -> Iterator[Presence]:
        """One more, while the block runs.  Raises what ``presence`` raises."""
        turns = self._open.setdefault(key, {})
        turns[presence] = None
        try:
            with presence:
                yield presence
        finally:
            del turns[presence]
            if not turns:
                del self._open[key]

    async def settled(self, key: SessionKey) -> None:
        """Wait until the turns that were broken off by now are recorded, for PATIENCE at most."""
        newest = list(islice(reversed(self._open.get(key, {})), NEWEST))
        if not newest:
            return
        for presence in newest:
            presence.begin()
        await asyncio.sleep(0)  # they look whether their clients are there
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for presence in newest:
                    await presence.settled()
