"""The checks of ``memory-proxy check``.

Tests the store, the upstreams, the spool and the address to listen on; must not know how findings
are shown.  Leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from proxy.assembly.origin import upstream_options
from proxy.assembly.resources import store_of, upstream_of
from proxy.assembly.upstreams import destination_of
from proxy.commands.likely_mistakes import setting_warnings
from proxy.errors import RawHeaders
from proxy.memory.recording.store_names import waiting_in
from proxy.memory.store import Store, StoreError
from proxy.preflight import address_file_problem, database_problem
from proxy.reasons import explain_failure
from proxy.server import ServerError, listen
from proxy.settings import DEMO, ListedUpstream, Settings, without_credentials
from proxy.stores.address import Address, is_same_store, read_address
from proxy.stores.sqlite.schema import SCHEMA, schema_of
from proxy.wire.api import bearer
from proxy.wire.failures import UpstreamBroken, UpstreamError, UpstreamTimeout
from proxy.wire.origin import egress_proxy
from proxy.wire.upstream import Upstream

TIMEOUT = 10.0
"""Seconds to wait for an upstream, less than its read timeout, which allows for slow models."""

PROBE_SECONDS = 2.0
"""Seconds for finding out which protocol a port speaks."""

MAX_ANSWER_BYTES = 4096
"""Bytes of an answer that are read for that."""

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_REFUSED = (401, 403)

Grade = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True):
    """``ok`` and ``warning`` are fine, a ``problem`` is not.

    A problem makes the proxy or its memory fail now; a warning is about what may lose memory later
    or is probably a mistake.
    """

    grade: Grade
    part: str
    text: str


async def findings(settings: Settings) -> list[Finding]:
    return [
        *await store(settings),
        *await upstreams(settings),
        await asyncio.to_thread(spool, settings),
        await listening(settings),
        *address_file(settings),
        *(Finding("warning", part, text) for part, text in setting_warnings(settings)),
    ]


# The store


async def store(settings: Settings) -> list[Finding]:
    address = read_address(settings.store.url)
    memory = store_of(settings, as_is=True)
    try:
        if address.kind == "sqlite":
            found = await asyncio.to_thread(_database, address.path, memory.name)
        else:
            found = await _server(memory, address, settings)
        if found.grade == "problem":
            return [found]
        return [found, *await _concerns(memory)]
    finally:
        await memory.close()


def _database(path: Path, name: str) -> Finding:
    try:
        schema = schema_of(path, TIMEOUT)
    except (StoreError, sqlite3.Error, OSError) as error:
        return Finding("problem", "store", f"{name} does not work: {error}")
    problem = database_problem(path)
    if problem is not None:
        return Finding("problem", "store", problem)
    if not schema:
        return Finding("ok", "store", f"{name} can be written; serve makes its tables")
    if schema < SCHEMA:
        text = (
            f"{name} has schema {schema}, this release writes {SCHEMA}: serve brings it up to date,"
            " and there is no way back; back it up first (memory-proxy backup FILE)"
        )
        return Finding("warning", "store", text)
    return Finding("ok", "store", f"{name} reads and writes")


async def _server(memory: Store, address: Address, settings: Settings) -> Finding:
    try:
        await memory.open()
        await memory.ping()
    except StoreError as error:
        hint = await _tls_hint(address, settings.store.url)
        return Finding("problem", "store", f"{memory.name} does not work: {hint or error}")
    return Finding("ok", "store", f"{memory.name} reads and writes")


async def _concerns(memory: Store) -> list[Finding]:
    try:
        told = await memory.warnings()
    except StoreError as error:
        return [Finding("warning", "store", f"does not say how it is set up: {error}")]
    # Missing replicas fail every commit; all else may lose memory later.
    return [
        Finding("problem" if "store.wait_replicas" in text else "warning", "store", text)
        for text in told
    ]


async def _tls_hint(address: Address, url: str) -> str | None:
    """What to write if only one of the two sides speaks TLS, else None."""
    scheme, plain = url.partition("://")[0], not address.tls
    for host, port in address.nodes[:1]:
        if plain and await _speaks_tls(host, port):
            return f"the server speaks TLS: write {scheme.replace('redis', 'rediss', 1)}://"
        if address.tls and await _speaks_redis(host, port):
            return f"the server speaks no TLS: write {scheme.replace('rediss', 'redis', 1)}://"
    return None


async def _speaks_redis(host: str, port: int) -> bool:
    answer = await _exchange_bytes(host, port, b"PING\r\n")
    return answer.startswith((b"+PONG", b"-NOAUTH", b"-ERR", b"-DENIED", b"-NOPERM"))


async def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError):
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
            writer.transport.abort()
            return True
    return False


async def _exchange_bytes(host: str, port: int, question: bytes, end: bytes = b"") -> bytes:
    """The first bytes of the answer, up to ``end`` if it has that; b"" without one in time."""
    with suppress(OSError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(question)
                await writer.drain()
                answer = more = await reader.read(MAX_ANSWER_BYTES)
                while more and end not in answer and len(answer) < MAX_ANSWER_BYTES:
                    answer += (more := await reader.read(MAX_ANSWER_BYTES))
                return answer
            finally:
                writer.transport.abort()
    return b""


# The upstream


async def upstreams(settings: Settings) -> list[Finding]:
    """Check all upstreams concurrently: one that is down takes its whole timeout."""
    asked = [upstream(settings), *(listed_upstream(settings, each) for each in settings.upstreams)]
    return await asyncio.gather(*asked)


async def listed_upstream(settings: Settings, listed: ListedUpstream) -> Finding:
    """Check one of [[upstreams]] with the headers that chats to it have."""
    found = await upstream(settings.with_upstream(listed), listed)
    text = found.text.replace("upstream.url", "its url")
    return replace(found, part=f"upstreams.{listed.name}", text=text)


async def upstream(settings: Settings, listed: ListedUpstream | None = None) -> Finding:
    """Check an upstream: any healthy answer is fine, also a 401, as there is no client's key
    here."""
    if settings.upstream.url == DEMO:
        return _upstream("warning", f"{DEMO} is no model: it comes with the program, for trying it")
    timeout = min(settings.upstream.read_timeout, TIMEOUT)
    limited = settings.upstream.model_copy(update={"read_timeout": timeout})
    chosen = settings.model_copy(update={"upstream": limited})
    try:
        client = upstream_of(chosen)
    except (ValueError, OSError) as error:
        return Finding("problem", "upstream", f"cannot be set up: {error}")
    where = without_credentials(settings.upstream.url)
    try:
        await client.open()
        return await _judge_upstream(client, chosen, where, listed)
    except (UpstreamError, ValueError, OSError) as error:
        reason = await _http_tls_hint(error, chosen) or _reason(error, chosen)
        return _upstream("problem", f"{where} cannot be reached{_through(chosen)}: {reason}")
    finally:
        await client.close()


def _through(settings: Settings) -> str:
    proxy = egress_proxy(upstream_options(settings))
    return f" through the proxy {without_credentials(proxy)}" if proxy else ""


def _reason(error: Exception, settings: Settings) -> str:
    limits = settings.upstream
    if isinstance(error, UpstreamTimeout):
        return (
            f"no connection within {limits.connect_timeout:g} s, or no answer within"
            f" {limits.read_timeout:g} s"
        )
    return (
        "what answers is not HTTP" if isinstance(error, UpstreamBroken) else explain_failure(error)
    )


async def _http_tls_hint(error: Exception, settings: Settings) -> str | None:
    """What to write if only one of the two sides speaks TLS, else None."""
    parts = urlsplit(settings.upstream.url)
    host = parts.hostname or ""
    if _through(settings):
        return None
    if parts.scheme == "http" and await _speaks_tls(host, parts.port or 80):
        return "what listens there speaks TLS: write https://"
    silent = parts.scheme == "https" and isinstance(error, UpstreamTimeout)
    if silent and await _speaks_http(host, parts.port or 443):
        return "what listens there speaks no TLS: write http://"
    return None


async def _speaks_http(host: str, port: int) -> bool:
    return (await _exchange_bytes(host, port, b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/")


async def _judge_upstream(
    client: Upstream, settings: Settings, where: str, listed: ListedUpstream | None
) -> Finding:
    asking = _request_headers(settings, client, listed)
    status, headers = await _models(client, asking, b"/models")
    if status in _REFUSED and settings.upstream.api_key is not None:
        key = listed.keys[0] if listed else "upstream.api_key"
        return _upstream("problem", f"{where} answers, but refuses {key} ({status})")
    if status in _REFUSED and listed and not listed.client_keys:
        text = "it wants a key: set api_key, or client_keys = true"
        return _upstream("problem", f"{where} answers with {status}: {text}")
    if status in _REFUSED:
        return _upstream(
            "ok", f"{where} answers with {status} (it wants a key, which clients send)"
        )
    if 300 <= status < 400:
        return _upstream("problem", f"{where} answers with {status}{_redirect_hint(headers)}")
    if status >= 500:
        return _upstream("problem", f"{where} fails: it answers with {status}")
    if status == 404:
        return await _judge_missing_models(client, asking, settings, where)
    if status >= 400:
        return _upstream("warning", f"{where} answers with {status} to GET /models")
    return _upstream("ok", f"{where} answers with {status}")


def _upstream(grade: Grade, text: str) -> Finding:
    return Finding(grade, "upstream", text)


def _request_headers(
    settings: Settings, client: Upstream, listed: ListedUpstream | None
) -> RawHeaders:
    headers = [(b"Accept", b"application/json"), (b"User-Agent", b"memory-proxy")]
    if listed is not None:
        return destination_of(listed, client).headers(headers, "models")
    key = settings.upstream.api_key
    return [*headers, *bearer(key.get_secret_value() if key else None)]


async def _models(client: Upstream, headers: RawHeaders, path: bytes) -> tuple[int, RawHeaders]:
    reply = await client.send("GET", path, headers, None)
    await reply.close()
    return reply.status, reply.headers


def _redirect_hint(headers: RawHeaders) -> str:
    found = next((value for name, value in headers if name.lower() == b"location"), b"")
    to = without_credentials(found.decode("latin-1").partition("?")[0]).removesuffix("/models")
    asked = f" to {to}" if to else ""
    return f"{asked}: redirects are not followed; write the address that answers itself"


async def _judge_missing_models(
    client: Upstream, asking: RawHeaders, settings: Settings, where: str
) -> Finding:
    """The finding for a 404: some servers have no /models, but most often the URL lacks its /v1."""
    if not urlsplit(settings.upstream.url).path.rstrip("/"):
        status, _ = await _models(client, asking, b"/v1/models")
        if status in _REFUSED or status < 300:
            text = f"{where} has no /models (404), {where}/v1 has: let upstream.url end in /v1"
            return _upstream("problem", text)
    text = f"{where} answers with 404 to GET /models: is upstream.url whole? Most end in /v1"
    return _upstream("warning", text)


# This host


def spool(settings: Settings) -> Finding:
    path = Path(settings.spool.path)
    problem = database_problem(path)
    if problem is not None:
        return Finding("problem", "spool", problem)
    name = read_address(settings.store.url).name
    waits = waiting_in(path, TIMEOUT).items()
    if others := [(store, count) for store, count in waits if not is_same_store(store, name)]:
        told = ", ".join(f"{count} for {store}" for store, count in others)
        return Finding("warning", "spool", f"{path} has what waits for another store: {told}")
    return Finding("ok", "spool", f"{path} can be written")


async def listening(settings: Settings) -> Finding:
    """Check the address; a proxy that serves there already, as before a restart, is a warning."""
    host, port = settings.server.host, settings.server.port
    try:
        listen(settings.server).close()
    except ServerError as error:
        if await _serves(_ANYWHERE.get(host, host), port):
            return Finding("warning", "server", f"a proxy serves on {host}:{port} already")
        return Finding("problem", "server", str(error))
    return Finding("ok", "server", f"{host}:{port} is free" if port else f"{host} has free ports")


def address_file(settings: Settings) -> list[Finding]:
    problem = address_file_problem(settings)
    return [Finding("problem", "server", problem)] if problem else []


async def _serves(host: str, port: int) -> bool:
    question = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    answer = await _exchange_bytes(host, port, question, b"}")
    with suppress(ValueError):
        return bool(json.loads(answer.partition(b"\r\n\r\n")[2]) == {"status": "ok"})
    return False
