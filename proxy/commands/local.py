"""Serves the memory API on a store in this process while a command runs.

It listens on a free loopback port and requires a key that is made here.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvicorn
from pydantic import SecretStr

from proxy.app import memory_api
from proxy.assembly.resources import store_of
from proxy.commands.failure import NOT_FOUND, CommandError
from proxy.memory.store import StoreError
from proxy.server import embedded_config
from proxy.settings import Settings
from proxy.stores.address import read_address

STORE_TIMEOUT = 60.0
"""Seconds for one call of the store: longer than for a chat, as a person waits."""

DRAIN_SECONDS = 10


class LocalApi(msgspec.Struct, frozen=True):
    """The temporary memory API: its URL and key."""

    url: str
    key: str


class _Server(uvicorn.Server):
    """A server that signals when it serves or has failed to start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.ready.set()


@contextmanager
def serving(settings: Settings) -> Iterator[LocalApi]:
    """The memory API on the store of the settings.  Raises CommandError."""
    key = secrets.token_urlsafe(32)
    server = settings.server.model_copy(update={"admin_key": SecretStr(key)})
    application = memory_api(settings.model_copy(update={"server": server}), STORE_TIMEOUT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = _Server(embedded_config(application, DRAIN_SECONDS, lifespan="on"))
        arguments = {"sockets": [listener]}
        thread = threading.Thread(target=running.run, kwargs=arguments, name="memory API")
        thread.start()
        try:
            running.ready.wait()
            if not running.started:
                raise CommandError("The store cannot be used; the lines above say why.")
            yield LocalApi(f"http://127.0.0.1:{listener.getsockname()[1]}", key)
        finally:
            running.should_exit = True
            thread.join()


def check_exists(settings: Settings) -> None:
    """Raise CommandError if the store's file does not exist, as opening it would create it."""
    address = read_address(settings.store.url)
    if address.kind == "sqlite" and not Path(address.path).exists():
        sentence = f"There is no database at {address.path}. Name the one you mean with --store."
        raise CommandError(sentence, NOT_FOUND)


def tenants_in(settings: Settings) -> Sequence[str]:
    """The tenants with memory in the store.  Raises CommandError if it cannot be reached."""
    check_exists(settings)
    try:
        return asyncio.run(_tenants(settings))
    except StoreError as failure:
        raise CommandError(f"The store does not work: {failure}") from failure


async def _tenants(settings: Settings) -> Sequence[str]:
    store = store_of(settings, STORE_TIMEOUT, as_is=True)
    try:
        await store.open()
        await store.ping()
        return await store.tenants()
    finally:
        await store.close()
