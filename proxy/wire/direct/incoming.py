"""The response that is being received on a connection.

Written by the connection, read by one task.  Knows no socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proxy.errors import RawHeaders
from proxy.wire.failures import UpstreamBroken, UpstreamError

HIGH_WATER = 32 * 1024
"""Unread bytes at which reading from the transport is paused."""


class Incoming:
    """``in_head`` until the response head is complete; ``complete`` when the body has ended."""

    __slots__ = (
        "_loop",
        "_resume",
        "_waiter",
        "bodiless",
        "complete",
        "failure",
        "headers",
        "in_head",
        "paused",
        "pieces",
        "size",
        "status",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, resume: Callable[[], None], *, bodiless: bool
    ) -> None:
        self._loop, self._resume = loop, resume
        self._waiter: asyncio.Future[None] | None = None
        self.bodiless = bodiless
        self.status = 0
        self.headers: RawHeaders = []
        self.pieces: list[bytes] = []
        self.size = 0
        """Bytes in ``pieces``."""
        self.in_head = True
        self.complete = self.paused = False
        """``paused``: more than ``HIGH_WATER`` bytes are unread, so the transport is not read."""
        self.failure: Exception | None = None
        """Raised once ``pieces`` have been read."""

    def wake(self) -> None:
        """Wake the reader after a change."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def head(self) -> None:
        """Wait for the head.  Raises ``failure``."""
        while self.in_head:
            if self.failure is not None:
                raise self.failure
            await self._wait_for_change()

    async def piece(self) -> bytes:
        """All of the body that has arrived since the last call; b"" at its end.  Raises
        ``failure``."""
        while not self.pieces:
            if self.complete:
                return b""
            if self.failure is not None:
                raise self.failure
            await self._wait_for_change()
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.size = 0
        if self.paused:
            self.paused = False
            self._resume()
        return data

    def fail(self, failure: Exception) -> None:
        """End the response.  After the head, other failures than UpstreamError are replaced by
        UpstreamBroken."""
        if not self.complete and self.failure is None:
            self.failure = failure if self.in_head else _response_failure(failure)
        self.wake()

    async def _wait_for_change(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _response_failure(failure: Exception) -> Exception:
    if isinstance(failure, UpstreamError):
        return failure
    return UpstreamBroken("the request broke off")
