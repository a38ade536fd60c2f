"""Finds settings that are valid but probably mistakes, for ``memory-proxy check``.

Knows the settings only: whether what they name works is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from proxy.assembly.mcp import unmet
from proxy.gateway.context import reserved_tokens
from proxy.settings import ProfileSettings, Settings
from proxy.stores.address import read_address

SHORT_KEY = 16
"""An administrator's key with fewer characters can be guessed."""

IN_THE_CLEAR = "is plain http to another host: messages travel in the clear"
KEYS_IN_THE_CLEAR = "is plain http to another host: keys and messages travel in the clear"

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def setting_warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    """The names of such settings, and a sentence on each."""
    server, memory_url = settings.server, settings.store.url
    public = server.host not in _LOOPBACK
    if memory_url == "memory://":
        yield "store.url", "memory:// forgets everything when the proxy ends"
        if server.workers > 1:
            yield "server.workers", "with memory:// each worker has a memory of its own"
    if _is_spool(settings):
        yield "spool.path", "is the store's own file: what breaks one takes the other with it"
    if settings.store.wait_replicas and memory_url.startswith(("sqlite:", "memory:")):
        yield "store.wait_replicas", "only Redis has replicas to wait for"
    if public and server.admin_key is None:
        yield "server.admin_key", "is not set: other hosts cannot use /memory without a key"
    if server.admin_key is not None and len(server.admin_key.get_secret_value()) < SHORT_KEY:
        text = f"is shorter than {SHORT_KEY} characters: who guesses it sees everybody's memory"
        yield "server.admin_key", text
    if public and settings.tenancy.mode == "single":
        yield "tenancy.mode", '"single" gives everybody who can connect the same memory'
    if settings.clients and settings.tenancy.mode != "clients":
        yield "clients", 'are for tenancy.mode = "clients": in this mode every key is let in'
    yield from _upstream_warnings(settings)
    yield from unmet(settings)
    yield from _listed_upstream_warnings(settings, public=public)
    yield from _embeddings_warnings(settings)
    profiles = {f"profiles.{name}": profile for name, profile in settings.profiles.items()}
    for name, profile in {"memory": settings.memory, **profiles}.items():
        yield from _budget_warnings(name, profile)
        yield from _writer_warnings(name, profile)


def _is_spool(settings: Settings) -> bool:
    store = read_address(settings.store.url)
    return store.kind == "sqlite" and store.path.resolve() == Path(settings.spool.path).resolve()


def _upstream_warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    if _in_the_clear(settings.upstream.url):
        yield "upstream.url", KEYS_IN_THE_CLEAR
    if _has_unused_key(settings):
        text = 'is for tenancy.mode = "clients": in this mode clients send their own'
        yield "upstream.api_key", text


def _has_unused_key(settings: Settings) -> bool:
    """Whether the upstream has a key that neither chats nor embeddings use."""
    chosen = settings.memory.recall.embeddings
    embeds = chosen.model and not (chosen.local or chosen.url or chosen.api_key)
    other = settings.tenancy.mode != "clients" and not embeds
    return other and settings.upstream.api_key is not None


def _listed_upstream_warnings(settings: Settings, *, public: bool) -> Iterator[tuple[str, str]]:
    """About [[upstreams]]."""
    for listed in settings.upstreams:
        if listed.keys and public and settings.tenancy.mode != "clients":
            text = 'is spent for everybody who can connect: tenancy.mode is not "clients"'
            yield f"upstreams.{listed.name}.{listed.keys[0]}", text
        if _in_the_clear(listed.url):
            yield f"upstreams.{listed.name}.url", KEYS_IN_THE_CLEAR


def _embeddings_warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    chosen = settings.memory.recall.embeddings
    if not chosen.model or chosen.local:
        return
    if chosen.api_key is None and (chosen.url or settings.upstream.api_key is None):
        yield "memory.recall.embeddings.api_key", "is not set: vectors are asked for without a key"
    if chosen.url and _in_the_clear(chosen.url):
        yield "memory.recall.embeddings.url", IN_THE_CLEAR


def _writer_warnings(name: str, profile: ProfileSettings) -> Iterator[tuple[str, str]]:
    """About the parts that a model writes."""
    summary = profile.summary
    if summary.enabled and summary.mode == "summary_buffer" and profile.window == "all":
        yield f"{name}.summary.enabled", 'with window = "all" nothing is evicted: none is written'
    for part, chosen in profile.model_callers.items():
        if chosen.enabled and chosen.url and chosen.api_key is None:
            yield f"{name}.{part}.api_key", "is not set: its url is asked without a key"
        if chosen.enabled and chosen.url and _in_the_clear(chosen.url):
            yield f"{name}.{part}.url", IN_THE_CLEAR


def _in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    # Names without a dot are the containers and services of one's own network.
    return parts.scheme == "http" and "." in host and host not in _LOOPBACK


def _budget_warnings(name: str, profile: ProfileSettings) -> Iterator[tuple[str, str]]:
    reserved = reserved_tokens(profile)
    if profile.window == "token_window" and reserved >= profile.max_tokens:
        text = f"all {profile.max_tokens} are reserved for what else is injected ({reserved})"
        yield f"{name}.max_tokens", f"{text}: the window gets none"
    summary = profile.summary
    if summary.enabled and summary.max_tokens >= profile.max_tokens:
        text = f"is no less than max_tokens ({profile.max_tokens}): a summary as long is not sent"
        yield f"{name}.summary.max_tokens", text
