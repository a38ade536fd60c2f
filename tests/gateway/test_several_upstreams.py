"""Several upstreams behind one proxy: who is asked, with which key, and what harms whom."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.upstream.answers import SILENT, chat_completion, json_answer
from tests.support.upstream.several import CHAT, Several, lists, several
from tests.support.waiting import eventually

MINE = "Bearer sk-client"
LISTED: dict[str, dict[str, Any]] = {
    "paid": {
        "models": ["claude-*", "paid/*"],
        "kind": "anthropic",
        "api_key": "sk-of-paid",
        "headers": {"X-Title": "ours"},
    },
    "open": {"models": ["llama*", "claude-2"], "client_keys": True},
    "local": {"models": ["qwen*"]},
    "hidden": {"api_key": "sk-of-hidden"},
}
KEYS = ("authorization", "api-key", "x-api-key", "openai-organization", "cookie")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Several]:
    async with several(tmp_path_factory.mktemp("several"), LISTED) as ready:
        yield ready


@pytest.fixture
def some(shared: Several) -> Several:
    """A proxy with five upstreams, with nothing asked or scripted."""
    for up in shared.ups.values():
        up.requests.clear()
        up.reply_to_nobody()
    return shared


pytestmark = pytest.mark.asyncio(loop_scope="session")

BY_MODEL = [
    ("claude-opus", "paid"),
    ("claude-2", "paid"),
    ("llama-4", "open"),
    ("qwen3:8b", "local"),
    ("gpt-4o", "default"),
]


@pytest.mark.parametrize(("model", "name"), BY_MODEL)
@pytest.mark.parametrize("session", [None, "s1"])
async def test_the_model_decides(some: Several, model: str, name: str, session: str | None) -> None:
    headers = {"x_session_id": f"{session}-{model}"} if session else {}
    assert (await some.ask(model, **headers)).status_code == 200
    assert some.asked() == {name: 1}


@pytest.mark.parametrize("name", ["default", *LISTED])
@pytest.mark.parametrize("session", [None, "s2"])
async def test_a_name_decides_before_the_model_and_ends_here(
    some: Several, name: str, session: str | None
) -> None:
    headers = {"x_session_id": f"{session}-{name}"} if session else {}
    answer = await some.ask("claude-opus", x_memory_upstream=name, **headers)
    assert answer.status_code == 200
    assert some.asked() == {name: 1}
    assert some.of(name)[0].header("x-memory-upstream") is None


@pytest.mark.parametrize("name", ["nobody", "PAID", "http://127.0.0.1:1/v1"])
async def test_an_unknown_name_is_refused_before_anything_is_asked(
    some: Several, name: str
) -> None:
    answer = await some.ask("claude-opus", x_memory_upstream=name)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "unknown_upstream")
    assert error["param"] == "X-Memory-Upstream"
    assert not any(each in error["message"] for each in ("paid", "open", "local", "hidden"))
    assert some.asked() == {}


async def test_two_different_names_are_refused(some: Several) -> None:
    sent = [("x-memory-upstream", "paid"), ("x-memory-upstream", "open")]
    answer = await some.client.post(CHAT, content=b"{}", headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_header")


@pytest.mark.parametrize(
    ("method", "path", "content", "kind", "name"),
    [
        ("POST", "/v1/embeddings", b'{"n": 1, "model": "qwen-e"}', "application/json", "local"),
        ("POST", "/v1/embeddings", b'{"i": "\\ud83d", "model": "qwen"}', "text/json", "local"),
        ("POST", "/v1/responses", b'{"model": 7}', "application/json", "default"),
        ("POST", "/v1/responses", b'{"model": "qwen"', "application/json", "default"),
        ("POST", "/v1/audio/speech", b'"qwen"', "application/json", "default"),
        ("POST", "/v1/files", b'{"model": "qwen"}', "multipart/form-data; boundary=x", "default"),
        ("POST", "/v1/embeddings", b'{"model": "qwen"}', "text/plain; charset=utf-8", "local"),
        ("POST", "/v1/audio", b'{"model": "qwen"}', "application/octet-stream", "default"),
        ("GET", "/v1/models/qwen3", b"", "application/json", "local"),
        ("GET", "/v1/models/paid/one%2Ftwo", b"", "application/json", "paid"),
        ("POST", "/openai/deployments/qwen/embeddings", b"{}", "application/json", "local"),
        ("POST", "/openai/deployments/qwen/chat/completions", b"{}", "text/plain", "local"),
        ("GET", "/v1/batches/claude-1", b"", "application/json", "default"),
    ],
)
async def test_every_api_goes_where_its_model_is(
    some: Several, method: str, path: str, content: bytes, kind: str, name: str
) -> None:
    some.ups[name].strict = False
    sent = {"content-type": kind}
    answer = await some.client.request(method, path, content=content, headers=sent)
    some.ups[name].strict = True
    assert (answer.status_code, some.asked()) == (200, {name: 1})
    assert some.of(name)[0].body == content


async def test_a_body_in_pieces_goes_where_its_model_is(some: Several) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b'{"input": ["', b"x" * 100_000, b'"], "mod', b'el": "qwen"}'):
            yield piece

    sent = {"content-type": "application/json"}
    await some.client.post("/v1/embeddings", content=pieces(), headers=sent)
    assert some.asked() == {"local": 1}
    assert some.of("local")[0].json["model"] == "qwen"


# Keys and headers


def keys(some: Several, name: str) -> dict[str, str | None]:
    (request,) = some.of(name)
    said = {key: request.header(key) for key in KEYS}
    return {key: value for key, value in said.items() if value is not None}


SENT = {"authorization": MINE, "openai_organization": "org-client", "cookie": "of=another"}


@pytest.mark.parametrize(
    ("name", "arrives"),
    [
        ("default", {"authorization": MINE, "openai-organization": "org-client"}),
        ("paid", {"authorization": "Bearer sk-of-paid"}),
        ("open", {"authorization": MINE, "openai-organization": "org-client"}),
        ("local", {}),
        ("hidden", {"authorization": "Bearer sk-of-hidden"}),
    ],
)
@pytest.mark.parametrize("session", [None, "s3"])
async def test_a_key_goes_to_whom_it_is_for_and_to_nobody_else(
    some: Several, name: str, arrives: dict[str, str], session: str | None
) -> None:
    headers = {"x_session_id": f"{session}-{name}"} if session else {}
    await some.ask(x_memory_upstream=name, **SENT, **headers)
    assert keys(some, name) == arrives
    assert some.of(name)[0].header("x-title") == ("ours" if name == "paid" else None)


async def test_its_own_api_gets_the_key_as_it_wants_it(some: Several) -> None:
    body = {"model": "claude-opus", "max_tokens": 1, "messages": []}
    await some.client.post("/v1/messages", json=body, headers={"x-api-key": "sk-client"})
    assert keys(some, "paid") == {"x-api-key": "sk-of-paid"}
    assert some.of("paid")[0].header("anthropic-version") == "2023-06-01"


async def test_a_key_in_the_query_stays_here(some: Several) -> None:
    for model in ("qwen", "gpt-4o"):
        await some.client.post("/v1/embeddings?key=sk-client&a=1", json={"model": model})
    assert some.of("local")[0].target == b"/v1/embeddings?a=1"
    assert some.of("default")[0].target == b"/v1/embeddings?key=sk-client&a=1"


async def test_a_web_page_of_another_host_spends_nobodys_key(some: Several) -> None:
    page = {"origin": "https://evil.example"}
    answer = await some.ask("claude-opus", **page)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
    assert (await some.ask("qwen", **page)).status_code == 200
    assert (await some.ask("claude-opus", origin="http://localhost:3000")).status_code == 200
    assert some.asked() == {"local": 1, "paid": 1}


@pytest.mark.parametrize("path", ["files", "organization/users", "models/%2e%2e/files"])
async def test_the_operators_key_is_for_chats_and_the_like(some: Several, path: str) -> None:
    for name, status in (("hidden", 403), ("open", 200), ("local", 200)):
        answer = await some.client.get(f"/v1/{path}", headers={"x-memory-upstream": name})
        assert answer.status_code == status, name
    assert some.asked() == {"open": 1, "local": 1}


async def test_a_session_goes_on_at_another_upstream(some: Several) -> None:
    who = {"x_session_id": "wandering", "authorization": MINE}
    await some.ask("gpt-4o", "my boat is called Anna", **who)
    await some.ask("qwen", "what is it called?", **who)
    sent = [each["content"] for each in some.of("local")[0].messages]
    assert sent[0] == "my boat is called Anna"
    assert sent[-1].endswith("what is it called?")


# Models


async def test_the_models_of_all_are_one_list(some: Several) -> None:
    some.ups["default"].reply(lists({"id": "gpt-5", "owned_by": "us"}, "gpt-4o", "claude-2"))
    some.ups["paid"].reply(lists("claude-2", {"id": "claude-9", "display_name": "Nine"}))
    some.ups["open"].reply(lists("llama-4", "claude-2", "gpt-4o"))
    some.ups["local"].reply(lists())
    some.ups["hidden"].reply(lists("secret-1", "gpt-5", "claude-9"))
    answer = await some.client.get("/v1/models?a=1", headers={"authorization": MINE})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "object": "list",
        "data": [
            {"id": "gpt-5", "owned_by": "us"},
            {"id": "gpt-4o"},
            {"id": "claude-2"},
            {"id": "claude-9", "display_name": "Nine"},
            {"id": "llama-4"},
            {"id": "secret-1"},
        ],
    }
    asked = {name: up.requests[-1] for name, up in some.ups.items()}
    targets = {name: each.target for name, each in asked.items()}
    assert targets.pop("default") == b"/v1/models?a=1"
    assert targets.pop("paid") == b"/v1/models?limit=1000"
    assert set(targets.values()) == {b"/v1/models"}
    said = {
        name: each.header("x-api-key") or each.header("authorization")
        for name, each in asked.items()
    }
    assert said == {
        "default": MINE,
        "paid": "sk-of-paid",
        "open": MINE,
        "local": None,
        "hidden": "Bearer sk-of-hidden",
    }


async def test_the_models_of_one_are_its_own_answer(some: Several) -> None:
    some.ups["open"].reply(lists("gpt-4o", "x"))
    answer = await some.client.get("/v1/models", headers={"x-memory-upstream": "open"})
    assert [each["id"] for each in answer.json()["data"]] == ["gpt-4o", "x"]


async def test_where_nobody_has_a_list_the_first_one_says_so(some: Several) -> None:
    for up in some.ups.values():
        up.always(json_answer({"error": {"message": "no list here"}}, 404))
    answer = await some.client.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "no list here")


async def test_lists_with_a_session_say_what_memory_did(some: Several) -> None:
    answer = await some.client.get("/v1/models", headers={"x-session-id": "s4"})
    assert answer.headers["x-memory-reason"] == "not_chat"


# One that is away


async def unlisted(some: Several) -> float:
    metrics = (await some.client.get("/metrics")).text
    counted = 'memory_upstream_requests_total{outcome="unlisted",upstream="paid"} '
    return float(metrics.partition(counted)[2].split()[0])


async def test_one_that_is_silent_is_left_out_of_the_list(
    some: Several, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("proxy.gateway.dispatch.catalogue.TIMEOUT", 0.2)
    before = await unlisted(some)
    some.ups["paid"].always(SILENT)
    some.ups["local"].always(json_answer(["no list"]))
    some.ups["default"].always(lists("gpt-4o"))
    answer = await some.client.get("/v1/models")
    assert [each["id"] for each in answer.json()["data"]] == ["gpt-4o", "scripted-1"]
    left = {line for line in caplog.messages if "left out" in line}
    assert left == {
        "the upstream paid is left out of the list of models: timeout",
        "the upstream local is left out of the list of models: no list",
    }
    assert await unlisted(some) == before + 1


async def test_one_that_is_silent_holds_up_nobody_else(some: Several) -> None:
    """Forty wait at one upstream; the others are asked and answer all the same."""
    some.ups["local"].always(SILENT)
    waiting = [asyncio.create_task(some.ask("qwen")) for _ in range(40)]

    async def waited() -> bool:
        return len(some.of("local")) == 40

    try:
        await eventually(waited)
        for model, name in BY_MODEL:
            if name != "local":
                assert (await some.ask(model)).status_code == 200
        assert not any(task.done() for task in waiting)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_one_that_is_silent_does_not_take_all_of_a_tenants_places(tmp_path: Path) -> None:
    listed = {"local": {"models": ["qwen*"], "max_concurrent_requests": 2}}
    async with several(tmp_path, listed, server__max_concurrent_requests=3) as some:
        some.ups["local"].always(SILENT)
        waiting = [asyncio.create_task(some.ask("qwen")) for _ in range(2)]

        async def waited() -> bool:
            return len(some.of("local")) == 2

        await eventually(waited)
        assert (await some.ask("qwen")).json()["error"]["code"] == "overloaded"
        assert (await some.ask("qwen", authorization=MINE, x_memory_upstream="default")).is_success
        assert (await some.ask("gpt-4o")).is_success
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        some.ups["local"].always(None)

        async def served() -> bool:
            return (await some.ask("qwen")).is_success

        await eventually(served)


async def test_one_that_is_gone_fails_alone(tmp_path: Path) -> None:
    listed = {"gone": {"models": ["gone-*"], "url": "http://127.0.0.1:1/v1"}}
    async with several(tmp_path, listed) as some:
        assert (await some.ask("gone-1")).json()["error"]["code"] == "upstream_unreachable"
        assert (await some.ask("gpt-4o")).status_code == 200
        metrics = (await some.client.get("/metrics")).text
        counted = "memory_upstream_requests_total"
        assert f'{counted}{{outcome="unreachable",upstream="gone"}} 1.0' in metrics
        assert f'{counted}{{outcome="answered",upstream="default"}} 1.0' in metrics
        assert (await some.client.get("/readyz")).status_code == 200


# Tenancy


async def test_a_named_clients_key_goes_to_no_upstream(tmp_path: Path) -> None:
    client = {"name": "web", "key_sha256": [hashlib.sha256(b"sk-client").hexdigest()]}
    settings: dict[str, Any] = {"tenancy.mode": "clients", "upstream.api_key": "sk-default"}
    listed: dict[str, dict[str, Any]] = {
        "paid": {"models": ["p-*"], "api_key": "sk-of-paid"},
        "local": {"models": ["l-*"]},
    }
    async with several(tmp_path, listed, clients=[client], **settings) as some:
        for model in ("p-1", "l-1", "gpt-4o"):
            assert (await some.ask(model, authorization=MINE)).status_code == 200
        assert (await some.ask("p-1", authorization="Bearer other")).status_code == 401
        assert keys(some, "paid") == {"authorization": "Bearer sk-of-paid"}
        assert keys(some, "local") == {}
        assert keys(some, "default") == {"authorization": "Bearer sk-default"}


# Context windows


async def test_the_context_window_is_what_the_upstream_says(tmp_path: Path) -> None:
    """gpt-4o has room for 128,000 tokens elsewhere; here it was started with 1,200."""
    listed = {"local": {"models": ["gpt-4o"]}}
    async with several(tmp_path, listed) as some:
        local = some.ups["local"]
        local.always(lambda request: _small(request.path))
        await some.client.get("/v1/models")
        who = {"x_session_id": "small", "authorization": MINE}
        await some.ask("gpt-4o", "the boat " * 300, **who)
        answer = await some.ask("gpt-4o", "and now?", **who)
        assert answer.headers["x-memory-reason"] == "context_trimmed"
        assert len(some.of("local")[-1].messages) == 1


def _small(path: str) -> Any:
    if path.endswith("/models"):
        return lists({"id": "gpt-4o", "max_model_len": 1200})
    return json_answer(chat_completion("well"))


# What a model writes

SUMMARY = {"enabled": True, "mode": "summary"}


async def test_a_summary_is_written_where_the_chat_was(tmp_path: Path) -> None:
    listed = {"paid": {"models": ["claude-*"], "api_key": "sk-of-paid"}}
    async with several(tmp_path, listed, memory__summary=SUMMARY) as some:
        for text in ("one", "two"):
            await some.ask("claude-1", text, x_session_id="s", authorization=MINE)

        async def written() -> bool:
            return any("running summary" in str(each.json) for each in some.of("paid"))

        await eventually(written)
        assert {each.header("authorization") for each in some.of("paid")} == {"Bearer sk-of-paid"}
        assert some.asked().keys() == {"paid"}


# Where there is one upstream


async def test_with_one_upstream_only_its_name_is_known(tmp_path: Path) -> None:
    async with several(tmp_path, {}) as some:
        assert (await some.ask(x_memory_upstream="default", cookie="a=b")).status_code == 200
        answer = await some.ask(x_memory_upstream="paid")
        assert answer.json()["error"]["code"] == "unknown_upstream"
        assert keys(some, "default") == {"cookie": "a=b"}
        assert "memory_upstream_requests" not in (await some.client.get("/metrics")).text
        assert json.loads((await some.client.get("/v1/models")).content) == {
            "object": "list",
            "data": [{"id": "scripted-1", "object": "model"}],
        }
