"""The memory API without the chat: for a command that works on a store, beside a proxy or alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from proxy.admin.routes import admin_routes
from proxy.app import admin_parts
from proxy.assembly import Ground, recalling_of, store_of, tenancy_of, upstream_of
from proxy.chat.tokens import Tokenizers
from proxy.gateway.exchange import Means
from proxy.gateway.informing import Informing
from proxy.gateway.preview import Preview
from proxy.gateway.reminder import Reminding
from proxy.gateway.rerender import rerender
from proxy.memory.planner import Planner
from proxy.memory.recorder import Recorder
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
        settings = self._settings
        async with AsyncExitStack() as opened:
            store, upstream = store_of(settings, self._patience), upstream_of(settings)
            await store.open()
            opened.push_async_callback(store.close)
            await upstream.open()
            opened.push_async_callback(upstream.close)
            ground = Ground(settings, Telemetry(), Tokenizers(), store, upstream, opened)
            app.router.routes += await self._made(ground)
            yield

    async def _made(self, ground: Ground) -> list[BaseRoute]:
        settings, telemetry = ground.settings, ground.telemetry
        counter = ground.tokenizers.counter_for
        recalling, learning = await recalling_of(ground), learning_of(ground)
        spool = await self._spool(ground)
        recorder = Recorder(
            ground.store,
            spool,
            Planner(ground.store, rerender),
            lambda model: counter(model).count,
            self._patience,
            telemetry.quarantined,
            recalling.follower.recorded,
        )
        means = Means(
            recorder=recorder,
            reminding=Reminding(recalling.recaller, telemetry),
            informing=Informing(learning.knowledge),
            counter=counter,
            telemetry=telemetry,
        )
        tenancy, preview = tenancy_of(settings), Preview(settings, means)
        return admin_routes(admin_parts(ground, spool, tenancy, preview, recalling, learning))

    async def _spool(self, ground: Ground) -> Spool:
        chosen = ground.settings.spool
        spool = Spool(Path(chosen.path), ground.store.name, chosen.max_bytes)
        with suppress(SpoolError):  # then nothing waits that we could see
            await asyncio.to_thread(spool.open)
        ground.opened.push_async_callback(asyncio.to_thread, spool.close)
        return spool
