"""Replies that have been looked into, and are still passed on."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from proxy.errors import RawHeaders
from proxy.wire.coding.unpacker import GZIP, Unpacker
from proxy.wire.failures import UpstreamBroken, UpstreamError
from proxy.wire.headers import about_no_bytes, get
from proxy.wire.reply import READ_LIMIT, whole
from proxy.wire.sse import BOM
from proxy.wire.upstream import Reply


def is_event_stream(headers: RawHeaders) -> bool:
    """By media type; parameters and case do not matter (RFC 9110 8.3.1)."""
    kind = get(headers, b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"


def encoding(headers: RawHeaders) -> bytes:
    return (get(headers, b"content-encoding") or b"identity").strip().lower()


class PeekedReply:
    """A reply whose body has been looked at, and is passed on from its beginning all the same."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._rest = reply.chunks()
        self._seen: list[bytes] = []
        self._failure: UpstreamError | None = None

    async def peek(self, limit: int) -> bytes:
        """The first ``limit`` bytes, or somewhat more, or all there is."""
        size = 0
        try:
            while size < limit:
                self._seen.append(await anext(self._rest))
                size += len(self._seen[-1])
        except StopAsyncIteration:
            pass
        except UpstreamError as failure:  # whoever reads on will be told, where it belongs
            self._failure = failure
        return b"".join(self._seen)

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> RawHeaders:
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._seen:
            yield chunk
        if self._failure is not None:
            raise self._failure
        async for chunk in self._rest:
            yield chunk

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        return await whole(self.chunks(), limit)

    async def close(self) -> None:
        await self._reply.close()


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""What a stream of events begins with: a field's name, or a comment."""

MOST_AHEAD = 1024
"""Bytes that are waited for until a reply says what it is."""


async def streams(reply: PeekedReply) -> bool:
    """Is it a stream of events?  Some say so of JSON, and some do not say it of their streams.

    Waits for the first bytes, and where the type is another for those that tell.
    """
    declared, before = is_event_stream(reply.headers), -1
    while True:
        seen = await reply.peek(1)
        begun = seen[:MOST_AHEAD].removeprefix(BOM).lstrip()
        if declared:
            return not begun.startswith((b"{", b"["))
        if begun.startswith(_FIELDS):
            return True
        may_be = BOM.startswith(seen) or any(field.startswith(begun) for field in _FIELDS)
        if not may_be or not before < len(seen) < MOST_AHEAD:
            return False
        before = len(seen)


class DecodedReply:
    """A compressed reply, decompressed as it comes: what cannot be read cannot be remembered.

    Upstreams are asked not to compress where memory is on; some do all the same.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._unpacker = Unpacker()

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> RawHeaders:
        headers = about_no_bytes(self._reply.headers)
        return [field for field in headers if field[0].lower() != b"content-encoding"]

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._reply.chunks():
                for plain in self._unpacker.feed(data):
                    yield plain
                    await asyncio.sleep(0)  # others' turn: there may be a thousand more
        except zlib.error as error:
            raise UpstreamBroken("the reply is not encoded as it says") from error
        if not self._unpacker.whole:
            raise UpstreamBroken("the reply ended within its encoding")

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        return await whole(self.chunks(), limit)

    async def close(self) -> None:
        await self._reply.close()


def decoded(reply: Reply) -> Reply:
    """The reply as it can be read, where its encoding is known."""
    return DecodedReply(reply) if encoding(reply.headers) in GZIP else reply
