"""What recall put into a prompt, in the preview and in the record of an exchange."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from proxy.memory.model import SessionKey
from proxy.settings import Settings
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, said, seed, talk
from tests.support.talk.parsing import parse
from tests.support.talk.recalling import blocks_in, index
from tests.support.upstream.scripted import ScriptedUpstream

BOAT = "My boat is called Marlin."
ASKED = "What is the boat called, Marlin?"


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
def settings(upstream: ScriptedUpstream) -> Settings:
    return Settings.model_validate(
        {
            "store": {"timeout": 5},
            "upstream": {"url": upstream.url},
            "memory": {"recall": {"timeout": 10}},
            "profiles": {
                "apart": {"block_placement": "separate", "recall": {"timeout": 10}},
                "without-sides": {"side_requests": [], "recall": {"timeout": 10}},
                "short": {
                    "window": "message_window",
                    "max_messages": 2,
                    "recall": {"timeout": 10, "scope": "session"},
                },
            },
        }
    )


async def told(site: Site, client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Two sessions of kai: what was said in the older one, then an empty beginning."""
    created = await seed(
        client, "old", *talk(BOAT, "Noted.", "Always answer in French.", "Noted."), user="kai"
    )
    await seed(client, "s", said("system", "Be brief."), *talk("Hello!", "Hi!"), user="kai")
    for session in ("old", "s"):
        await index(site.store, SessionKey(digest_of(b"alice"), session))
    return created


async def chat(
    client: httpx.AsyncClient, asked: list[dict[str, Any]], profile: str = ""
) -> httpx.Response:
    headers = {"x-session-id": "s", "x-user-id": "kai"}
    headers |= {"x-memory-profile": profile} if profile else {}
    response = await client.post(
        "/v1/chat/completions", json={"model": "gpt-4o", "messages": asked}, headers=headers
    )
    assert response.status_code == 200
    return response


@pytest.mark.parametrize("profile", ["", "apart", "short"])
@pytest.mark.parametrize(
    "content", [ASKED, [{"type": "text", "text": ASKED}]], ids=["string", "parts"]
)
async def test_a_preview_is_what_is_sent_recall_included(
    site: Site, client: httpx.AsyncClient, upstream: ScriptedUpstream, profile: str, content: Any
) -> None:
    await told(site, client)
    asked = [said("user", content)]
    body = {"model": "gpt-4o", "messages": asked, "profile": profile}
    preview = await client.post(f"{SESSIONS}/s/context", json=body)
    answer = await chat(client, asked, profile)

    request = parse(upstream.requests[-1].body)
    assert request is not None
    sent = [message.raw for message in (*request.leading, *request.messages)]
    assert b'"messages":[' + b",".join(sent) + b"]" in preview.content
    shown = preview.json()
    assert shown["injected"] == {
        "messages": int(answer.headers["x-memory-messages"]),
        "tokens": int(answer.headers["x-memory-tokens"]),
        "recalled": int(answer.headers["x-memory-recalled"]),
    }
    assert len(shown["recalled"]) == shown["injected"]["recalled"]
    assert bool(shown["recalled"]) == (profile != "short")


@pytest.mark.parametrize(("profile", "recalled"), [("", 0), ("without-sides", 1)])
async def test_a_preview_of_a_side_request_is_what_is_sent(
    site: Site,
    client: httpx.AsyncClient,
    upstream: ScriptedUpstream,
    profile: str,
    recalled: int,
) -> None:
    await told(site, client)
    asked = talk("### Task:\nmake a title")
    body = {"model": "gpt-4o", "messages": asked, "profile": profile}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    answer = await chat(client, asked, profile)
    assert preview["messages"] == upstream.requests[-1].messages
    assert answer.headers["x-memory-recalled"] == str(recalled)
    assert preview["injected"]["recalled"] == len(preview["recalled"]) == recalled


async def test_a_preview_says_what_is_recalled_and_why(
    site: Site, client: httpx.AsyncClient
) -> None:
    created = await told(site, client)
    body = {"messages": talk(ASKED)}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    wish = preview["recalled"][0]
    (boat,) = [one for one in preview["recalled"] if one["text"] == BOAT]
    assert (wish["kind"], wish["text"]) == ("instruction", "Always answer in French.")
    assert (wish["message_id"], wish["session_id"]) == (created[2]["id"], "old")
    assert (boat["kind"], boat["message_id"]) == ("passage", created[0]["id"])
    assert boat["score"] > 0 and boat["parts"]
    found = blocks_in(preview["messages"])
    assert BOAT in found["recall"] and wish["text"] in found["wishes"]


async def test_the_record_says_what_was_recalled_and_not_what_it_said(
    site: Site, client: httpx.AsyncClient
) -> None:
    created = await told(site, client)
    body = {"messages": talk(ASKED)}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    answer = await chat(client, talk(ASKED))
    exchange = f"{SESSIONS}/s/exchanges/{answer.headers['x-memory-exchange-id']}"
    response = await client.get(exchange)
    recalled = response.json()["memory"]["recalled"]
    fields = ("kind", "score", "parts", "tokens", "message_id", "session_id")
    assert recalled == [
        {**{name: one[name] for name in fields}, "memory_id": None} for one in preview["recalled"]
    ]
    assert created[0]["id"] in [one["message_id"] for one in recalled]
    assert "Marlin" not in response.text and "French" not in response.text

    assert (await client.delete(f"{SESSIONS}/old")).status_code == 200
    after = await client.get(exchange)
    assert after.json()["memory"]["recalled"] == recalled
    assert "Marlin" not in json.dumps(after.json())


async def test_a_preview_recalls_nothing_that_is_gone(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client)
    assert (await client.delete(f"{SESSIONS}/old")).status_code == 200
    body = {"messages": talk(ASKED)}
    preview = (await client.post(f"{SESSIONS}/s/context", json=body)).json()
    assert preview["recalled"] == []
    assert not blocks_in(preview["messages"])
