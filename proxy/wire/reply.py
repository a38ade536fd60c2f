"""The body of a reply, read whole."""

from __future__ import annotations

from collections.abc import AsyncIterator

from proxy.wire.failures import UpstreamTooLarge

READ_LIMIT = 16 * 1024 * 1024
"""Bytes: the body is buffered in memory."""


class WholeReply:
    """A reply whose body is read from its ``chunks``.  See ``upstream.Reply``."""

    __slots__ = ()

    def chunks(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise UpstreamTooLarge(f"the answer is larger than {limit} bytes")
            parts.append(chunk)
        return b"".join(parts)
