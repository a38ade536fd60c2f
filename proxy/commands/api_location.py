"""Finds the memory API for a command: of a running proxy, or on a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from proxy.commands.failure import NOT_ALLOWED, USAGE, CommandError
from proxy.integrations.terms import DEFAULT_URL
from proxy.lazy import lazy_import
from proxy.settings import Settings, SettingsError, load, without_credentials
from proxy.settings.content import content_of
from proxy.settings.sources import FROM_FILE
from proxy.tenancy import ANONYMOUS, SINGLE

if TYPE_CHECKING:
    from proxy import preflight
    from proxy.commands import local
    from proxy.integrations import api as memory_api
    from proxy.integrations.api import MemoryApi
else:
    preflight, local = lazy_import("proxy.preflight"), lazy_import("proxy.commands.local")
    memory_api = lazy_import("proxy.integrations.api")

URL, KEY, TENANT = "MEMORY_PROXY_URL", "MEMORY_PROXY_KEY", "MEMORY_PROXY_TENANT"
ADMIN_KEY = "MEMORY_PROXY_ADMIN_KEY"

_VISIBLE = re.compile(r"[!-~]+")


class Connection(msgspec.Struct, frozen=True):
    """How to reach memory, from the command line; the rest, such as keys, is in the
    environment."""

    url: str | None = None
    store: str | None = None
    tenant: str | None = None
    config: Path | None = None
    all_tenants: bool = False
    """The command is about all tenants; for administrators."""

    @contextmanager
    def api(self, environ: Mapping[str, str] = os.environ) -> Iterator[MemoryApi]:
        """The memory API.  Raises CommandError if it cannot be reached."""
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
        tenant = None if self.all_tenants else self.tenant or environ.get(TENANT)
        admin_key, key = _key(ADMIN_KEY, environ), _key(KEY, environ)
        if (tenant or self.all_tenants) and not admin_key:
            what = "This" if self.all_tenants else "--tenant"
            sentence = f"{what} needs the administrator's key in {ADMIN_KEY}."
            raise CommandError(sentence, NOT_ALLOWED)
        if key and not tenant and not self.all_tenants:
            return memory_api.MemoryApi(url, key, None, None)
        api = memory_api.MemoryApi(url, admin_key, tenant, None)
        if admin_key and not tenant:
            _expect_administrator(api)
        return api

    @contextmanager
    def _on_store(self, environ: Mapping[str, str]) -> Iterator[MemoryApi]:
        settings = settings_of(self.config, {"store.url": self.store}, environ)
        known = local.tenants_in(settings)
        tenant, key = None, None
        if not self.all_tenants:
            tenant = self.tenant or environ.get(TENANT)
            key = None if tenant else _own_key(settings, environ)
        if tenant:
            warn_of_unknown_tenant(settings, tenant)
        elif not key and not self.all_tenants:
            tenant = _single_tenant(settings, known)
        with (
            local.serving(settings) as served,
            _closing(memory_api.MemoryApi(served.url, key or served.key, tenant, None)) as api,
        ):
            yield api


@contextmanager
def _closing(api: MemoryApi) -> Iterator[MemoryApi]:
    try:
        yield api
    finally:
        api.close()


def settings_of(
    config: Path | None, flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings from a file and flags.  Raises CommandError if they are invalid."""
    try:
        settings = load(config, dict(flags), environ)
    except SettingsError as error:
        raise CommandError("\n".join(error.problems), USAGE) from error
    problems = tuple(preflight.configuration_problems(settings))
    if problems:
        raise CommandError("\n".join(problems), USAGE)
    return settings


def warn_of_unknown_tenant(settings: Settings, tenant: str) -> None:
    """Print a warning if only named clients have memory and none has this name."""
    names = {client.name for client in settings.clients}
    if settings.tenancy.mode == "clients" and tenant not in names:
        sentence = f'no client is called "{tenant}": none can reach its memory'
        typer.echo(f"memory-proxy: note: {sentence}", err=True)


def _address(url: str) -> str:
    """A proxy's URL, checked.  Raises CommandError."""
    if not memory_api.is_address(url):
        sentence = f"{without_credentials(url)} is not the URL of a proxy; write it like"
        raise CommandError(f"{sentence} {DEFAULT_URL}", USAGE)
    return url


def _key(name: str, environ: Mapping[str, str]) -> str | None:
    """A key from the environment, or from a file that it names as for ``serve``.  Raises
    CommandError, without the key, if HTTP cannot carry it."""
    key, file = environ.get(name), environ.get(name + FROM_FILE)
    if not key and file:
        try:
            key = content_of(file)
        except ValueError as error:
            raise CommandError(f"{name}{FROM_FILE}: {error}", USAGE) from None
    if key and not _VISIBLE.fullmatch(key):
        sentence = "holds characters that no key has, perhaps a space or the end of a line."
        raise CommandError(f"{name} {sentence}", USAGE)
    return key


def _expect_administrator(api: MemoryApi) -> None:
    """Raise CommandError unless the key is the administrator's: any other key would be a tenant
    without memory.

    With a named tenant the proxy itself refuses other keys.
    """
    if not api.ask("GET", "/whoami")["admin"]:
        sentence = f"The key in {ADMIN_KEY} is not the administrator's of this proxy."
        raise CommandError(sentence, NOT_ALLOWED)


def _own_key(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """The key in the environment, if its hash is the name of its tenant in the store."""
    key = _key(KEY, environ)
    return key if settings.tenancy.mode == "key" else None


def _single_tenant(settings: Settings, known: Sequence[str]) -> str:
    """The tenant of the store if there is only one.  Raises CommandError."""
    if settings.tenancy.mode == "single":
        return SINGLE
    tenants = sorted({*known, *(client.name for client in settings.clients)})
    if len(tenants) < 2:
        return next(iter(tenants), ANONYMOUS)
    names = "\n".join(f"  {name}" for name in tenants)
    sentence = f"This store has the memory of several tenants; say whose with --tenant:\n{names}"
    raise CommandError(sentence, USAGE)
