"""Watching a reply go by, and recording it before the client can know that it is complete.

Bytes are passed on as they come.  Held back until the commit is durable: the line that carries
choice 0's finish, or ``[DONE]``, an error event or the end if they come first; of a plain answer
the last byte.  Usage and further choices that come later are added before the stream ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import msgspec

from proxy.chat.reply.answer import Reply as ChatReply
from proxy.formats.format import Format, StreamReader
from proxy.wire.failures import UpstreamError
from proxy.wire.headers import content_length
from proxy.wire.relay import Delivery
from proxy.wire.replies import PeekedReply, streams
from proxy.wire.sse import Gate, Mark
from proxy.wire.upstream import Reply

MAX_PLAIN = 32 * 1024 * 1024
"""Bytes of a plain answer that are kept for recording; a longer one is recorded as incomplete."""

TOO_LARGE: Final = "answer_too_large"
"""Why less of an answer was recorded than was said."""

Pass = Callable[[bytes], Awaitable[None]]

ReadReply = Callable[[bytes], ChatReply | None]
"""See Format."""


class ReplyRecorder(Protocol):
    """Where a reply is recorded.  None of it raises.

    ``commit`` is asked once, of choice 0; ``amend`` once behind it, when nothing more will come.
    """

    async def commit(self, reply: ChatReply | None, *, incomplete: bool) -> None: ...

    async def amend(self, reply: ChatReply) -> None: ...


class StreamTap:
    """Of a stream of server-sent events."""

    def __init__(self, recorder: ReplyRecorder, reader: StreamReader) -> None:
        self._recorder, self._reader = recorder, reader
        self._gate = Gate(reader.suspect, reader.mark)
        self._committed = self._final = False
        self._ahead: bytes | None = None
        """An event's payload that was read before the event had ended."""

    async def relay(self, reply: Reply, delivery: Delivery) -> None:
        """Pass on and record; raises what the chunks of the reply raise."""
        try:
            async for data in reply.chunks():
                await self._piece(data, delivery.piece)
        except UpstreamError:
            await self._broken()
            raise
        await self._end()
        await delivery.end()

    async def abandon(self) -> None:
        """Record what has come of a reply that will not go on."""
        self._read()
        reply = self._built()
        if not self._committed:
            self._committed = True
            await _to_its_end(self._recorder.commit(reply, incomplete=True))
        if not self._final:
            self._final = True
            await _to_its_end(self._recorder.amend(reply))

    async def _broken(self) -> None:
        """An answer that is made in the background goes on all the same, and will be fetched."""
        self._read()
        if self._built().pending is not None:
            await self.abandon()

    async def _piece(self, data: bytes, pass_on: Pass) -> None:
        marks = self._gate.feed(data)
        self._read()
        if not marks:
            return await pass_on(data)
        self._read_ahead()
        at = marks[0].offset
        if at:
            await pass_on(data[:at])
        await self._settle(marks)
        await pass_on(data[at:])

    def _read(self) -> None:
        for payload in self._gate.take():
            if self._ahead is None or not payload.startswith(self._ahead):
                self._reader.feed(payload)
            self._ahead = None

    def _read_ahead(self) -> None:
        """A marked line is read at once, though its event goes on until the next empty line."""
        payload = self._gate.unfinished
        if payload is not None and self._ahead is None:
            self._reader.feed(payload)
            self._ahead = payload

    async def _end(self) -> None:
        self._gate.close()
        self._read()
        await self._settle((Mark(0, "done"),))

    async def _settle(self, marks: Sequence[Mark]) -> None:
        last = any(mark.kind != "finish" for mark in marks)
        if self._committed and not (last and not self._final):
            return
        reply = self._built()
        if not self._committed:
            self._committed = True
            whole = _whole(reply) and not reply.error
            await _to_its_end(self._recorder.commit(reply, incomplete=not whole))
        if last:
            self._final = True
            await _to_its_end(self._recorder.amend(reply))

    def _built(self) -> ChatReply:
        reply = self._reader.build()
        return msgspec.structs.replace(reply, truncated=True) if self._gate.overflowed else reply


class BodyTap:
    """Of an answer in one JSON body of ``length`` bytes, None if it is not declared."""

    def __init__(self, recorder: ReplyRecorder, read: ReadReply, length: int | None) -> None:
        self._recorder, self._read, self._length = recorder, read, length
        self._parts: list[bytes] = []
        self._size = 0
        self._committed = False

    async def relay(self, reply: Reply, delivery: Delivery) -> None:
        """Pass on and record; raises what the chunks of the reply raise."""
        held = b""
        async for data in reply.chunks():
            self._keep(data)
            if self._size == self._length:
                await self._commit()
                return await delivery.end(held + data)
            await delivery.piece(held + data[:-1])
            held = data[-1:]
        await self._commit()
        await delivery.end(held)

    async def abandon(self) -> None:
        """Half a JSON text says nothing: only what was asked is recorded, as incomplete."""
        if not self._committed:
            self._committed = True
            await _to_its_end(self._recorder.commit(None, incomplete=True))

    def _keep(self, data: bytes) -> None:
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
        incomplete = reply is None or not _whole(reply)
        await _to_its_end(self._recorder.commit(reply, incomplete=incomplete))
        if reply is not None and reply.choices[1:]:  # of the first all is written
            await _to_its_end(self._recorder.amend(reply))


async def tap_of(
    reply: PeekedReply, recorder: ReplyRecorder, format: Format
) -> StreamTap | BodyTap:
    """The tap for what a reply turns out to be."""
    if await streams(reply):
        return StreamTap(recorder, format.read_stream())
    return BodyTap(recorder, format.read_reply, content_length(reply.headers))


def _whole(reply: ChatReply) -> bool:
    return bool(reply.choices) and reply.choices[0].complete


async def _to_its_end(writing: Coroutine[Any, Any, None]) -> None:
    """Write down though the client leaves meanwhile: nobody would do it again.

    The cancellation comes behind it, so that whoever waits for this turn finds it recorded.
    """
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
