"""The memory API without the chat: for a command that works on a store, beside a proxy or alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from proxy.admin.routes import admin_routes
from proxy.app import admin_parts, means_of
from proxy.assembly import Ground, ground_of, recalling_of, recorder_of, spool_of, tenancy_of
from proxy.gateway.preview import Preview
from proxy.memory.spool import Spool, SpoolError
from proxy.settings import Settings
from proxy.telemetry import Telemetry
from proxy.writing import learning_of


class Administration:
    """An ASGI application.  ``patience`` is how long one look at the store may take, in seconds.

    What waits in the spool is seen and not carried out: that is the proxy's.
    """

    def __init__(self, settings: Settings, patience: float) -> None:
        self._settings, self._patience = settings, patience
        self._routes = Starlette(lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._routes(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async with self._ground() as ground:
            app.router.routes += await self._made(ground)
            yield

    def _ground(self) -> AbstractAsyncContextManager[Ground]:
        return ground_of(self._settings, Telemetry(), self._patience, as_is=True)

    async def _made(self, ground: Ground) -> list[BaseRoute]:
        recalling, learning = await recalling_of(ground), learning_of(ground)
        spool = await _spool(ground)
        recorder = recorder_of(ground, spool, self._patience, recalling)
        preview = Preview(ground.settings, means_of(ground, recorder, recalling, learning))
        tenancy = tenancy_of(ground.settings)
        parts = admin_parts(ground, spool, recorder, tenancy, preview, recalling, learning)
        return admin_routes(parts)


async def _spool(ground: Ground) -> Spool:
    spool = spool_of(ground)
    with suppress(SpoolError):  # then nothing waits that we could see
        await asyncio.to_thread(spool.open)
    ground.opened.push_async_callback(asyncio.to_thread, spool.close)
    return spool
