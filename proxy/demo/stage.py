"""Starts the real proxy and its pretended upstream, and plays the scenes through them.

Both serve on free loopback ports in this process; all that is stored lies in a temporary folder.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import httpx
import msgspec
import uvicorn
from rich.console import Console
from starlette.types import ASGIApp

from proxy import factory
from proxy.demo.apis import NAME, Json
from proxy.demo.model import said
from proxy.demo.screen import (
    APART,
    BRIEF,
    BRIEF_MESSAGES,
    SCENES,
    SUMMED,
    USER,
    Scene,
    Turn,
    closing,
    opening,
    show,
)
from proxy.demo.upstream import PretendedUpstream
from proxy.memory.model import SessionKey, State
from proxy.recall.index import Owner
from proxy.server import ServerError, address_of, embedded_config, listen
from proxy.settings import ServerSettings, Settings
from proxy.stores.open import Backend, open_store

TENANT = "single"
HEADERS = ("x-memory-status", "x-memory-messages", "x-memory-tokens", "x-memory-recalled")
ACTIVE: tuple[State, ...] = ("active",)
SECONDS = 10.0
"""Everything here takes milliseconds; what takes so long has failed."""


def run(console: Console, scenes: Sequence[Scene] = SCENES) -> None:
    """Play the demo and print it.  Raises ServerError if no port can be had."""
    with tempfile.TemporaryDirectory(prefix="memory-proxy-demo-") as folder:
        asyncio.run(_play(console, scenes, folder))


async def _play(console: Console, scenes: Sequence[Scene], folder: str) -> None:
    upstream = PretendedUpstream()
    async with _serving(upstream) as model:
        settings = _settings(f"{model}/v1", folder)
        async with _serving(factory.application(settings)) as address, _reading(settings) as store:
            opening(console, address)
            stage = _Stage(f"{address}/v1/chat/completions", upstream, store)
            for number, scene in enumerate(scenes, 1):
                show(console, number, scene, await stage.play(scene))
            closing(console)


def _settings(upstream: str, folder: str) -> Settings:
    return Settings.model_validate(
        {
            "upstream": {"url": upstream},
            "store": {"url": f"sqlite:///{folder}/memory.db", "timeout": SECONDS},
            "spool": {"path": f"{folder}/spool.db"},
            "tenancy": {"mode": "single"},
            "profiles": {
                BRIEF: {
                    "window": "message_window",
                    "max_messages": BRIEF_MESSAGES,
                    "recall": {"enabled": False},  # it would find what the window leaves out
                },
                SUMMED: {
                    "window": "message_window",
                    "max_messages": BRIEF_MESSAGES,
                    "recall": {"enabled": False},
                    "block_placement": "separate",
                    "summary": {"enabled": True},
                },
                APART: {"block_placement": "separate"},
            },
        }
    )


class _Server(uvicorn.Server):
    """A server that leaves Ctrl-C to whoever runs the demo."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


@asynccontextmanager
async def _serving(application: ASGIApp) -> AsyncIterator[str]:
    """Serve on a free port while the block runs; gives the address."""
    with listen(ServerSettings(port=0)) as listener:
        server = _Server(embedded_config(application, 1))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            async with asyncio.timeout(SECONDS):
                while not server.started:
                    if serving.done():
                        raise ServerError("the demo's own server did not start")
                    await asyncio.sleep(0.01)
            yield address_of(listener)
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def _reading(settings: Settings) -> AsyncIterator[Backend]:
    """A look into the same file that the proxy writes."""
    store = open_store(settings.store.url, timeout=SECONDS, commit_timeout=SECONDS)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


class _Stage(msgspec.Struct):
    url: str
    upstream: PretendedUpstream
    store: Backend

    async def play(self, scene: Scene) -> Turn:
        """Send the scene's request with a client of its own: apps come and go."""
        before = await self._history(scene)
        if scene.waits_for == "index":
            await self._indexed()
        if scene.waits_for == "summary":
            await self._summarised(scene)
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            response = await client.post(self.url, headers=_headers(scene), json=_body(scene))
        response.raise_for_status()
        history = await self._history(scene)
        return Turn(
            received=tuple(self.upstream.received),
            answered=said(response.text) if scene.stream else _message(response),
            remembered=tuple(history[len(before) :]),
            earlier=len(before),
            headers={
                name.title(): value for name, value in response.headers.items() if name in HEADERS
            },
        )

    async def _indexed(self) -> None:
        """Wait until what was said before can be recalled: a week takes no time here."""
        async with asyncio.timeout(SECONDS):
            while not (await self.store.lookup(Owner(TENANT, user=USER), (), 0)).state:
                await asyncio.sleep(0.01)

    async def _summarised(self, scene: Scene) -> None:
        """Wait until the session has a summary."""
        key = SessionKey(TENANT, scene.session)
        async with asyncio.timeout(SECONDS):
            while not await self.store.summaries(key):
                await asyncio.sleep(0.01)

    async def _history(self, scene: Scene) -> list[Json]:
        key = SessionKey(TENANT, scene.session)
        page = await self.store.messages(key, ACTIVE, 0, 1000)
        return [json.loads(message.wire) for message in page.items]


def _message(response: httpx.Response) -> Json:
    message: Json = response.json()["choices"][0]["message"]
    return message


def _headers(scene: Scene) -> dict[str, str]:
    fields = {
        "X-Session-Id": scene.session,
        "X-User-Id": scene.user,
        "X-Memory-Profile": scene.profile,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _body(scene: Scene) -> Json:
    body: Json = {"model": NAME, "messages": scene.messages, "stream": scene.stream}
    return body | {"tools": scene.tools} if scene.tools else body
