"""The list of sessions: searched, with a look into each, and right while it changes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from proxy.memory.model import SessionKey
from proxy.memory_api.conversations import sessions
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, error_of, said, seed, talk
from tests.support.store.commits import chat

TENANT = digest_of(b"alice")


async def page(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get(SESSIONS, params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def found(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """The ids of all pages."""
    ids: list[str] = []
    while True:
        part = await page(client, **query)
        ids += [session["id"] for session in part["data"]]
        assert len(part["data"]) <= query.get("limit", 100)
        assert part["has_more"] == (part["next"] is not None)
        if not part["has_more"]:
            return ids
        query["after"] = part["next"]


async def many(store: Backend, count: int, user: str | None = None) -> list[str]:
    """Sessions s0, s1 and so on; the newest first."""
    for number in range(count):
        commit = chat(f"x{number}", at=1000.0 + number, user=user)
        await store.commit(SessionKey(TENANT, f"s{number}"), commit)
    return [f"s{number}" for number in reversed(range(count))]


# Searched


async def test_a_query_finds_id_title_and_user_whatever_their_case(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "paris-1", *talk("a"))
    await seed(client, "two", *talk("a"), user="Paris-Hilton")
    await seed(client, "three", *talk("we go to paris"))
    await seed(client, "four", *talk("a"))
    await client.patch(f"{SESSIONS}/four", json={"title": "Trip to PARIS"})
    assert await found(client, query="pArIs") == ["four", "two", "paris-1"]
    assert await found(client, query="paris", user="Paris-Hilton") == ["two"]
    assert await found(client, query="rome") == []
    assert len(await found(client, query="")) == 4


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("CAF\u00c9 M\u00fcnchen", "cafe\u0301 mu\u0308nchen"),
        ("CAFE\u0301 Mu\u0308nchen", "caf\u00e9"),
        ("\uff26\uff35\uff2c\uff2c \uff11\uff12", "full 12"),
        ("\u0130stanbul", "istanbul"),
        ("Stra\u00dfe", "STRASSE"),
    ],
    ids=["decomposed", "composed", "wide", "dotted", "sharp"],
)
async def test_a_query_finds_a_title_however_its_letters_are_written(
    client: httpx.AsyncClient, title: str, query: str
) -> None:
    await seed(client, "s", *talk("a"))
    await client.patch(f"{SESSIONS}/s", json={"title": title})
    assert await found(client, query=query) == ["s"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_every_page_of_a_query_goes_on_where_the_one_before_ended(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(sessions, "CHUNK", 5)
    monkeypatch.setattr(sessions, "MAX_SCANNED", 12)
    everything = await many(store, 40)
    wanted = [id for id in everything if "3" in id]
    assert await found(client, query="3", limit=limit) == wanted


async def test_a_page_of_a_query_may_be_empty_and_have_more_behind_it(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SCANNED", 10)
    await many(store, 25)
    first = await page(client, query="s0")
    assert (first["data"], first["has_more"]) == ([], True)
    assert await found(client, query="s0") == ["s0"]


# While it changes


async def test_none_comes_twice_and_no_quiet_one_is_left_out_while_people_chat(
    client: httpx.AsyncClient, store: Backend
) -> None:
    """One that becomes active again moves to the front, where a later look finds it."""
    everything = await many(store, 12)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    stirred: set[str] = set()
    while True:
        part = await page(client, **query)
        seen += [session["id"] for session in part["data"]]
        for id in (seen[0], f"s{len(seen) // 3}", f"new{len(seen)}"):
            stirred.add(id)
            commit = chat(f"again-{len(seen)}", at=5000.0 + len(seen))
            await store.commit(SessionKey(TENANT, id), commit)
        if not part["has_more"]:
            break
        query["after"] = part["next"]
    assert len(seen) == len(set(seen))
    quiet = [id for id in everything if id not in stirred]
    assert [id for id in seen if id in quiet] == quiet
    assert set(await found(client)) >= stirred


async def test_the_messages_of_a_session_come_once_each_while_it_changes(
    client: httpx.AsyncClient, store: Backend
) -> None:
    created = await seed(client, "s", *talk(*map(str, range(20))))
    url, seen = f"{SESSIONS}/s/messages", list[str]()
    query: dict[str, Any] = {"limit": 3, "state": "active,superseded"}
    while len(seen) < 20:
        part = (await client.get(url, params=query)).json()
        seen += [message["id"] for message in part["data"]]
        await client.delete(f"{url}/{part['data'][0]['id']}")
        await client.patch(f"{url}/{created[-1]['id']}", json={"content": f"at {len(seen)}"})
        await client.post(f"{SESSIONS}/s/rewind", json={"turns": 1})
        query["after"] = part["next"]
    assert seen == [message["id"] for message in created]


# A look into each


async def test_a_preview_is_how_the_user_begins(client: httpx.AsyncClient) -> None:
    long = "word " * 100
    await seed(client, "long", *talk(long))
    await seed(client, "second", said("assistant", "Welcome."), *talk("hello", "hi", "more"))
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x:y"}}]
    await seed(client, "parts", {"role": "user", "content": parts})
    await seed(client, "nobody", said("assistant", "Welcome."))
    rules = "# AGENTS.md instructions for x\n<INSTRUCTIONS>Be brief.</INSTRUCTIONS>"
    await seed(client, "agent", said("user", rules), said("user", "mend the gate"))
    shown = {x["id"]: x["preview"] for x in (await page(client, preview="true"))["data"]}
    assert shown["long"] == long[:140]
    assert shown["second"] == "hello"
    assert shown["parts"].startswith("look")
    assert shown["nobody"] is None
    assert shown["agent"] == "mend the gate"


async def test_a_preview_shows_what_is_active(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("old", "older"))
    await client.post(f"{SESSIONS}/s/rewind", json={"turns": 1})
    await seed(client, "s", *talk("new"))
    assert (await page(client, preview="true"))["data"][0]["preview"] == "new"


async def test_there_is_no_preview_unless_asked_for(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    for query in ({}, {"preview": "false"}):
        assert "preview" not in (await page(client, **query))["data"][0]


@pytest.mark.parametrize("preview", ["", "1", "yes"])
async def test_a_preview_is_true_or_false(client: httpx.AsyncClient, preview: str) -> None:
    response = await client.get(SESSIONS, params={"preview": preview})
    assert (response.status_code, error_of(response)["param"]) == (400, "preview")
