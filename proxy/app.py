"""The composition root: which parts there are, and how they hang together.

Everything else receives its collaborators.  The relay's requests go to the gateway directly; the
few other routes are Starlette's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette

from proxy.admin.parts import AdminParts
from proxy.admin.routes import admin_routes
from proxy.assembly import (
    Ground,
    Recalling,
    ground_of,
    recalling_of,
    recorder_of,
    spool_of,
    tenancy_of,
)
from proxy.chat import jsontext
from proxy.chat.message import read_message
from proxy.cors import Application, Cors
from proxy.errors import ProxyError, missing_v1, not_found
from proxy.gateway.call import Scope
from proxy.gateway.conversation import Conversations
from proxy.gateway.due import due_after_import
from proxy.gateway.exchange import Means
from proxy.gateway.gateway import Gateway
from proxy.gateway.informing import Informing
from proxy.gateway.passage import Passage
from proxy.gateway.preview import Preview
from proxy.gateway.reminder import Reminding
from proxy.gateway.routes import misses_v1, route
from proxy.gateway.tenancy import Tenancy
from proxy.gateway.toolbox import Toolbox
from proxy.memory.recorder import Recorder, unattended
from proxy.memory.spool import Spool
from proxy.memory.store import Store, StoreError
from proxy.recall.remembrance import Remembrance
from proxy.settings import Settings
from proxy.telemetry import Telemetry
from proxy.wire.body import Receive
from proxy.wire.relay import Delivery, Send
from proxy.writing import ENDING, Learning, learning_of, writing_of

logger = logging.getLogger(__name__)

CLEANING_UP = 1.0
"""Seconds beside a commit's that a cancelled request may take to end."""


def application(settings: Settings) -> Application:
    """The proxy, and what browsers may ask of it."""
    return Cors(MemoryProxy(settings), settings.server.cors_origins)


class MemoryProxy:
    """The ASGI application.  Its parts exist between the lifespan's start-up and shutdown."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._telemetry = Telemetry()
        self._gateway: Gateway | None = None
        self._others = Starlette(lifespan=self._lifespan)
        self._others.router.default = _nothing_here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._gateway is None:
            return await self._others(scope, receive, send)
        found = route(scope["raw_path"])
        if found is not None:
            await self._gateway.serve(found, scope, receive, send)
        elif misses_v1(scope["raw_path"]):
            await _answer(send, missing_v1())
        else:
            await self._others(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open what the parts need; close it in the opposite order.

        The recorder is closed before the store: what is still being written has to get there.
        """
        async with ground_of(self._settings, self._telemetry) as ground:
            await _look_at(ground.store)
            await self._assemble(app, ground)
            yield
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                await gateway.drain(self._settings.store.commit_limit + CLEANING_UP)

    async def _assemble(self, app: Starlette, ground: Ground) -> None:
        settings, opened = ground.settings, ground.opened
        await asyncio.to_thread(ground.tokenizers.warm)  # half a second no request should wait for
        recalling = await recalling_of(ground)
        learning = learning_of(ground)
        writing = await writing_of(ground, learning)
        spool = spool_of(ground)
        on_due = writing.due if writing else unattended
        recorder = recorder_of(ground, spool, settings.store.timeout, recalling, on_due)
        await recorder.open()
        opened.push_async_callback(recorder.close, settings.server.shutdown_timeout)
        if writing is not None:
            writing.runner.open()
            opened.push_async_callback(writing.runner.close, ENDING)
        tenancy = tenancy_of(settings)
        passage = Passage(ground.upstream, tenancy, ground.telemetry)
        means = means_of(ground, recorder, recalling, learning)
        toolbox = Toolbox(learning.facts, recalling.recaller, time.time)
        on_answered = writing.heard if writing else None
        conversations = Conversations(settings, passage, means, toolbox, on_answered)
        preview = Preview(settings, means)
        parts = admin_parts(ground, spool, recorder, tenancy, preview, recalling, learning)
        app.router.routes += admin_routes(parts)
        self._gateway = Gateway(settings, tenancy, passage, conversations, ground.telemetry)


def means_of(ground: Ground, recorder: Recorder, recalling: Recalling, learning: Learning) -> Means:
    """What an exchange is made with."""
    return Means(
        recorder=recorder,
        reminding=Reminding(recalling.recaller, ground.telemetry),
        informing=Informing(learning.knowledge),
        counter=ground.tokenizers.counter_for,
        telemetry=ground.telemetry,
    )


def admin_parts(
    ground: Ground,
    spool: Spool,
    recorder: Recorder,
    tenancy: Tenancy,
    preview: Preview,
    recalling: Recalling,
    learning: Learning,
) -> AdminParts:
    """What the memory API is made of."""
    counter = ground.tokenizers.counter_for
    return AdminParts(
        settings=ground.settings,
        telemetry=ground.telemetry,
        store=ground.store,
        spool=spool,
        tenants=tenancy,
        preview=preview,
        remembrance=Remembrance(recalling.recaller, recalling.indexer),
        on_recorded=recalling.follower.recorded,
        on_edited=recalling.follower.edited,
        due_after_import=partial(due_after_import, ground.settings.memory),
        read_message=read_message,
        counter=lambda model: counter(model).count,
        counters=ground.tokenizers.in_use,
        count_text=ground.count_text,
        fields=jsontext.fields,
        items=jsontext.items,
        decode=jsontext.shallow,
        shelves=ground.store,
        meter=ground.store,
        learned=learning.learned,
        facts=learning.facts,
        troubled=lambda: recorder.troubled,
        losing=lambda: recorder.losing,
    )


async def _look_at(store: Store) -> None:
    """Say at once what else the first chat would find out: a wrong password, a server that is away.

    The proxy starts all the same.
    """
    try:
        await store.ping()
    except StoreError as failure:
        logger.warning("the store cannot be used, chats go on without memory: %s", failure)
    except Exception:  # the boundary to a back end: the proxy starts whatever it answers
        logger.exception("the store failed in an unknown way")


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    await _answer(send, not_found())


async def _answer(send: Send, error: ProxyError) -> None:
    delivery = Delivery(send)
    await delivery.start(error.status, error.raw_headers)
    await delivery.end(error.body)
