"""Asking through the seam, in one step."""

from __future__ import annotations

from collections.abc import AsyncIterator

from proxy.wire.failures import UpstreamError
from proxy.wire.upstream import Upstream

RawHeaders = list[tuple[bytes, bytes]]

CHAT = b"/chat"


async def ask(
    upstream: Upstream,
    method: str = "POST",
    target: bytes = CHAT,
    headers: RawHeaders | None = None,
    body: bytes | AsyncIterator[bytes] | None = b"{}",
    content_length: int | None = None,
) -> tuple[int, RawHeaders, bytes]:
    """Ask, read everything, close."""
    reply = await upstream.send(method, target, headers or [], body, content_length)
    try:
        return reply.status, reply.headers, await reply.read()
    finally:
        await reply.close()


async def read_until_failure(upstream: Upstream) -> tuple[bytes, UpstreamError]:
    """What arrived, and how it failed."""
    reply = await upstream.send("POST", CHAT, [], b"{}")
    got = b""
    try:
        async for chunk in reply.chunks():
            got += chunk
    except UpstreamError as failure:
        return got, failure
    finally:
        await reply.close()
    raise AssertionError(f"ended as if whole after {got!r}")
