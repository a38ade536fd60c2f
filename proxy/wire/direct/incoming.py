"""One question to the upstream and its answer, as far as it has come.

Filled by a connection, read by one task.  Knows no socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proxy.errors import RawHeaders
from proxy.wire.failures import UpstreamBroken, UpstreamError

HIGH_WATER = 128 * 1024
"""Bytes that may wait for their reader before the upstream is left to wait."""


class Incoming:
    """``in_head`` until the head of the answer is there, ``complete`` when its body has ended."""

    __slots__ = (
        "_loop",
        "_resume",
        "_waiter",
        "bodiless",
        "complete",
        "failure",
        "headers",
        "in_head",
        "kept_back",
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
        """Of the pieces, in bytes."""
        self.in_head = True
        self.complete = self.kept_back = False
        """``kept_back``: there is so much to read that no more is taken from the upstream."""
        self.failure: Exception | None = None
        """What ended it.  The pieces came before that."""

    def wake(self) -> None:
        """Something has changed."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def head(self) -> None:
        """Wait for the head.  Raises what ended the exchange before."""
        while self.in_head:
            if self.failure is not None:
                raise self.failure
            await self._change()

    async def piece(self) -> bytes:
        """All of the body that has come since the last time; b"" at its end."""
        while not self.pieces:
            if self.complete:
                return b""
            if self.failure is not None:
                raise self.failure
            await self._change()
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.size = 0
        if self.kept_back:
            self.kept_back = False
            self._resume()
        return data

    def fail(self, failure: Exception) -> None:
        """No more will come.  Only those of the upstream are told once its answer has begun."""
        if not self.complete and self.failure is None:
            self.failure = failure if self.in_head else _of_an_answer(failure)
        self.wake()

    async def _change(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _of_an_answer(failure: Exception) -> Exception:
    if isinstance(failure, UpstreamError):
        return failure
    return UpstreamBroken("the request broke off")
