"""What ``memory-proxy check`` finds out.

Knows how to try the store, the upstream and the spool; must not know how findings are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from proxy.assembly import store_of, upstream_of
from proxy.gateway.profile import reserved_tokens
from proxy.memory.store import StoreError
from proxy.preflight import unwritable
from proxy.settings import ProfileSettings, Settings, WriterSettings, without_credentials
from proxy.wire.upstream import UpstreamError

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Finding:
    """``ok`` and ``warning`` are fine, a ``problem`` is not."""

    grade: Literal["ok", "warning", "problem"]
    part: str
    text: str


async def findings(settings: Settings) -> list[Finding]:
    return [
        await store(settings),
        await upstream(settings),
        spool(settings),
        *(Finding("warning", part, text) for part, text in doubts(settings)),
    ]


async def store(settings: Settings) -> Finding:
    memory = store_of(settings)
    try:
        await memory.open()
        await memory.ping()
    except StoreError as error:
        return Finding("problem", "store", f"{memory.name} does not work: {error}")
    finally:
        await memory.close()
    return Finding("ok", "store", f"{memory.name} reads and writes")


async def upstream(settings: Settings) -> Finding:
    """Any answer will do: without the clients' keys a 401 is what a healthy upstream says."""
    try:
        client = upstream_of(settings)
    except (ValueError, OSError) as error:
        return Finding("problem", "upstream", f"cannot be set up: {error}")
    headers = [(b"Accept", b"application/json"), (b"User-Agent", b"memory-proxy")]
    if settings.upstream.api_key is not None:
        key = settings.upstream.api_key.get_secret_value()
        headers.append((b"Authorization", f"Bearer {key}".encode()))
    where = without_credentials(settings.upstream.url)
    try:
        await client.open()
        reply = await client.send("GET", b"/models", headers, None)
        await reply.close()
    except (UpstreamError, ValueError, OSError) as error:
        return Finding("problem", "upstream", f"{where} cannot be reached: {error}")
    finally:
        await client.close()
    if reply.status in (401, 403) and settings.upstream.api_key is not None:
        text = f"{where} answers, but refuses upstream.api_key ({reply.status})"
        return Finding("problem", "upstream", text)
    note = " (it wants a key, which clients send)" if reply.status in (401, 403) else ""
    return Finding("ok", "upstream", f"{where} answers with {reply.status}{note}")


def spool(settings: Settings) -> Finding:
    problem = unwritable(Path(settings.spool.path))
    if problem:
        return Finding("problem", "spool", problem)
    return Finding("ok", "spool", f"{settings.spool.path} can be written")


def doubts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Settings that are valid and probably not meant: the setting and a sentence."""
    server, memory_url = settings.server, settings.store.url
    public = server.host not in _LOOPBACK
    if memory_url == "memory://":
        yield "store.url", "memory:// forgets everything when the proxy ends"
        if server.workers > 1:
            yield "server.workers", "with memory:// each worker has a memory of its own"
    if settings.store.wait_replicas and memory_url.startswith(("sqlite:", "memory:")):
        yield "store.wait_replicas", "only Redis has replicas to wait for"
    if public and server.admin_key is None:
        yield "server.admin_key", "is not set: other hosts cannot use /memory without a key"
    if public and settings.tenancy.mode == "single":
        yield "tenancy.mode", '"single" gives everybody who can connect the same memory'
    if _in_the_clear(settings.upstream.url):
        yield "upstream.url", "is plain http to another host: keys and messages travel in the clear"
    yield from _embeddings(settings)
    profiles = {f"profiles.{name}": profile for name, profile in settings.profiles.items()}
    for name, profile in {"memory": settings.memory, **profiles}.items():
        yield from _cramped(name, profile)
        yield from _written(name, profile)


def _embeddings(settings: Settings) -> Iterator[tuple[str, str]]:
    chosen = settings.memory.recall.embeddings
    if not chosen.model or chosen.local:
        return
    if chosen.api_key is None and (chosen.url or settings.upstream.api_key is None):
        yield "memory.recall.embeddings.api_key", "is not set: vectors are asked for without a key"
    if chosen.url and _in_the_clear(chosen.url):
        text = "is plain http to another host: messages travel in the clear"
        yield "memory.recall.embeddings.url", text


def _written(name: str, profile: ProfileSettings) -> Iterator[tuple[str, str]]:
    """About the parts that a model writes."""
    summary = profile.summary
    if summary.enabled and summary.mode == "summary_buffer" and profile.window == "all":
        yield f"{name}.summary.enabled", 'with window = "all" nothing is evicted: none is written'
    for part in ("summary", "facts", "profile", "episodes", "instructions"):
        chosen: WriterSettings = getattr(profile, part)
        if chosen.enabled and chosen.url and chosen.api_key is None:
            yield f"{name}.{part}.api_key", "is not set: its url is asked without a key"
        if chosen.enabled and chosen.url and _in_the_clear(chosen.url):
            text = "is plain http to another host: messages travel in the clear"
            yield f"{name}.{part}.url", text


def _in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    # Names without a dot are the containers and services of one's own network.
    return parts.scheme == "http" and "." in host and host not in _LOOPBACK


def _cramped(name: str, profile: ProfileSettings) -> Iterator[tuple[str, str]]:
    reserved = reserved_tokens(profile)
    if profile.window == "token_window" and reserved >= profile.max_tokens:
        text = f"all {profile.max_tokens} are reserved for what else is injected ({reserved})"
        yield f"{name}.max_tokens", f"{text}: the window gets none"
