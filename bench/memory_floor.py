"""The least that memory costs on this stack: a Redis list a session, spliced into the body.

Nothing is counted, trimmed, recalled, flushed to disk or kept apart; a probe, and no product.

``python -m bench.memory_floor http://127.0.0.1:9000/v1 redis://127.0.0.1:6379/0``
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import msgspec
import redis.asyncio as redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bench.floor import Forwarding, chunks, kept_headers, run

_ANSWERS = msgspec.json.Decoder()


def list_of(session: str) -> str:
    """The key of a session's messages, each a JSON text."""
    return f"messages:{session}"


class MemoryFloor(Forwarding):
    """Puts what was said before the messages of a request, and keeps what is said."""

    def __init__(self, upstream: str, store: str) -> None:
        super().__init__(upstream)
        self._redis = redis.from_url(store, max_connections=1_024)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with super().lifespan(app), self._redis:
            yield

    async def forward(self, request: Request) -> Response:
        asked = _ANSWERS.decode(await request.body())
        said = [msgspec.json.encode(message) for message in asked["messages"]]
        key = list_of(request.headers["x-session-id"])
        before = cast(list[bytes], await self._redis.lrange(key, 0, -1))
        asked["messages"] = msgspec.Raw(b"[%b]" % b",".join([*before, *said]))
        answer = await self.ask(request, msgspec.json.encode(asked))
        if answer.content_type == "text/event-stream":
            recorded = self._recorded(key, said, answer)
            return StreamingResponse(recorded, answer.status, kept_headers(answer))
        async with answer:
            body = await answer.read()
        message = _ANSWERS.decode(body)["choices"][0]["message"]
        await self._redis.rpush(key, *said, msgspec.json.encode(message))
        return Response(body, answer.status, kept_headers(answer))

    async def _recorded(
        self, key: str, said: list[bytes], answer: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        events = bytearray()
        async for chunk in chunks(answer):
            events += chunk
            yield chunk
        message = {"role": "assistant", "content": _text(bytes(events))}
        await self._redis.rpush(key, *said, msgspec.json.encode(message))


def _text(events: bytes) -> str:
    """What a stream said."""
    payloads = [line[6:] for line in events.split(b"\n") if line.startswith(b"data: {")]
    choices = [choice for payload in payloads for choice in _ANSWERS.decode(payload)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


if __name__ == "__main__":
    run(MemoryFloor(*sys.argv[1:]))
