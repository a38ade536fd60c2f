"""Who is let in at /mcp, with what, and how much: over plain HTTP, as anybody may send it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.logs import hashed
from proxy.mcp.route import MAX_BODY_BYTES
from proxy.mcp.tools import TOOLS
from proxy.tenancy import digest_of
from tests.support.client import client_of
from tests.support.jsonrpc import HEADERS, PATH, calling, message, post, post_anew
from tests.support.memory_api import error_of
from tests.support.rig import Rig, rig
from tests.support.waiting import eventually

KEY = "key-of-a"
ASKED = calling("list_sessions")
START = message(
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(tmp_path, mcp__enabled=True, mcp__max_concurrent_calls=2) as ready:
        yield ready


@pytest.fixture
async def client(proxy: Rig) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(proxy.proxy.url, {"authorization": f"Bearer {KEY}"}) as ready:
        yield ready


async def test_each_message_is_answered_with_one_body_and_no_session(
    client: httpx.AsyncClient,
) -> None:
    for body in (START, ASKED, message("tools/list"), message("ping")):
        answer = await post(client, body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        assert "mcp-session-id" not in answer.headers
        assert "result" in answer.json()
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = await post(client, told)
    assert (answer.status_code, answer.content) == (202, b"")


async def test_what_one_worker_began_another_goes_on_with(tmp_path: Path) -> None:
    key = {"authorization": f"Bearer {KEY}"}
    async with (
        rig(tmp_path, mcp__enabled=True) as one,
        rig(tmp_path, mcp__enabled=True) as other,
        client_of(one.proxy.url, key) as begins,
        client_of(other.proxy.url, key) as goes_on,
    ):
        assert (await post(begins, START)).status_code == 200
        saved = await post(goes_on, calling("save_memory", text="Likes figs.", user="ada"))
        assert saved.json()["result"]["isError"] is False
        found = await post(begins, calling("search_memories", query="figs", user="ada"))
        assert len(found.json()["result"]["structuredContent"]["data"]) == 1


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_is_no_stream_and_no_session_to_end(
    client: httpx.AsyncClient, method: str
) -> None:
    answer = await client.request(method, PATH, headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_who_has_no_key_is_let_in_from_this_machine_alone(proxy: Rig) -> None:
    async with client_of(proxy.proxy.url) as nobody:
        assert (await post(nobody, ASKED)).status_code == 200
        answer = await post(nobody, START, x_forwarded_for="203.0.113.9")
        assert (answer.status_code, error_of(answer)["code"]) == (401, "invalid_api_key")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_that_no_client_has_is_not_let_in(tmp_path: Path) -> None:
    clients = [{"name": "ada", "key_sha256": [digest_of(KEY.encode())]}]
    named = {"tenancy__mode": "clients", "upstream__api_key": "k", "clients": clients}
    async with rig(tmp_path, mcp__enabled=True, **named) as one:
        for key, status in ((KEY, 200), ("another", 401)):
            async with client_of(one.proxy.url, {"authorization": f"Bearer {key}"}) as client:
                for body in (START, ASKED):
                    assert (await post(client, body)).status_code == status


async def test_nobody_but_the_administrator_names_a_tenant(client: httpx.AsyncClient) -> None:
    answer = await post(client, ASKED, {"tenant": "other"})
    assert (answer.status_code, error_of(answer)["code"]) == (403, "admin_key_required")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://rebound.example:8080", "host": "rebound.example:8080"},
        {"origin": "http://localhost.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-origin", "host": "rebound.example"},
    ],
)
async def test_a_page_from_elsewhere_is_refused_whatever_key_it_has(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await post(client, ASKED, **headers)
    assert (answer.status_code, error_of(answer)["code"]) == (403, "origin_not_allowed")


async def test_a_page_that_is_listed_or_of_this_machine_is_let_in(tmp_path: Path) -> None:
    listed = "https://chat.example.com"
    async with (
        rig(tmp_path, mcp__enabled=True, server__cors_origins=[listed]) as one,
        client_of(one.proxy.url, {"authorization": f"Bearer {KEY}"}) as client,
    ):
        for origin in (listed, "http://localhost:6274"):
            assert (await post(client, ASKED, origin=origin)).status_code == 200
        answer = await post(client, ASKED, origin=listed)
        assert answer.headers["access-control-allow-origin"] == listed


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    client: httpx.AsyncClient,
) -> None:
    large = calling("save_memory", text="x" * MAX_BODY_BYTES, user="ada")
    answer = await post(client, large)
    assert (answer.status_code, error_of(answer)["code"]) == (413, "request_too_large")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 1024 + 1):
            yield b" " * 1024

    answer = await client.post(PATH, content=pieces(), headers=HEADERS)
    assert (answer.status_code, error_of(answer)["code"]) == (413, "request_too_large")


HOSTILE = {
    "nothing": b"",
    "no-json": b"{",
    "no-text": b"\xff\xfe",
    "null": b"null",
    "a-batch": json.dumps([ASKED, ASKED]).encode(),
    "deep": b"[" * 100_000,
    "deep-arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":'
    b'"search_memories","arguments":{"query":' + b'{"a":' * 5000 + b"1" + b"}" * 5003,
    "half-a-surrogate": json.dumps(calling("save_memory", text="\ud800", user="ada")).encode(),
    "a-huge-number": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    "a-response": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "no-tool": json.dumps(calling("__class__")).encode(),
    "no-method": json.dumps(message("tools/steal")).encode(),
    "arguments-that-are-none": json.dumps(
        message("tools/call", name="list_sessions", arguments=[1])
    ).encode(),
}
VERSIONS: dict[str, dict[str, str]] = {
    "none": {},
    "2025": {"mcp_protocol_version": "2025-11-25"},
    "2026": {"mcp_protocol_version": "2026-07-28"},
    "unknown": {"mcp_protocol_version": "x"},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_makes_no_sense_is_refused_and_nothing_else_happens(
    client: httpx.AsyncClient, name: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await post(client, HOSTILE[name], **VERSIONS[version])
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        found = answer.json()
        assert "error" in found or found["result"]["isError"] is True, answer.text
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
    assert (await post(client, ASKED)).status_code == 200


@pytest.mark.parametrize(
    "headers", [{"content_type": "text/plain"}, {"accept": "text/html"}, {"x_user_id": "a b"}]
)
async def test_headers_that_are_wrong_are_refused(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert 400 <= (await post(client, ASKED, **headers)).status_code < 500


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("search_memories", {}, "query must have 1 to 1000 characters."),
        ("search_memories", {"query": "x" * 1001}, "query must have 1 to 1000 characters."),
        ("search_memories", {"query": 1}, "query must have 1 to 1000 characters."),
        ("search_memories", {"query": "x", "limit": 51}, "limit must be a whole number"),
        ("search_memories", {"query": "x", "limit": True}, "limit must be a whole number"),
        ("search_memories", {"query": "x", "tenant": "b"}, "tenant is none of"),
        ("search_memories", {"query": "x", "user": "../eve"}, ""),
        ("search_memories", {"query": "x", "user": ".."}, "must be 1 to 256 visible ASCII"),
        ("search_memories", {"query": "x", "user": "a b"}, "must be 1 to 256 visible ASCII"),
        ("save_memory", {"text": " ", "user": "ada"}, "text must have 1 to 500 characters."),
        ("save_memory", {"text": "x" * 501, "user": "ada"}, "text must have 1 to 500 characters."),
        ("forget_memory", {"memory_id": "../../x?tenant=b", "user": "ada"}, "no such memory"),
        ("list_sessions", {"limit": 0}, "limit must be a whole number"),
        ("list_sessions", {"after": "not-a-cursor"}, "after must be a cursor"),
        ("read_session", {"session_id": ".."}, "must be 1 to 256 visible ASCII"),
        ("read_session", {"session_id": "s", "after": -1}, "after must be a whole number"),
        ("read_session", {"session_id": "a/messages"}, "no such session"),
    ],
)
@pytest.mark.parametrize("send", [post, post_anew])
async def test_an_argument_that_is_wrong_is_named_to_the_model(
    client: httpx.AsyncClient,
    send: Callable[..., Awaitable[httpx.Response]],
    tool: str,
    arguments: dict[str, Any],
    told: str,
) -> None:
    result = (await send(client, calling(tool, **arguments))).json()["result"]
    assert result["isError"] is bool(told), result
    assert told in result["content"][0]["text"]


async def test_half_a_surrogate_pair_is_no_text(client: httpx.AsyncClient) -> None:
    """As the memory API has it; the older protocol reads no such JSON in the first place."""
    wrong = calling("save_memory", text="\ud800", user="ada")
    result = (await post_anew(client, wrong)).json()["result"]
    assert result["isError"] is True and "not text" in result["content"][0]["text"]
    assert (await post(client, wrong)).status_code == 400


@pytest.mark.parametrize("levels", [50, 150, 400, 900])
async def test_an_argument_that_is_nested_deeply_is_no_text_either(
    client: httpx.AsyncClient, levels: int
) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    for send in (post, post_anew):
        answer = await send(client, calling("search_memories", query=deep, user="ada"))
        assert answer.status_code in (200, 400), answer.text
        assert "server_error" not in answer.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
FIELDS = sorted({name for tool in TOOLS for name in tool.input_schema["properties"]})


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    tool=st.sampled_from([tool.name for tool in TOOLS]),
    arguments=st.dictionaries(st.sampled_from(FIELDS), JSON),
)
async def test_whatever_the_arguments_are_a_tool_answers(
    client: httpx.AsyncClient, tool: str, arguments: dict[str, Any]
) -> None:
    body = json.dumps(calling(tool, **arguments)).encode()
    answer = await post(client, body)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert "(server_error)" not in answer.text


async def test_so_many_calls_of_one_tenant_at_once_and_a_slow_store_holds_up_nobody_else(
    proxy: Rig, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, waiting, tenant = asyncio.Event(), 0, digest_of(KEY.encode())
    real = proxy.store.real.sessions

    async def slow(of: str, *others: Any) -> Any:
        nonlocal waiting
        if of == tenant:
            waiting += 1
            await gate.wait()
        return await real(of, *others)

    async def both() -> bool:
        return waiting == 2

    monkeypatch.setattr(proxy.store.real, "sessions", slow)
    held = [asyncio.create_task(post(client, ASKED)) for _ in range(2)]
    try:
        await eventually(both)
        third = await post(client, message("ping"))
        assert (third.status_code, error_of(third)["code"]) == (503, "overloaded")
        assert third.headers["retry-after"]
        async with client_of(proxy.proxy.url, {"authorization": "Bearer key-of-b"}) as other:
            assert (await post(other, ASKED)).status_code == 200
    finally:
        gate.set()
    assert [answer.status_code for answer in await asyncio.gather(*held)] == [200, 200]
    assert (await post(client, ASKED)).status_code == 200


async def test_a_store_that_fails_is_told_as_that(
    proxy: Rig, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise failure

    failure = ValueError("a bug that quotes a secret")
    monkeypatch.setattr(proxy.store.real, "session", broken)
    found = (await post(client, calling("read_session", session_id="s"))).json()["result"]
    assert found["isError"] is True and "(server_error)" in found["content"][0]["text"]
    assert "secret" not in str(found)
    read = message("resources/read", uri="memory://sessions/s")
    error = (await post(client, read)).json()["error"]
    assert error["code"] == -32603 and "secret" not in str(error)


async def test_a_call_is_logged_and_counted_and_what_it_says_is_not(
    proxy: Rig, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "proxy")
    await post(client, calling("save_memory", text="Likes marmalade.", user="paddington"))
    (line,) = [vars(r)["fields"] for r in caplog.records if r.name == "proxy.access"]
    assert (line["route"], line["path"], line["status"]) == ("mcp", "/mcp", 200)
    assert line["tenant"] == hashed(digest_of(KEY.encode()))
    assert "marmalade" not in caplog.text and "paddington" not in caplog.text
    told = (await client.get("/metrics")).text
    assert 'memory_requests_total{memory="none",route="mcp",status="200"} 1.0' in told


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_where_it_is_switched_off_it_says_how_to_switch_it_on(
    tmp_path: Path, method: str
) -> None:
    async with rig(tmp_path) as one:
        answer = await one.client.request(method, PATH)
    assert (answer.status_code, error_of(answer)["code"]) == (404, "mcp_disabled")
    assert "mcp.enabled = true" in error_of(answer)["message"]


async def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    async with rig(tmp_path, mcp__enabled=True) as one:
        answer = await one.client.post(PATH, json=ASKED)
        assert (await one.client.get("/healthz")).status_code == 200
    assert (answer.status_code, error_of(answer)["code"]) == (501, "mcp_not_installed")
    assert "pip install '.[mcp]'" in error_of(answer)["message"]
    assert "pip install '.[mcp]'" in caplog.text
