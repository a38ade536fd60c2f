"""The turns in progress, by session.

A client that aborts a turn and sends the next request must find the turn recorded as far as it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from proxy.memory.model import SessionKey
from proxy.wire.relay import DisconnectGuard

TIMEOUT = 0.25
"""Seconds that a request waits at most for aborted turns to be recorded."""

MAX_TURNS = 8
"""A session's turns that are waited for, the newest: the aborted one is among them."""


class OpenTurns:
    """The turns of one worker process."""

    def __init__(self) -> None:
        self._open: dict[SessionKey, dict[DisconnectGuard, None]] = {}

    @contextmanager
    def turn(self, key: SessionKey, presence: DisconnectGuard) -> Iterator[DisconnectGuard]:
        """Register a turn while the block runs.  Raises what ``presence`` raises."""
        turns = self._open.setdefault(key, {})
        turns[presence] = None
        try:
            with presence:
                yield presence
        finally:
            del turns[presence]
            if not turns:
                del self._open[key]

    async def wait_settled(self, key: SessionKey) -> None:
        """Wait until the turns that were aborted by now are recorded, at most ``TIMEOUT``."""
        newest = list(islice(reversed(self._open.get(key, {})), MAX_TURNS))
        if not newest:
            return
        for presence in newest:
            presence.start_watching()
        await asyncio.sleep(0)  # lets the watchers see a disconnect that has arrived already
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT):
                for presence in newest:
                    await presence.wait_settled()
