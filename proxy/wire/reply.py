"""Reads the whole body of a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator

from proxy.wire.failures import UpstreamTooLarge

READ_LIMIT = 16 * 1024 * 1024
"""Bytes: the body is buffered in memory."""


async def whole(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """All chunks in one; UpstreamTooLarge if they are more than ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise UpstreamTooLarge(f"the answer is larger than {limit} bytes")
        parts.append(chunk)
    return b"".join(parts)
