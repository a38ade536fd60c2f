"""Request bodies: read whole within bounds, streamed with back-pressure, or sent in pieces.

Knows ASGI's ``receive`` and nothing of what the bytes mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from io import BytesIO
from typing import Any

from proxy.errors import request_timeout, request_too_large
from proxy.wire.limits import SMALL

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
ReserveBytes = Callable[[int], Awaitable[None]]
"""Reserves so many bytes for a body, instead of those reserved before.  Raises ProxyError."""

Body = bytes | AsyncIterator[bytes] | None
"""The body of an outgoing request: whole, streamed, or none."""

PIECE = 64 * 1024
"""Larger bodies are sent in pieces of so many bytes, with back-pressure after each."""


class ClientGone(Exception):
    """The client closed the connection before its request was complete: there is no answer."""


async def read(
    receive: Receive, limit: int, timeout: float, declared: int | None, reserve: ReserveBytes
) -> bytes:
    """The whole body.

    ``limit`` in bytes; ``timeout`` in seconds for all of it; ``declared`` is its Content-Length.
    Raises ProxyError 413 ``request_too_large`` (before reading, if the declared length says so),
    408 ``request_timeout``, what ``reserve`` raises, and ClientGone.
    """
    if declared is not None and declared > limit:
        raise request_too_large(limit)
    try:
        async with asyncio.timeout(timeout):
            message = await _next(receive)
            first: bytes = message.get("body", b"")
            if len(first) > limit:
                raise request_too_large(limit)
            if not message.get("more_body", False):
                return first
            return await _rest(receive, first, limit, declared, reserve)
    except TimeoutError:
        raise request_timeout() from None


async def _rest(
    receive: Receive, first: bytes, limit: int, declared: int | None, reserve: ReserveBytes
) -> bytes:
    buffer, size = BytesIO(), len(first)
    buffer.write(first)
    reserved = min(limit, SMALL) if declared is None else declared
    await reserve(reserved)
    more = True
    while more:
        message = await _next(receive)
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise request_too_large(limit)
        if size > reserved:
            reserved = limit
            await reserve(reserved)
        buffer.write(part)
        more = message.get("more_body", False)
    await reserve(size)
    return buffer.getvalue()  # without a copy


def _pieces(body: bytes, size: int = PIECE) -> Iterator[bytes]:
    view = memoryview(body)
    return (bytes(view[at : at + size]) for at in range(0, len(view), size))


async def in_pieces(body: bytes, size: int = PIECE) -> AsyncIterator[bytes]:
    """A long body in pieces; yields to the event loop after each, even if it is taken at once."""
    for piece in _pieces(body, size):
        yield piece
        await asyncio.sleep(0)


async def split_message(message: Message) -> AsyncIterator[Message]:
    """An ASGI message of an answer; one with a long body in pieces, so that ``send`` can exert
    back-pressure: uvicorn buffers whatever one message has."""
    remaining = len(message.get("body", b""))
    if remaining <= PIECE:
        yield message
        return
    for piece in _pieces(message["body"]):
        remaining -= len(piece)
        more = remaining > 0 or message.get("more_body", False)
        yield {**message, "body": piece, "more_body": more}


async def stream(receive: Receive, first: Message | None = None) -> AsyncIterator[bytes]:
    """The body piece by piece; the next one is received when the last one was consumed.

    ``first`` is a message that was received before.  Raises ClientGone.
    """
    message = first if first is not None else await _next(receive)
    while True:
        part: bytes = message.get("body", b"")
        if part:
            yield part
        if not message.get("more_body", False):
            return
        message = await _next(receive)


async def _next(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message
