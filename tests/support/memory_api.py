"""The memory API in one process: its routes, the relay beside it, and a client for both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from proxy.assembly.parts import parts_of
from proxy.assembly.resources import Resources, upstream_of
from proxy.chat.models.tokens import Tokenizers
from proxy.gateway.gateway import Gateway
from proxy.gateway.request import Scope
from proxy.gateway.routes import route
from proxy.learning.kinds import KINDS, Kind
from proxy.memory.recording.recorder import Recorder
from proxy.memory.recording.spool import Spool
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.telemetry import Telemetry
from proxy.wire.body import Receive
from proxy.wire.relay import Send
from tests.support.conformance import conforming

SESSIONS = "/memory/v1/sessions"
ADMIN_KEY = "the-administrators-key"
TOKENIZERS = Tokenizers()
ENDING = 5.0
"""Seconds for what is being recorded at the end."""


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


@asynccontextmanager
async def open_site(
    settings: Settings,
    store: Backend,
    folder: Path,
    *,
    with_spool: bool = True,
    kinds: Sequence[Kind] = KINDS,
    long_timeout_store: Backend | None = None,
    writes: bool = False,
) -> AsyncIterator[Site]:
    """A site over an open store.  Without its spool the recorder is not opened either.

    ``long_timeout_store`` is the same store with more time; else the store has enough itself.
    ``writes``: background work runs here, if the settings enable any.
    """
    place = {"path": str(folder / "spool.db")}
    settings = settings.model_copy(update={"spool": settings.spool.model_copy(update=place)})
    upstream = upstream_of(settings)
    await upstream.open()
    async with AsyncExitStack() as opened:
        opened.push_async_callback(upstream.close)
        resources = Resources(
            settings, Telemetry(), TOKENIZERS, store, long_timeout_store or store, upstream, opened
        )
        parts = await parts_of(resources, writes=writes, index_delay=0, kinds=kinds)
        if with_spool:
            await parts.open(ENDING)
        routes = Starlette(routes=parts.routes())
        yield Site(settings, store, parts.spool, parts.recorder, parts.gateway(), routes)


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
