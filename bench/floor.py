"""The least that a streaming proxy on this stack can do: Starlette in, aiohttp out, no thought.

``python -m bench.floor http://127.0.0.1:9000/v1``
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from proxy.server import address_of, listen
from proxy.settings import ServerSettings

_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "transfer-encoding"})


class Forwarding(ABC):
    """What a probe that asks the upstream needs; subclasses answer in ``forward``."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as self._session:
            yield

    @abstractmethod
    async def forward(self, request: Request) -> Response: ...

    async def ask(self, request: Request, body: bytes) -> aiohttp.ClientResponse:
        headers = {k: v for k, v in request.headers.items() if k not in _NOT_FORWARDED}
        url = self._upstream + request.url.path.removeprefix("/v1")
        return await self._session.post(url, data=body, headers=headers)


class Floor(Forwarding):
    """Forwards whatever comes."""

    async def forward(self, request: Request) -> Response:
        answer = await self.ask(request, await request.body())
        return StreamingResponse(chunks(answer), answer.status, kept_headers(answer))


def kept_headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.lower() != "transfer-encoding"}


async def chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_any():
            yield chunk


def run(floor: Forwarding) -> None:
    """Serve on a free port, told in the first line."""
    route = Route("/v1/{rest:path}", floor.forward, methods=["POST"])
    app = Starlette(routes=[route], lifespan=floor.lifespan)
    with listen(ServerSettings(port=0)) as listener:
        print(address_of(listener), flush=True)
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    run(Floor(sys.argv[1]))
