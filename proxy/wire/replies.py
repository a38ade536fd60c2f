"""Replies that have been looked into, and are still passed on."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from proxy.errors import RawHeaders
from proxy.wire.failures import UpstreamBroken
from proxy.wire.headers import get
from proxy.wire.upstream import Reply

AUTO_DETECT = 47
"""zlib's window bits for "gzip or zlib, whichever it is"."""

_ABOUT_BYTES = (b"content-encoding", b"content-length")


def is_event_stream(headers: RawHeaders) -> bool:
    """By media type; parameters and case do not matter (RFC 9110 8.3.1)."""
    kind = get(headers, b"content-type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"


def encoding(headers: RawHeaders) -> bytes:
    return (get(headers, b"content-encoding") or b"identity").strip().lower()


class ReadReply:
    """A reply whose body has been read."""

    def __init__(self, reply: Reply, body: bytes) -> None:
        self._reply, self._body = reply, body

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> RawHeaders:
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body

    async def read(self, limit: int = 0) -> bytes:
        return self._body

    async def close(self) -> None:
        await self._reply.close()


class DecodedReply:
    """A compressed reply, decompressed as it comes: what cannot be read cannot be remembered.

    Upstreams are asked not to compress where memory is on; some do all the same.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._inflate = zlib.decompressobj(AUTO_DETECT)

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
                if plain := self._inflate.decompress(data):
                    yield plain
        except zlib.error as error:
            raise UpstreamBroken("the reply is not encoded as it says") from error
        if rest := self._inflate.flush():
            yield rest

    async def read(self, limit: int = 0) -> bytes:
        return b"".join([data async for data in self.chunks()])

    async def close(self) -> None:
        await self._reply.close()
