"""The real proxy on a real socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from proxy import factory
from proxy.app import MemoryProxy
from proxy.cors import Cors
from proxy.server import KEEP_ALIVE_SECONDS, HttpProtocolFactory, listen
from proxy.settings import Settings, load
from tests.support.waiting import PATIENCE


@dataclass
class Running:
    """A proxy that serves; ``url`` is its root, ``v1`` what an SDK is given."""

    url: str
    application: MemoryProxy
    settings: Settings
    server: uvicorn.Server

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


PATIENT: dict[str, object] = {
    name: PATIENCE
    for name in ("store__timeout", "store__commit_timeout", "memory__recall__timeout")
}
"""On a busy machine a store takes longer than a chat would wait for."""


def settings_for(folder: Path, upstream: str, **overrides: object) -> Settings:
    """Settings of a proxy that keeps everything in ``folder``; names are dotted with ``__``."""
    values: dict[str, object] = {
        "server.port": 0,
        "upstream.url": upstream,
        "store.url": f"sqlite:///{folder}/memory.db",
        "spool.path": f"{folder}/spool.db",
    }
    values |= {name.replace("__", "."): value for name, value in overrides.items()}
    return load(None, values, {})


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Running]:
    """Serve while the block runs; at its end everything has been drained and closed."""
    application = factory.application(settings)
    with listen(settings.server) as listener:
        config = uvicorn.Config(
            application,
            http=HttpProtocolFactory(settings.server.max_header_bytes),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            if serving.done():
                serving.result()
                raise RuntimeError("the proxy did not start")
            await asyncio.sleep(0.005)
        port = listener.getsockname()[1]
        inner = application.inner if isinstance(application, Cors) else application
        assert isinstance(inner, MemoryProxy)
        try:
            yield Running(f"http://127.0.0.1:{port}", inner, settings, server)
        finally:
            server.should_exit = True
            await serving
            gc.collect()
