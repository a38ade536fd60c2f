"""Where a command finds the memory: at a running proxy, or on a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import typer

from proxy.commands.failure import USAGE, CommandError
from proxy.gateway.tenancy import ANONYMOUS, SINGLE, digest_of
from proxy.integrations.api import DEFAULT_URL, MemoryApi
from proxy.late import late
from proxy.settings import Settings, SettingsError, load, without_credentials

if TYPE_CHECKING:
    from proxy import preflight
    from proxy.commands import local
else:
    preflight, local = late("proxy.preflight"), late("proxy.commands.local")

URL, KEY, TENANT = "MEMORY_PROXY_URL", "MEMORY_PROXY_KEY", "MEMORY_PROXY_TENANT"
ADMIN_KEY = "MEMORY_PROXY_ADMIN_KEY"

_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Reach:
    """What the command line says of it; the environment has the rest, the keys above all."""

    url: str | None = None
    store: str | None = None
    tenant: str | None = None
    config: Path | None = None

    @contextmanager
    def api(self, environ: Mapping[str, str] = os.environ) -> Iterator[MemoryApi]:
        """The memory API.  Raises CommandError where there is no way to it."""
        if self.store is not None or self.config is not None:
            if self.url is not None:
                raise CommandError("--url and --store exclude each other.", USAGE)
            with self._on_store(environ) as api:
                yield api
        else:
            with _closing(self._at_proxy(environ)) as api:
                yield api

    def _at_proxy(self, environ: Mapping[str, str]) -> MemoryApi:
        url = _address(self.url or environ.get(URL) or DEFAULT_URL)
        tenant = self.tenant or environ.get(TENANT)
        admin_key, key = _key(ADMIN_KEY, environ), _key(KEY, environ)
        if tenant and not admin_key:
            raise CommandError(f"--tenant needs the administrator's key in {ADMIN_KEY}.", USAGE)
        return MemoryApi(url, admin_key if tenant or not key else key, tenant, None)

    @contextmanager
    def _on_store(self, environ: Mapping[str, str]) -> Iterator[MemoryApi]:
        settings = self._settings(environ)
        known = local.tenants_in(settings)
        named = self.tenant or environ.get(TENANT)
        tenant = named or _own(settings, environ) or _only(known)
        if named:
            doubt(settings, named)
        with (
            local.serving(settings) as served,
            _closing(MemoryApi(served.url, served.key, tenant, None)) as api,
        ):
            yield api

    def _settings(self, environ: Mapping[str, str]) -> Settings:
        try:
            settings = load(self.config, {"store.url": self.store}, environ)
        except SettingsError as error:
            raise CommandError("\n".join(error.problems), USAGE) from error
        problems = tuple(preflight.unreadable(settings))
        if problems:
            raise CommandError("\n".join(problems), USAGE)
        return settings


@contextmanager
def _closing(api: MemoryApi) -> Iterator[MemoryApi]:
    try:
        yield api
    finally:
        api.close()


def doubt(settings: Settings, tenant: str) -> None:
    """Say so where only named clients have memory, and none is called so."""
    names = {client.name for client in settings.clients}
    if settings.tenancy.mode == "clients" and tenant not in names:
        sentence = f'no client is called "{tenant}": none can reach its memory'
        typer.echo(f"memory-proxy: note: {sentence}", err=True)


def _address(url: str) -> str:
    """Raises CommandError for what cannot be that of a proxy."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in ("http", "https") or not parts.host:
        sentence = f"{without_credentials(url)} is not the URL of a proxy; write it like"
        raise CommandError(f"{sentence} {DEFAULT_URL}", USAGE)
    return url


def _key(name: str, environ: Mapping[str, str]) -> str | None:
    """Raises CommandError for what HTTP cannot carry, and does not quote it."""
    key = environ.get(name)
    if key and not _VISIBLE.fullmatch(key):
        sentence = "holds characters that no key has, perhaps a space or the end of a line."
        raise CommandError(f"{name} {sentence}", USAGE)
    return key


def _own(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The tenant of the key in the environment, or the only one that there can be."""
    key = _key(KEY, environ)
    if settings.tenancy.mode == "single":
        return SINGLE
    return digest_of(key.encode()) if key and settings.tenancy.mode == "key" else None


def _only(tenants: Sequence[str]) -> str:
    """The tenant that is meant where none is named."""
    if len(tenants) < 2:
        return next(iter(tenants), ANONYMOUS)
    names = "\n".join(f"  {name}" for name in tenants)
    sentence = f"This store has the memory of several tenants; say whose with --tenant:\n{names}"
    raise CommandError(sentence, USAGE)
