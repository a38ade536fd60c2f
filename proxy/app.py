"""The ASGI applications: the proxy, and the memory API without the chat.

The relay's requests go to the gateway directly; the few other routes are Starlette's.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette

from proxy.assembly.parts import parts_of
from proxy.assembly.resources import Resources, open_resources
from proxy.cors import Application, Cors
from proxy.errors import ProxyError, missing_v1, not_found
from proxy.gateway.gateway import Gateway
from proxy.gateway.request import Scope
from proxy.gateway.routes import api_without_v1, route
from proxy.logs import Access, access
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import Store, StoreError
from proxy.recall.query.words import CUES
from proxy.settings import Settings
from proxy.telemetry import Telemetry
from proxy.wire.body import Receive
from proxy.wire.relay import Delivery, Send

logger = logging.getLogger(__name__)

CLEANUP_SECONDS = 1.0
"""Seconds that a cancelled request has to end, beside those of a commit."""


def application(settings: Settings) -> Application:
    """The proxy with CORS."""
    return Cors(MemoryProxy(settings), settings.server.cors_origins)


class MemoryProxy:
    """The ASGI application.  Its parts exist between the lifespan's start-up and shutdown."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._telemetry = Telemetry()
        self._gateway: Gateway | None = None
        self._others = Starlette(lifespan=self._lifespan)
        self._others.router.default = self._nothing_here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._gateway is None:
            return await self._others(scope, receive, send)
        found = route(scope["raw_path"])
        if found is not None:
            await self._gateway.serve(found, scope, receive, send)
        elif api := api_without_v1(scope["raw_path"]):
            await self._refuse(scope, send, missing_v1(), f".../{api}")
        else:
            await self._others(scope, receive, send)

    async def _nothing_here(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._refuse(scope, send, not_found(), "...")

    async def _refuse(self, scope: Scope, send: Send, error: ProxyError, path: str) -> None:
        """Answer a request to an unknown path; ``path``: the part of it that may be logged."""
        clock = time.perf_counter()
        delivery = Delivery(send)
        await delivery.start(error.status, error.raw_headers)
        await delivery.end(error.body)
        self._telemetry.count_request("other", error.status, "none")
        line = Access(
            request=secrets.token_hex(8),
            method=scope["method"],
            route="other",
            path=path,
            status=error.status,
            ms=(time.perf_counter() - clock) * 1000,
            memory="none",
            bytes=delivery.bytes,
            error=error.code,
        )
        access(line)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open what the parts need; close it in reverse order.

        The recorder is closed before the store, so that pending commits are written.
        """
        async with open_resources(self._settings, self._telemetry) as resources:
            await _check_store(resources.store)
            await self._assemble(app, resources)
            yield
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                await gateway.drain(self._settings.store.commit_limit + CLEANUP_SECONDS)

    async def _assemble(self, app: Starlette, resources: Resources) -> None:
        # Before any request, a second in all: whoever comes while a cached property is computed
        # waits for it (until Python 3.12), and with the event loop waits every stream.
        await asyncio.to_thread(resources.tokenizers.warm)
        await asyncio.to_thread(CUES.warm)
        parts = await parts_of(resources, writes=True)
        await parts.open(self._settings.server.shutdown_timeout)
        app.router.routes += parts.routes(mcp=True)
        self._gateway = parts.gateway()


def memory_api(settings: Settings, timeout: float) -> Application:
    """The memory API without the chat, for a command that works on a store, also of a running
    proxy.

    ``timeout``: the timeout of each store call in seconds.  Exchanges in the spool are visible and
    not replayed: that is left to the proxy.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with open_resources(settings, Telemetry(), timeout, as_is=True) as resources:
            parts = await parts_of(resources, load_timeout=timeout)
            with suppress(SpoolError):  # it is shown as empty then
                await asyncio.to_thread(parts.spool.open)
            resources.opened.push_async_callback(asyncio.to_thread, parts.spool.close)
            app.router.routes += parts.routes()
            yield

    return Starlette(lifespan=lifespan)


async def _check_store(store: Store) -> None:
    """Log at start-up if the store cannot be used (wrong password, no connection).

    The proxy starts nevertheless.
    """
    try:
        await store.ping()
    except StoreError as failure:
        logger.warning("the store cannot be used, chats go on without memory: %s", failure)
    except Exception:  # the boundary to a back end: the proxy starts nevertheless
        logger.exception("the store failed in an unknown way")
