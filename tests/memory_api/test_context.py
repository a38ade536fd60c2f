"""The preview of a prompt, held against what the relay really sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proxy.chat import request
from proxy.memory.model import LoadOptions, SessionKey
from proxy.memory.store import StoreError
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import (
    SESSIONS,
    TOKENIZERS,
    Site,
    error_of,
    open_site,
    said,
    seed,
    talk,
)
from tests.support.talk.parsing import parse
from tests.support.upstream.scripted import ScriptedUpstream, chat_completion, json_answer

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/context"
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = said("tool", "42", tool_call_id="c1")
LONG = talk(*(f"{n} " + "word " * 60 for n in range(20)))


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(strict=False) as upstream:
        yield upstream


@pytest.fixture
def settings(upstream: ScriptedUpstream) -> Settings:
    return Settings.model_validate(
        {
            "store": {"timeout": 5},
            "upstream": {"url": upstream.url},
            "memory": {"max_tokens": 600},
            "profiles": {
                "short": {"window": "message_window", "max_messages": 2},
                "bare": {"remember_system": False, "window": "none"},
                "full": {"client_history": "full"},
            },
        }
    )


def raw_messages(body: bytes) -> list[bytes]:
    request = parse(body)
    assert request is not None
    return [message.raw for message in (*request.leading, *request.messages)]


@pytest.mark.parametrize("profile", ["", "short", "bare", "full"])
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        pytest.param(talk("hello", "hi"), talk("more"), id="only what is new"),
        pytest.param(talk("hello", "hi"), talk("hello", "hi", "more"), id="everything again"),
        pytest.param(talk("hello", "hi"), talk("other"), id="words of its own"),
        pytest.param(LONG, talk("more"), id="a window that overflows"),
        pytest.param([*talk("hello"), CALLING], [RESULT], id="the result of a call"),
        pytest.param([*talk("hello"), CALLING], talk("never mind"), id="a call left waiting"),
        pytest.param(
            [said("system", "Be brief."), *talk("hello", "hi")], talk("more"), id="system"
        ),
        pytest.param(
            [said("system", "Be brief."), *talk("hello", "hi")],
            [said("system", "Be long."), *talk("more")],
            id="a system message of its own",
        ),
        pytest.param(talk("hello", "hi", "then", "so"), talk("hello", "hi", "else"), id="an edit"),
        pytest.param(talk("hello", "hi"), [{"content": "more"}], id="nobody's words"),
        pytest.param(talk("hello", "hi"), [{"role": 7, "content": {}}], id="a role that is none"),
        pytest.param(talk("hello", "hi"), [{}, *talk("more")], id="an empty object"),
        pytest.param(talk("hello", "hi"), [], id="no message"),
    ],
)
async def test_a_preview_is_what_is_sent(
    client: httpx.AsyncClient,
    upstream: ScriptedUpstream,
    profile: str,
    stored: list[dict[str, Any]],
    asked: list[dict[str, Any]],
) -> None:
    await seed(client, "s", *stored)
    body = {"model": "gpt-4o", "messages": asked}

    response = await client.post(URL, json={**body, "profile": profile})
    headers = {"x-session-id": "s", **({"x-memory-profile": profile} if profile else {})}
    answer = await client.post("/v1/chat/completions", json=body, headers=headers)

    preview = response.json()
    assert response.status_code == answer.status_code == 200
    sent = raw_messages(upstream.requests[0].body)
    shown = b'"messages":[' + b",".join(sent) + b"]"
    assert shown in response.content
    assert preview["injected"] == {
        "messages": int(answer.headers["x-memory-messages"]),
        "tokens": int(answer.headers["x-memory-tokens"]),
        "recalled": int(answer.headers["x-memory-recalled"]),
    }
    exchange = answer.headers["x-memory-exchange-id"]
    recorded = (await client.get(f"{SESSIONS}/s/exchanges/{exchange}")).json()
    assert preview["evicted"] == recorded["memory"]["evicted"]
    assert preview["tokens"] == sum(map(TOKENIZERS.counter_for("gpt-4o").count, sent))


async def test_a_preview_with_memory_may_have_more_text_than_is_read(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", said("system", "word " * 100), *talk("hello", "hi"))
    monkeypatch.setattr(request, "MAX_TEXT", 600)
    response = await client.post(URL, json={"model": "gpt-4o", "messages": talk("more " * 50)})
    assert response.status_code == 200
    assert len(response.json()["messages"]) == 4


async def test_a_preview_has_all_its_fields(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))

    preview = (await client.post(URL, json={"messages": talk("more")})).json()

    tokens = preview.pop("tokens")
    injected = sum(item["tokens"] for item in created)
    assert tokens > injected
    assert preview == {
        "object": "context",
        "messages": talk("hello", "hi", "more"),
        "injected": {"messages": 2, "tokens": injected, "recalled": 0},
        "evicted": {"messages": 0, "tokens": 0, "reason": None},
        "recalled": [],
        "known": [],
        "summary": None,
        "breakdown": {
            "system": 0,
            "summary": 0,
            "messages": injected,
            "known": 0,
            "recalled": 0,
        },
        "shown": [
            {
                "kind": "message",
                "id": item["id"],
                "session_id": "s",
                "tokens": item["tokens"],
            }
            for item in created
        ],
        "shown_cut": 0,
        "resent": [],
    }


async def test_what_does_not_fit_is_counted_as_evicted(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *LONG)
    body = {"messages": talk("more"), "profile": "short"}
    preview = (await client.post(URL, json=body)).json()
    assert preview["messages"] == [*LONG[-2:], *talk("more")]
    assert preview["evicted"]["messages"] == 18
    assert preview["evicted"]["tokens"] > 18 * 60


async def test_memory_is_fitted_to_the_models_window(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello", "hi"))
    body = {"messages": talk("word " * 8000), "model": "gpt-4"}
    preview = (await client.post(URL, json=body)).json()
    assert preview["messages"] == body["messages"]
    assert preview["injected"] == {"messages": 0, "tokens": 0, "recalled": 0}


async def test_a_preview_changes_nothing(client: httpx.AsyncClient, store: Backend) -> None:
    await seed(client, "s", said("system", "Be brief."), *LONG)
    options = LoadOptions("short", whole=True)
    before, listed = await store.load(KEY, options), await store.session(KEY)

    for text in ("one", "two"):
        messages = [said("system", "Be long."), *talk(text)]
        response = await client.post(URL, json={"messages": messages, "profile": "short"})
        assert response.status_code == 200

    assert await store.load(KEY, options) == before
    assert await store.session(KEY) == listed


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"nonsense", "invalid_value", None),
        (b"{}", "invalid_value", "messages"),
        (b'{"messages": "hello"}', "invalid_value", "messages"),
        (b'{"messages": [1]}', "invalid_value", "messages"),
        (b'{"messages": [], "profile": 1}', "invalid_value", "profile"),
        (b'{"messages": [], "profile": "nobodys"}', "unknown_profile", "profile"),
    ],
)
async def test_a_wrong_request_is_refused_by_name(
    client: httpx.AsyncClient, body: bytes, code: str, param: str | None
) -> None:
    await seed(client, "s", *talk("hello"))
    response = await client.post(URL, content=body)
    assert response.status_code == 400
    assert (error_of(response)["code"], error_of(response)["param"]) == (code, param)


async def test_a_preview_shows_what_still_waits_in_the_spool(
    site: Site,
    client: httpx.AsyncClient,
    upstream: ScriptedUpstream,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that the store refuses is spooled, and stays there while it does."""
    await seed(client, "s", *talk("hello", "hi"))
    refusing = _Refusing()
    monkeypatch.setattr(type(store), "commit", refusing.commit)
    upstream.reply(json_answer(chat_completion("fine")))
    body = {"model": "gpt-4o", "messages": talk("how are you")}
    chatted = await client.post("/v1/chat/completions", json=body, headers={"x-session-id": "s"})
    assert chatted.status_code == 200

    preview = (await client.post(URL, json={"messages": talk("more")})).json()

    assert refusing.refused
    texts = [message["content"] for message in preview["messages"]]
    assert texts == ["hello", "hi", "how are you", "fine", "more"]


class _Refusing:
    refused = 0

    async def commit(self, *_: object) -> object:
        self.refused += 1
        raise StoreError


async def test_a_store_that_fails_is_said_and_not_hidden(
    store: Backend, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat goes on without memory; a preview of that would be a lie."""
    async with open_site(settings, store, tmp_path) as site, site.client("alice") as client:
        await seed(client, "s", *talk("hello"))

        async def load(*_: object) -> object:
            raise StoreError

        monkeypatch.setattr(type(store), "load", load)
        response = await client.post(URL, json={"messages": talk("more")})
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
