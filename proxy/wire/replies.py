"""Wrappers of replies: with a body that was peeked at, or decompressed."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from proxy.errors import RawHeaders
from proxy.wire.coding.decoding import CODING, coding_of
from proxy.wire.coding.unpacker import GZIP, Unpacker
from proxy.wire.failures import UpstreamBroken, UpstreamError
from proxy.wire.headers import get, without_body_headers
from proxy.wire.reply import WholeReply
from proxy.wire.sse import BOM
from proxy.wire.upstream import Reply


def is_event_stream(headers: RawHeaders) -> bool:
    """By media type; parameters and case do not matter (RFC 9110 8.3.1)."""
    kind = get(headers, b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"


class WrappedReply(WholeReply):
    """A reply in the place of another one, with its head."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.headers: RawHeaders = reply.headers

    async def close(self) -> None:
        await self._reply.close()


class PeekedReply(WrappedReply):
    """A reply whose body can be peeked at; ``chunks`` still begins with the first byte."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        self._rest = reply.chunks()
        self._peeked: list[bytes] = []
        self._failure: UpstreamError | None = None

    async def peek(self, limit: int) -> bytes:
        """Read at least ``limit`` bytes, or to the end; returns all that was read so far."""
        size = 0
        try:
            while size < limit:
                self._peeked.append(await anext(self._rest))
                size += len(self._peeked[-1])
        except StopAsyncIteration:
            pass
        except UpstreamError as failure:  # raised by ``chunks`` at the same place
            self._failure = failure
        return b"".join(self._peeked)

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._peeked:
            yield chunk
        if self._failure is not None:
            raise self._failure
        async for chunk in self._rest:
            yield chunk


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""Beginnings of an event stream: a field's name, or a comment."""

MAX_SNIFFED = 1024
"""Bytes that are read at most to detect an event stream."""


async def is_stream(reply: PeekedReply) -> bool:
    """Whether a reply is an event stream, by its first bytes: upstreams send JSON with the type of
    event streams, and event streams with others.

    Waits for the first bytes, and without that type until they are conclusive.
    """
    declared, previous_size = is_event_stream(reply.headers), -1
    while True:
        peeked = await reply.peek(1)
        beginning = peeked[:MAX_SNIFFED].removeprefix(BOM).lstrip()
        if declared:
            return not beginning.startswith((b"{", b"["))
        if beginning.startswith(_FIELDS):
            return True
        inconclusive = BOM.startswith(peeked) or any(
            field.startswith(beginning) for field in _FIELDS
        )
        if not inconclusive or not previous_size < len(peeked) < MAX_SNIFFED:
            return False
        previous_size = len(peeked)


class DecodedReply(WrappedReply):
    """A compressed reply, decompressed as it arrives, so that memory can read it.

    Upstreams are asked for identity coding if memory is on; some compress nevertheless.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        fields = without_body_headers(reply.headers)
        self.headers = [field for field in fields if field[0].lower() != CODING]
        self._unpacker = Unpacker()

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._reply.chunks():
                for plain in self._unpacker.feed(data):
                    yield plain
                    await asyncio.sleep(0)  # yields: one chunk may become a thousand pieces
        except zlib.error as error:
            raise UpstreamBroken("the reply is not encoded as it says") from error
        if not self._unpacker.complete:
            raise UpstreamBroken("the reply ended within its encoding")


def decoded(reply: Reply) -> Reply:
    """The reply, decompressed if its content coding is supported."""
    return DecodedReply(reply) if coding_of(reply.headers) in GZIP else reply
