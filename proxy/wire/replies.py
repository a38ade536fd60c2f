"""Replies that have been looked into, and are still passed on."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator

from proxy.errors import RawHeaders
from proxy.wire.failures import UpstreamBroken, UpstreamError
from proxy.wire.headers import get
from proxy.wire.reply import READ_LIMIT, whole
from proxy.wire.upstream import Reply

AUTO_DETECT = 47
"""zlib's window bits for "gzip or zlib, whichever it is"."""

GZIP = b"\x1f"
"""The first byte of a gzip member."""

RAW = -15
"""The same for a deflate stream with nothing around it, which some servers call deflate."""

PIECE = 64 * 1024
"""Bytes that are decompressed at once: a megabyte may hold a thousand."""

MAX_BARREN = 1024 * 1024
"""Encoded bytes in a row that may hold nothing: a name without end, empty blocks, empty members."""

_SLICE = 16 * 1024
_TELLING = 64
"""Bytes by which a bare deflate stream has shown itself, which has no header of zlib or gzip."""

_ABOUT_BYTES = (b"content-encoding", b"content-length")


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


class DecodedReply:
    """A compressed reply, decompressed as it comes: what cannot be read cannot be remembered.

    Upstreams are asked not to compress where memory is on; some do all the same.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._unpacker = _Unpacker()

    @classmethod
    def knows(cls, coding: bytes) -> bool:
        return coding in (b"gzip", b"x-gzip", b"deflate")

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> RawHeaders:
        return [x for x in self._reply.headers if x[0].lower() not in _ABOUT_BYTES]

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


class _Unpacker:
    """gzip with any number of members (RFC 1952 2.2), zlib, or bare deflate, told from the start.

    Keeps nothing of what it is fed but its first bytes.  Raises zlib.error, and UpstreamBroken
    where too much comes that holds nothing.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(AUTO_DETECT)
        self._start = b""  # until it is known to be no bare deflate
        self._known = self._padding = False
        self._barren = 0
        self.whole = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes hold, in pieces of at most ``PIECE`` bytes."""
        for at in range(0, len(data), _SLICE):
            part = data[at : at + _SLICE]
            self._barren += len(part)
            for plain in self._unpacked(part):
                self._barren = 0
                yield plain
            if self._barren > MAX_BARREN:
                raise UpstreamBroken("the reply's encoding goes on and holds nothing")

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more and not self._padding:
            if self._inflate.eof:
                if not data.startswith(GZIP):
                    self._padding = True  # which no reader minds
                    return
                self._inflate = zlib.decompressobj(AUTO_DETECT)
            plain = self._decompress(data)
            self.whole = self._inflate.eof
            data = self._inflate.unused_data or self._inflate.unconsumed_tail
            # A full piece may have left some of what is in the decompressor already.
            more = bool(data) or (len(plain) == PIECE and not self.whole)
            if plain:
                yield plain

    def _decompress(self, data: bytes) -> bytes:
        if self._known:
            return self._inflate.decompress(data, PIECE)
        self._start += data
        try:
            plain = self._inflate.decompress(data, PIECE)
        except zlib.error:
            self._inflate, self._known = zlib.decompressobj(RAW), True
            return self._inflate.decompress(self._start, PIECE)
        self._known = bool(plain) or self._inflate.eof or len(self._start) > _TELLING
        if self._known:
            self._start = b""
        return plain
