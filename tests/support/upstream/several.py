"""Several upstreams: as values, and as servers behind one proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from proxy.upstreams.destination import Destination
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import open_upstream
from tests.support.client import client_of
from tests.support.processes.running import PATIENT, Running, running, settings_for
from tests.support.upstream.answers import Script, json_answer
from tests.support.upstream.scripted import Request, ScriptedUpstream
from tests.support.waiting import PATIENCE

CHAT = "/v1/chat/completions"


def destination(name: str, *models: str, **more: Any) -> Destination:
    """One that nobody asks."""
    client = open_upstream("direct", UpstreamOptions("http://127.0.0.1:1/v1"))
    return Destination(name, client, models, **more)


def lists(*models: Mapping[str, Any] | str) -> Script:
    """A list of models, by their ids or as they are."""
    data = [{"id": each} if isinstance(each, str) else each for each in models]
    return json_answer({"object": "list", "data": data})


@dataclass
class Several:
    """A proxy, its upstreams by their names, and a client without a key."""

    proxy: Running
    ups: dict[str, ScriptedUpstream]
    client: httpx.AsyncClient

    async def ask(self, model: str = "m", text: str = "hello", **headers: str) -> httpx.Response:
        """A chat; header names with ``_`` for ``-``."""
        body = {"model": model, "messages": [{"role": "user", "content": text}]}
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(CHAT, json=body, headers=sent)

    def asked(self) -> dict[str, int]:
        """How many requests each has got, beside those for its models, of those that got any."""
        got = {name: len(self.of(name)) for name in self.ups}
        return {name: count for name, count in got.items() if count}

    def of(self, name: str) -> list[Request]:
        """What one has got, beside those for its models."""
        return [each for each in self.ups[name].requests if not each.path.endswith("/models")]


@asynccontextmanager
async def several(
    folder: Path, listed: Mapping[str, Mapping[str, Any]], **overrides: object
) -> AsyncIterator[Several]:
    """A running proxy before "default" and all that are ``listed``: their settings by name."""
    async with AsyncExitStack() as opened:
        ups = {
            name: await opened.enter_async_context(ScriptedUpstream())
            for name in ("default", *listed)
        }
        chosen = [{"name": name, "url": ups[name].url, **more} for name, more in listed.items()]
        settings = settings_for(
            folder, ups["default"].url, **PATIENT | {"upstreams": chosen} | overrides
        )
        proxy = await opened.enter_async_context(running(settings))
        for name, more in listed.items():
            if "url" not in more:  # each is asked for its models at the start
                await ups[name].wait_for(1)
        client = await opened.enter_async_context(client_of(proxy.url, timeout=2 * PATIENCE))
        yield Several(proxy, ups, client)
