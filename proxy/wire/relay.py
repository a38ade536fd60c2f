"""Passing a reply on, byte for byte, and noticing that the client has left.

Knows ASGI's ``send`` and ``receive`` and nothing of what the bytes mean.  One ``send`` for each
piece that comes, at once; awaiting it is the back-pressure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

from proxy.errors import RawHeaders
from proxy.wire.body import ClientGone, Message, Receive, cut
from proxy.wire.upstream import Reply

Send = Callable[[Message], Awaitable[None]]

WATCH_AFTER = 0.1
"""Seconds; short answers are there by then, under load as well, and need no watcher."""


class Presence:
    """While the block runs, the client's leaving cancels it: ClientGone is raised at its end.

    The request's body must have been received.  A cancellation from elsewhere stays one.  Where
    ``patient`` has been set the block goes on, speaking to nobody, until somebody asks that it be
    over.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task: asyncio.Task[object] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left = self._cancelled = False
        self._ended = asyncio.Event()
        self.over = False
        """Set before the last send: what ``receive`` says after that means nothing."""
        self.patient = False

    def __enter__(self) -> Presence:
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self.begin)
        return self

    def begin(self) -> None:
        """Watch from now on; a client that is gone already is seen at the loop's next step."""
        if self._watcher is None and not self._ended.is_set():
            self._watcher = asyncio.create_task(self._watch(), name="client presence")

    async def settled(self) -> None:
        """Have the block ended and wait for it, if the client is known to have left."""
        if self._left:
            self._cancel()
            await self._ended.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        cancelled = isinstance(error, asyncio.CancelledError)
        if cancelled and self._cancelled and self._task is not None and self._task.uncancel() == 0:
            raise ClientGone from None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left = not self.over
        if self._left and not self.patient:
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and not (self._cancelled or self._ended.is_set()):
            self._cancelled = True
            self._task.cancel()


class Delivery:
    """The answer to one client: its start, its pieces, its end."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.presence: Presence | None = None
        self.status = 0
        self.bytes = 0
        self.complete = False

    async def start(self, status: int, headers: RawHeaders) -> None:
        """Send status and headers, before the first piece is there."""
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes) -> None:
        if data:
            self.bytes += len(data)
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece.  An answer that never gets here is cut, and seen to be cut."""
        if self.presence is not None:
            self.presence.over = True
        self.bytes += len(data)
        self.complete = True
        async for part in cut({"type": "http.response.body", "body": data}):
            await self._send(part)


async def relay(reply: Reply, delivery: Delivery, length: int | None) -> None:
    """Pass on the body of a reply whose start has been sent.

    ``length`` is its Content-Length: the piece that completes it ends the answer in one step.
    Raises UpstreamError if the upstream breaks, the answer being left without an end.
    """
    left = -1 if length is None else length
    async for data in reply.chunks():
        left -= len(data)
        if left == 0:
            return await delivery.end(data)
        await delivery.piece(data)
    await delivery.end()
