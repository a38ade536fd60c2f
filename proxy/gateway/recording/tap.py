"""Relays a reply and records it before the client can see that it is complete.

Bytes are relayed as they arrive.  Held back until the commit is durable: the line with choice 0's
finish, or ``[DONE]``, an error event or the end if they come first; the last byte of a JSON body.
Usage and further choices that come later are recorded before the stream ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import msgspec

from proxy.chat.reply.answer import Reply as ChatReply
from proxy.formats.format import Format, StreamReader
from proxy.wire.body import in_pieces
from proxy.wire.failures import UpstreamError
from proxy.wire.headers import content_length
from proxy.wire.relay import Delivery
from proxy.wire.replies import PeekedReply, is_stream
from proxy.wire.sse import Gate, HoldPoint
from proxy.wire.upstream import Reply

MAX_PLAIN = 32 * 1024 * 1024
"""Bytes of a JSON answer that are buffered; a longer one is recorded as incomplete."""

MAX_EVENTS = 8 * 1024
"""Bytes of events that are read at once: a quarter of a millisecond if they are words of a model,
and seven if each is empty."""

TOO_LARGE: Final = "answer_too_large"
"""The reason of an exchange of which only a part of the answer was recorded."""

_LAST = ("done", "error")
"""Kinds of hold points after which the rest of a stream is ignored."""

Forward = Callable[[bytes], Awaitable[None]]

ReadReply = Callable[[bytes], ChatReply | None]
"""See Format."""


class ReplyRecorder(Protocol):
    """Records a reply.  Neither method raises.

    ``commit`` is called once, when choice 0 is complete; ``amend`` at most once after it, when
    nothing more will arrive.
    """

    async def commit(self, reply: ChatReply | None, *, incomplete: bool) -> None: ...

    async def amend(self, reply: ChatReply) -> None: ...


class StreamTap:
    """The tap of a stream of server-sent events."""

    def __init__(self, recorder: ReplyRecorder, reader: StreamReader) -> None:
        self._recorder, self._reader = recorder, reader
        self._gate = Gate(reader.may_end, reader.end_signal)
        self._committed = self._amended = False
        self._read_early: bytes | None = None
        """The payload of an unfinished event that the reader has been fed already."""

    async def relay(self, reply: Reply, delivery: Delivery) -> None:
        """Relay and record; raises what the chunks of the reply raise."""
        try:
            async for data in reply.chunks():
                if len(data) <= MAX_EVENTS:
                    await self._relay_chunk(data, delivery.send_piece)
                    continue
                # A flood of events: others have their turn after each piece.
                async for piece in in_pieces(data, MAX_EVENTS):
                    await self._relay_chunk(piece, delivery.send_piece)
        except UpstreamError:
            await self._upstream_failed()
            raise
        await self._end()
        await delivery.end()

    async def abandon(self) -> None:
        """Record the part of a reply that has arrived: no more will be read."""
        self._read()
        await self._record(self._build_reply(), incomplete=True, last=True)

    async def _upstream_failed(self) -> None:
        """Record a background response: it continues without this stream and can be fetched."""
        self._read()
        if self._build_reply().pending_id is not None:
            await self.abandon()

    async def _relay_chunk(self, data: bytes, forward: Forward) -> None:
        hold_points = self._gate.feed(data)
        self._read(hold_points)
        if not hold_points:
            return await forward(data)
        at = hold_points[0].offset
        if at:
            await forward(data[:at])
        await self._settle(hold_points)
        await forward(data[at:])

    def _read(self, hold_points: Sequence[HoldPoint] = ()) -> None:
        """Feed the reader what has arrived, up to the event that ends the stream: clients stop
        there."""
        ends = any(point.kind in _LAST for point in hold_points)
        for payload in self._gate.take():
            if self._read_early is None or not payload.startswith(self._read_early):
                self._reader.feed(payload)
            self._read_early = None
            if ends and self._ends_stream(payload):
                return
        if hold_points:
            self._read_unfinished()

    def _ends_stream(self, payload: bytes) -> bool:
        return self._reader.may_end(payload) and self._reader.end_signal(payload) in _LAST

    def _read_unfinished(self) -> None:
        """Feed the reader a marked line before its event ends with an empty line."""
        payload = self._gate.unfinished
        if payload is not None and self._read_early is None:
            self._reader.feed(payload)
            self._read_early = payload

    async def _end(self) -> None:
        self._gate.close()
        self._read()
        await self._settle((HoldPoint(0, "done"),))

    async def _settle(self, hold_points: Sequence[HoldPoint]) -> None:
        last = any(point.kind in _LAST for point in hold_points)
        if self._amended or (self._committed and not last):
            return
        reply = self._build_reply()
        is_complete = _is_complete(reply) and not reply.error
        await self._record(reply, incomplete=not is_complete, last=last)

    async def _record(self, reply: ChatReply, *, incomplete: bool, last: bool) -> None:
        """Commit the reply the first time, and amend it once if nothing more will arrive
        (``last``)."""
        if not self._committed:
            self._committed = True
            await _despite_cancellation(self._recorder.commit(reply, incomplete=incomplete))
        if last and not self._amended:
            self._amended = True
            await _despite_cancellation(self._recorder.amend(reply))

    def _build_reply(self) -> ChatReply:
        reply = self._reader.build()
        return msgspec.structs.replace(reply, truncated=True) if self._gate.overflowed else reply


class BodyTap:
    """The tap of a JSON body; ``length`` is its Content-Length, None if not declared."""

    def __init__(self, recorder: ReplyRecorder, read: ReadReply, length: int | None) -> None:
        self._recorder, self._read, self._length = recorder, read, length
        self._parts: list[bytes] = []
        self._size = 0
        self._committed = False

    async def relay(self, reply: Reply, delivery: Delivery) -> None:
        held = b""
        async for data in reply.chunks():
            self._buffer(data)
            if self._size == self._length:
                await self._commit()
                return await delivery.end(held + data)
            await delivery.send_piece(held + data[:-1])
            held = data[-1:]
        await self._commit()
        await delivery.end(held)

    async def abandon(self) -> None:
        """Record the request alone, as incomplete: a part of a JSON text cannot be read."""
        if not self._committed:
            self._committed = True
            await _despite_cancellation(self._recorder.commit(None, incomplete=True))

    def _buffer(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_PLAIN:
            self._parts.append(data)
        else:
            self._parts.clear()

    async def _commit(self) -> None:
        if self._committed:
            return
        self._committed = True
        fits = self._size <= MAX_PLAIN
        reply = self._read(b"".join(self._parts)) if fits else ChatReply(truncated=True)
        incomplete = reply is None or not _is_complete(reply)
        await _despite_cancellation(self._recorder.commit(reply, incomplete=incomplete))
        if reply is not None and reply.choices[1:]:  # the first one is in the commit
            await _despite_cancellation(self._recorder.amend(reply))


async def tap_of(
    reply: PeekedReply, recorder: ReplyRecorder, format: Format
) -> StreamTap | BodyTap:
    """The tap for a reply, by whether it is an event stream."""
    if await is_stream(reply):
        return StreamTap(recorder, format.read_stream())
    return BodyTap(recorder, format.read_reply, content_length(reply.headers))


def _is_complete(reply: ChatReply) -> bool:
    return bool(reply.choices) and reply.choices[0].complete


async def _despite_cancellation(writing: Coroutine[Any, Any, None]) -> None:
    """Finish writing even if the task is cancelled, and only then raise the cancellation.

    A request that waits for this turn to end finds it recorded.
    """
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
