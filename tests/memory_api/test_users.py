"""What is remembered of a person, over the memory API: searched, listed, removed."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from proxy.memory.model import SessionKey
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, said, seed, talk
from tests.support.talk.recalling import index
from tests.support.waiting import eventually

USER = "/memory/v1/users/kai/memories"
BOAT = "My boat is called Marlin."
FIELDS = {
    "object",
    "id",
    "kind",
    "text",
    "score",
    "parts",
    "tokens",
    "role",
    "message_id",
    "session_id",
    "created_at",
}


async def told(
    site: Site, client: httpx.AsyncClient, *texts: str, session: str = "s", user: str = "kai"
) -> list[dict[str, Any]]:
    """Messages that are in the index: what was said, and an answer to each."""
    messages = [each for text in texts for each in talk(text, "Noted.")]
    created = await seed(client, session, *messages, user=user)
    key = client.headers["authorization"].removeprefix("Bearer ").encode()
    await index(site.store, SessionKey(digest_of(key), session))
    return created


async def search(client: httpx.AsyncClient, query: str, **more: Any) -> list[dict[str, Any]]:
    response = await client.post(f"{USER}/search", json={"query": query, **more})
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["object"], body["has_more"], body["next"]) == ("list", False, None)
    found: list[dict[str, Any]] = body["data"]
    assert all(set(one) >= FIELDS and one["object"] == "memory" for one in found)
    return found


async def wishes(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await client.get(USER)
    assert response.status_code == 200
    listed: list[dict[str, Any]] = response.json()["data"]
    return listed


# Search


async def test_search_finds_what_was_said_and_where(site: Site, client: httpx.AsyncClient) -> None:
    created = await told(site, client, "I had soup.", BOAT)
    best = (await search(client, "Marlin the boat"))[0]
    assert (best["kind"], best["text"], best["role"]) == ("passage", BOAT, "user")
    assert (best["message_id"], best["session_id"]) == (created[2]["id"], "s")
    assert best["id"] == best["message_id"]
    assert best["tokens"] == created[2]["tokens"] and best["score"] > 0
    assert best["created_at"] == created[2]["created_at"]


async def test_what_is_imported_is_found_without_more_ado(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk(BOAT), user="kai")

    async def found() -> bool:
        return bool(await search(client, "Marlin"))

    await eventually(found)


async def test_search_is_limited_and_of_the_kinds_asked_for(
    site: Site, client: httpx.AsyncClient
) -> None:
    boats = [f"My boat Marlin has {thing}." for thing in ("oars", "soup", "bells", "cats")]
    await told(site, client, *boats, "Always answer in French about my boat.")
    everything = await search(client, "my boat Marlin")
    assert {one["kind"] for one in everything} == {"passage", "instruction"}
    assert len(await search(client, "my boat Marlin", limit=2)) == 2
    assert await search(client, "my boat Marlin", limit=1) == everything[:1]
    only = await search(client, "my boat Marlin", kinds=["passage"])
    assert {one["kind"] for one in only} == {"passage"} and len(only) >= 4
    assert not await search(client, "my boat Marlin", kinds=["preference"])
    assert not await search(client, "my boat Marlin", kinds=[])


async def test_search_for_what_nobody_said_finds_nothing(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, BOAT)
    assert await search(client, "zyxwv") == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"nonsense", None),
        (b"[]", None),
        (b"{}", "query"),
        (b'{"query": ""}', "query"),
        (b'{"query": 7}', "query"),
        (b'{"query": "boat", "limit": 0}', "limit"),
        (b'{"query": "boat", "limit": 51}', "limit"),
        (b'{"query": "boat", "limit": "7"}', "limit"),
        (b'{"query": "boat", "limit": 1.5}', "limit"),
        (b'{"query": "boat", "limit": true}', "limit"),
        (b'{"query": "boat", "kinds": "passage"}', "kinds"),
        (b'{"query": "boat", "kinds": ["passage", "wish"]}', "kinds"),
        (b'{"query": "boat", "kinds": [1]}', "kinds"),
    ],
)
async def test_a_wrong_search_is_refused_by_name(
    client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    response = await client.post(f"{USER}/search", content=body)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["code"], error["param"]) == ("invalid_value", param)


# Wishes


async def test_wishes_in_force_are_listed_newest_first(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, "Always answer in French.", BOAT, "Never use emoji.")
    assert [one["text"] for one in await wishes(client)] == [
        "Never use emoji.",
        "Always answer in French.",
    ]
    await told(site, client, "From now on, always answer in German.", session="t")
    texts = [one["text"] for one in await wishes(client)]
    assert len(texts) == 2 and "German" in texts[0] and "emoji" in texts[1]


async def test_a_wish_is_found_by_its_id(site: Site, client: httpx.AsyncClient) -> None:
    await told(site, client, "Always answer in French. Never use emoji.")
    listed = await wishes(client)
    assert len({one["id"] for one in listed}) == 2
    for wish in listed:
        assert (await client.get(f"{USER}/{wish['id']}")).json() == wish
        assert wish["kind"] in ("instruction", "preference")


async def test_a_wish_that_is_removed_is_pinned_no_more_and_its_message_stays(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, "Always answer in French. Never use emoji.")
    (french,) = [one for one in await wishes(client) if "French" in one["text"]]
    path = f"{USER}/{french['id']}"
    removed = await client.delete(path)
    assert (removed.status_code, removed.json()) == (
        200,
        {"object": "memory.deleted", "id": french["id"], "deleted": True},
    )
    assert [one["text"] for one in await wishes(client)] == ["Never use emoji."]
    assert (await client.get(path)).status_code == (await client.delete(path)).status_code == 404
    history = (await client.get(f"{SESSIONS}/s/messages")).json()["data"]
    assert history[0]["message"]["content"] == "Always answer in French. Never use emoji."


@pytest.mark.parametrize("memory", ["x", "ex_1.0:0", "%00", "%ff", "a%2Fb", ":"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_memory_that_is_not_there_is_not_found(
    site: Site, client: httpx.AsyncClient, method: str, memory: str
) -> None:
    await told(site, client, "Always answer in French.")
    response = await client.request(method, f"{USER}/{memory}")
    assert response.status_code == 404
    assert error_of(response)["code"] == "memory_not_found"
    assert len(await wishes(client)) == 1


async def test_a_passage_is_not_removed_as_if_it_were_a_wish(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, BOAT)
    (passage, *_) = await search(client, "Marlin")
    assert (await client.delete(f"{USER}/{passage['id']}")).status_code == 404
    assert await search(client, "Marlin")


async def test_wishes_of_others_than_the_user_are_none(
    site: Site, client: httpx.AsyncClient
) -> None:
    wish = "Always answer in French."
    await seed(client, "s", said("system", wish), said("user", "Hi!"), said("assistant", wish))
    await told(site, client, BOAT, session="s")
    assert await wishes(client) == []


async def test_a_wish_goes_with_its_session(site: Site, client: httpx.AsyncClient) -> None:
    await told(site, client, "Always answer in French.")
    assert len(await wishes(client)) == 1
    assert (await client.delete(f"{SESSIONS}/s")).status_code == 200
    assert await wishes(client) == [] == await search(client, "French")


# Whose


async def test_another_key_and_another_user_see_nothing(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, BOAT, "Always answer in French.")
    wish = (await wishes(client))[0]["id"]
    async with site.client("bob") as other:
        assert await search(other, "Marlin") == [] == await wishes(other)
        assert (await other.delete(f"{USER}/{wish}")).status_code == 404
    eve = USER.replace("kai", "eve")
    assert (await client.get(eve)).json()["data"] == []
    found = await client.post(f"{eve}/search", json={"query": "Marlin"})
    assert found.json()["data"] == []
    assert len(await wishes(client)) == 1


async def test_the_administrator_says_whose_memory_is_meant(
    site: Site, client: httpx.AsyncClient
) -> None:
    await told(site, client, BOAT, "Always answer in French.")
    tenant = {"tenant": digest_of(b"alice")}
    async with site.client(ADMIN_KEY) as admin:
        assert (await admin.get(USER)).status_code == 400
        assert len((await admin.get(USER, params=tenant)).json()["data"]) == 1
        body = {"query": "Marlin"}
        found = await admin.post(f"{USER}/search", params=tenant, json=body)
        assert BOAT in [one["text"] for one in found.json()["data"]]
        other = {"tenant": digest_of(b"bob")}
        assert (await admin.get(USER, params=other)).status_code == 404


async def test_without_a_key_of_their_own_nobody_asks_from_elsewhere(site: Site) -> None:
    async with site.client(peer="192.0.2.1") as stranger:
        for response in (
            await stranger.get(USER),
            await stranger.post(f"{USER}/search", json={"query": "x"}),
            await stranger.delete(f"{USER}/x"),
        ):
            assert response.status_code == 401


async def test_a_user_that_cannot_be_one_is_refused(client: httpx.AsyncClient) -> None:
    for user in ("..", "a%20b", "%C3%A9", "x" * 257):
        response = await client.get(f"/memory/v1/users/{user}/memories")
        assert response.status_code in (400, 404), user


async def test_methods_that_are_not_there_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.put(USER)).status_code == 405
    assert (await client.get(f"{USER}/search")).status_code in (404, 405)
