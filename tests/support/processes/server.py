"""A real uvicorn around any ASGI application, and raw bytes to and from it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from proxy.server import KEEP_ALIVE_SECONDS
from proxy.wire.server import HttpProtocol
from tests.support.waiting import PATIENCE

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


@asynccontextmanager
async def serving(
    app: App, *, protocol: type[HttpProtocol] = HttpProtocol, lifespan: str = "off"
) -> AsyncIterator[int]:
    """Serve on a free loopback port, which is what the block gets; stop at its end."""
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan=lifespan,  # type: ignore[arg-type]
        log_level="critical",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    # uvicorn's own serve() would take over the signals of the test run.
    task = asyncio.create_task(server._serve([listener]))
    try:
        while not server.started and not task.done():
            await asyncio.sleep(0)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


async def raw_exchange(port: int, *pieces: bytes, timeout: float = PATIENCE) -> bytes:
    """Send the pieces, each as soon as the one before it is out, and read until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(timeout):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()
