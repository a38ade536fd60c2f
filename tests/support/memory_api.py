"""The memory API in one process: its routes, the relay beside it, and a client for both."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from proxy.admin.parts import AdminParts
from proxy.admin.routes import admin_routes
from proxy.chat import jsontext
from proxy.chat.message import read_message, text_of
from proxy.chat.tokens import Tokenizers
from proxy.gateway.call import Scope
from proxy.gateway.conversation import Conversations
from proxy.gateway.due import due_after_import
from proxy.gateway.exchange import Means
from proxy.gateway.gateway import Gateway
from proxy.gateway.informing import Informing
from proxy.gateway.passage import Passage
from proxy.gateway.preview import Preview
from proxy.gateway.reminder import Reminding
from proxy.gateway.rerender import rerender
from proxy.gateway.routes import route
from proxy.gateway.tenancy import Client, Tenancy
from proxy.learning.fact_book import FactBook
from proxy.learning.knowledge import CardFile
from proxy.learning.learned import Learned
from proxy.memory.planner import Planner
from proxy.memory.recorder import Recorder
from proxy.memory.spool import Spool
from proxy.recall.follower import Follower
from proxy.recall.indexer import Indexer
from proxy.recall.recaller import Recaller
from proxy.recall.remembrance import Remembrance
from proxy.settings import Settings
from proxy.stores.backend import Backend
from proxy.telemetry import Telemetry
from proxy.wire.body import Receive
from proxy.wire.relay import Send
from proxy.wire.upstream import UpstreamOptions, open_upstream
from tests.support.conformance import conforming

SESSIONS = "/memory/v1/sessions"
ADMIN_KEY = "the-administrators-key"
TOKENIZERS = Tokenizers()


@dataclass(slots=True)
class Site:
    """One proxy.  ``client`` comes from this machine, unless it is told otherwise."""

    settings: Settings
    store: Backend
    spool: Spool
    recorder: Recorder
    gateway: Gateway
    routes: Starlette

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        relayed = route(scope["raw_path"])
        if relayed is None:
            return await self.routes(scope, receive, send)
        await self.gateway.serve(relayed, scope, receive, send)

    def client(
        self, key: str | None = None, peer: str = "127.0.0.1", host: str = "localhost:8080"
    ) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self, client=(peer, 50000))
        return httpx.AsyncClient(
            transport=transport,
            base_url=f"http://{host}",
            headers=headers,
            event_hooks={"response": [conforming]},
        )


def _tenancy(settings: Settings) -> Tenancy:
    admin, upstream = settings.server.admin_key, settings.upstream.api_key
    return Tenancy(
        settings.tenancy.mode,
        [Client(x.name, x.key_sha256, x.profiles, x.allowed_paths) for x in settings.clients],
        upstream.get_secret_value() if upstream else None,
        admin.get_secret_value() if admin else None,
    )


def _uninformed(store: Backend) -> Informing:
    """Where nothing is learned."""
    return Informing(CardFile(store, (), time.time))


@asynccontextmanager
async def open_site(
    settings: Settings, store: Backend, folder: Path, *, with_spool: bool = True
) -> AsyncIterator[Site]:
    """A site over an open store.  Without its spool the recorder is not opened either."""
    telemetry, tenancy, counter = Telemetry(), _tenancy(settings), TOKENIZERS.counter_for
    spool = Spool(folder / "spool.db", store.name, settings.spool.max_bytes)
    indexer = Indexer(store, store, text_of, time.time)
    follower = Follower(indexer, time.monotonic, telemetry.indexed, delay=0)
    recaller = Recaller(store, store, follower, text_of, time.time)
    recorder = Recorder(
        store,
        spool,
        Planner(store, rerender),
        lambda model: counter(model).count,
        settings.store.timeout,
        telemetry.quarantined,
        follower.recorded,
    )
    upstream = open_upstream("aiohttp", UpstreamOptions(url=settings.upstream.url))
    means = Means(recorder, Reminding(recaller, telemetry), _uninformed(store), counter, telemetry)
    parts = AdminParts(
        settings=settings,
        telemetry=telemetry,
        store=store,
        spool=spool,
        tenants=tenancy,
        preview=Preview(settings, means),
        remembrance=Remembrance(recaller, indexer),
        due_after_import=partial(due_after_import, settings.memory),
        on_recorded=follower.recorded,
        on_edited=follower.edited,
        read_message=read_message,
        counter=lambda model: counter(model).count,
        counters=TOKENIZERS.in_use,
        count_text=lambda text: counter(None).count_text(text),
        troubled=lambda: recorder.troubled,
        losing=lambda: recorder.losing,
        fields=jsontext.fields,
        items=jsontext.items,
        decode=jsontext.shallow,
        shelves=store,
        meter=store,
        learned=Learned.under(settings, store, text_of, counter(None).count_text, time.time),
        facts=FactBook(store, counter(None).count_text, time.time),
    )
    passage = Passage(upstream, tenancy, telemetry)
    chats = Conversations(settings, passage, means)
    gateway = Gateway(settings, tenancy, passage, chats, telemetry)
    await upstream.open()
    if with_spool:
        await recorder.open()
        follower.open()
    routes = Starlette(routes=list(admin_routes(parts)))
    try:
        yield Site(settings, store, spool, recorder, gateway, routes)
    finally:
        await recorder.close(5)
        await follower.close(5)
        await upstream.close()


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def talk(*texts: str) -> list[dict[str, Any]]:
    """Messages of a user and an assistant in turn."""
    return [said("assistant" if i % 2 else "user", text) for i, text in enumerate(texts)]


async def seed(
    client: httpx.AsyncClient, session: str, *messages: dict[str, Any], **more: Any
) -> list[dict[str, Any]]:
    """Import messages; the created objects."""
    body = {"messages": list(messages), **more}
    response = await client.post(f"{SESSIONS}/{session}/messages", json=body)
    assert response.status_code == 200, response.text
    created: list[dict[str, Any]] = response.json()["data"]
    return created


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error of an answer, which has OpenAI's shape."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error
