"""Relays a reply byte for byte, and detects that the client has disconnected.

Knows ASGI's ``send`` and ``receive`` and nothing of what the bytes mean.  Each piece is sent when
it arrives; awaiting ``send`` is the back-pressure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from proxy.errors import RawHeaders
from proxy.wire.body import ClientGone, Message, Receive, split_message
from proxy.wire.upstream import Reply

Send = Callable[[Message], Awaitable[None]]

WATCH_AFTER = 0.1
"""Seconds before ``receive`` is watched: most short answers are complete by then."""


class DisconnectGuard:
    """Cancels its block when the client disconnects, and raises ClientGone at the end of the block.

    The request's body must have been received before, or be taken through ``watch_after``.  Other
    cancellations are not changed.  With ``outlives_client`` the block continues without a client,
    until ``wait_settled`` is called.
    """

    def __init__(self, receive: Receive, *, uploading: bool = False) -> None:
        self._receive, self._uploading = receive, uploading
        self._task: asyncio.Task[object] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._disconnected = self._cancelled = False
        self._ended = asyncio.Event()
        self.ending = False
        """The last piece is being sent: a disconnect from now on is no abort."""
        self.outlives_client = False

    def __enter__(self) -> DisconnectGuard:
        self._task = asyncio.current_task()
        if not self._uploading:
            self._watch_later()
        return self

    async def watch_after(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The pieces of a body; ``receive`` is watched once they have all been received."""
        async for piece in body:
            yield piece
        self._watch_later()

    def start_watching(self) -> None:
        """Start watching; a disconnect that has happened is seen in the loop's next iteration."""
        if self._watcher is None and not self._ended.is_set():
            self._watcher = asyncio.create_task(self._watch(), name="client presence")

    def _watch_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self.start_watching)

    async def wait_settled(self) -> None:
        """If the client has disconnected, cancel the block and wait for its end."""
        if self._disconnected:
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
        self._disconnected = not self.ending
        if self._disconnected and not self.outlives_client:
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and not (self._cancelled or self._ended.is_set()):
            self._cancelled = True
            self._task.cancel()


class Delivery:
    """Sends the answer to one client: its start, its pieces, its end."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.guard: DisconnectGuard | None = None
        self.status = 0
        self.bytes = 0
        self.complete = False

    async def start(self, status: int, headers: RawHeaders) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def send_piece(self, data: bytes) -> None:
        if data:
            self.bytes += len(data)
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece.  Without this the client sees that the answer was cut off."""
        if self.guard is not None:
            self.guard.ending = True
        self.bytes += len(data)
        self.complete = True
        async for part in split_message({"type": "http.response.body", "body": data}):
            await self._send(part)


async def relay(reply: Reply, delivery: Delivery, length: int | None) -> None:
    """Relay the body of a reply whose start has been sent.

    ``length`` is its Content-Length: the piece that completes it is sent together with the end.
    Raises UpstreamError if the upstream fails; the answer is left without an end then.
    """
    remaining = -1 if length is None else length
    async for data in reply.chunks():
        remaining -= len(data)
        if remaining == 0:
            return await delivery.end(data)
        await delivery.send_piece(data)
    await delivery.end()
