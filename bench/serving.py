"""An upstream of a benchmark, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

MAX_BODY_BYTES = 64 << 20
"""Bytes of a request."""


@asynccontextmanager
async def posts(handlers: Mapping[str, Handler]) -> AsyncIterator[str]:
    """The URL of a server that answers POST requests, by path."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    for path, handler in handlers.items():
        app.router.add_post(path, handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
