"""What every route has in common: unknown paths, wrong methods, bodies, failures."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException

from proxy.memory.recording.spool import Spool, SpoolError
from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory_api.openapi.operation import Operation
from proxy.memory_api.operations import OPERATIONS
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.wire.body import Message
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, open_site, seed, talk
from tests.support.waiting import PATIENCE

READS = [each for each in OPERATIONS if each.reads and not each.open]


@pytest.mark.parametrize(
    "path",
    [
        "/memory/v1",
        "/memory/v1/",
        "/memory/v2/sessions",
        f"{SESSIONS}/",
        f"{SESSIONS}/s/",
        f"{SESSIONS}//messages",
        f"{SESSIONS}/s/nothing",
        f"{SESSIONS}/s/exchanges/e/more",
        "/memory/%0a",
    ],
)
async def test_an_unknown_path_is_not_found_in_json(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 404
    assert error_of(response)["code"] == "not_found"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/healthz", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
        ("/metrics", "GET, HEAD"),
        (SESSIONS, "GET, HEAD"),
        (f"{SESSIONS}/s", "DELETE, GET, HEAD, PATCH"),
        (f"{SESSIONS}/s/messages", "GET, HEAD, POST"),
        (f"{SESSIONS}/s/context", "POST"),
        (f"{SESSIONS}/s/exchanges/e", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    client: httpx.AsyncClient, path: str, allowed: str
) -> None:
    response = await client.put(path, json={})
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    assert error_of(response)["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", [SESSIONS, f"{SESSIONS}/s", f"{SESSIONS}/s/messages"])
async def test_what_can_be_got_has_a_head(client: httpx.AsyncClient, path: str) -> None:
    await seed(client, "s", *talk("hello"))
    response = await client.head(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("read", READS, ids=lambda read: read.id)
async def test_a_parameter_that_is_misspelt_is_refused_by_everything_that_is_read(
    site: Site, read: Operation
) -> None:
    path = re.sub(r"\{\w+\}", "s", read.path)
    async with site.client(ADMIN_KEY) as client:
        response = await client.get(path, params={"tenant": "anonymous", "users": "kai"})
        assert response.status_code == 400 and error_of(response)["param"] == "users"
        assert (await client.head(path, params={"users": "kai"})).status_code == 400


async def test_answers_are_not_kept_by_caches(client: httpx.AsyncClient) -> None:
    assert (await client.get(SESSIONS)).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["messages", "context"])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "streamed"])
async def test_a_body_beyond_the_limit_is_refused(
    store: Backend, tmp_path: Path, path: str, declared: bool
) -> None:
    body = b'{"messages": [{"role": "user", "content": "' + b"x" * 2000 + b'"}]}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    settings = Settings.model_validate({"server": {"max_body_bytes": 1000}})
    async with open_site(settings, store, tmp_path) as site, site.client("alice") as client:
        content = body if declared else pieces()
        response = await client.post(f"{SESSIONS}/s/{path}", content=content)
    assert response.status_code == 413
    assert error_of(response)["code"] == "request_too_large"


@pytest.mark.parametrize("error", [StoreError("secret"), StoreTimeout("secret")])
@pytest.mark.parametrize(
    ("method", "path", "broken"),
    [
        ("GET", SESSIONS, "sessions"),
        ("GET", f"{SESSIONS}/s", "session"),
        ("DELETE", f"{SESSIONS}/s", "session"),
        ("GET", f"{SESSIONS}/s/messages", "messages"),
        ("POST", f"{SESSIONS}/s/messages", "load"),
        ("POST", f"{SESSIONS}/s/messages", "commit"),
        ("POST", f"{SESSIONS}/s/context", "session"),
        ("GET", f"{SESSIONS}/s/exchanges/e", "exchange"),
    ],
)
async def test_a_store_that_fails_is_a_503_to_try_again(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    broken: str,
    error: Exception,
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(type(store), broken, fail)
    body = {"messages": talk("hello")} if method == "POST" else None
    response = await client.request(method, path, json=body)
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
    assert response.headers["retry-after"] == "1"
    assert "secret" not in response.text


async def test_a_spool_that_cannot_be_read_lets_nothing_be_overtaken(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise SpoolError

    monkeypatch.setattr(Spool, "has_waiting", fail)
    response = await client.post(f"{SESSIONS}/s/messages", json={"messages": talk("hello")})
    assert response.status_code == 503


async def test_a_bug_is_a_500_that_says_nothing_of_it(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("the secret")

    monkeypatch.setattr(type(store), "session", fail)
    with caplog.at_level(logging.ERROR, logger="proxy.memory_api"):
        response = await client.get(f"{SESSIONS}/s")
    assert response.status_code == 500
    assert error_of(response)["code"] == "server_error"
    assert "secret" not in response.text
    assert [record.message for record in caplog.records] == ["a request failed"]


async def test_an_error_of_the_frameworks_has_our_shape(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise HTTPException(418, "short and stout")

    monkeypatch.setattr(type(store), "session", fail)
    response = await client.get(f"{SESSIONS}/s")
    assert response.status_code == 418
    assert error_of(response)["message"] == "short and stout"


def scope_of(path: str, method: str = "POST", query: bytes = b"") -> dict[str, object]:
    """A request that comes from this machine, as a server hands it over."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 50000),
    }


async def test_a_body_that_does_not_come_is_not_waited_for_long(
    store: Backend, tmp_path: Path
) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nothing ever comes")

    async def send(message: Message) -> None:
        sent.append(message)

    settings = Settings.model_validate({"server": {"body_timeout": 0.05}})
    async with open_site(settings, store, tmp_path) as site, asyncio.timeout(PATIENCE):
        await site(scope_of(f"{SESSIONS}/s/messages"), receive, send)
    assert sent[0]["status"] == 408
    assert b"request_timeout" in sent[1]["body"]


async def test_a_client_that_leaves_is_not_answered(site: Site) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await site(scope_of(f"{SESSIONS}/s/messages"), receive, send)

    assert sent == []
    async with site.client() as client:
        assert 'status="499"' in (await client.get("/metrics")).text
        assert (await client.get(f"{SESSIONS}/s")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "query", "looks"),
    [
        ("GET", f"{SESSIONS}/s/messages", b"", "messages"),
        ("DELETE", "/memory/v1/users/kai", b"dry_run=true", "sessions"),
        ("DELETE", f"{SESSIONS}/s", b"dry_run=true", "summaries"),
        ("POST", "/memory/v1/store/items/search", b"", "items"),
        ("POST", "/memory/v1/store/namespaces", b"", "namespaces"),
    ],
)
async def test_what_only_reads_ends_when_its_client_leaves(
    site: Site,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    query: bytes,
    looks: str,
) -> None:
    began, left, sent = asyncio.Event(), asyncio.Event(), list[Message]()
    body: list[Message] = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def endless(*asked: object) -> None:
        began.set()
        await asyncio.Event().wait()

    async def receive() -> Message:
        if body:
            return body.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async with site.client() as client:
        await seed(client, "s", *talk("hello"), user="kai")
    monkeypatch.setattr(store, looks, endless)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        tasks.create_task(site(scope_of(path, method, query), receive, send))
        await began.wait()
        left.set()
    assert sent == []
