"""Exchanges over the memory API: listed; what memory did for one: see ``test_sessions``."""

from __future__ import annotations

import httpx

from proxy.memory.model import SessionKey
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, seed, talk
from tests.support.store.commits import chat

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/exchanges"


async def test_exchanges_are_listed_newest_first_as_each_is_shown(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for id in "abc":
        await store.commit(KEY, chat(id))
    listed = (await client.get(URL)).json()
    assert [each["id"] for each in listed["data"]] == ["c", "b", "a"]
    assert (listed["object"], listed["has_more"], listed["next"]) == ("list", False, None)
    for each in listed["data"]:
        assert (await client.get(f"{URL}/{each['id']}")).json() == each


async def test_none_comes_twice_and_none_is_left_out_while_the_chat_goes_on(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for number in range(7):
        await store.commit(KEY, chat(f"x{number}"))
    seen: list[str] = []
    query: dict[str, str | int] = {"limit": 2}
    while True:
        page = (await client.get(URL, params=query)).json()
        seen += [each["id"] for each in page["data"]]
        await store.commit(KEY, chat(f"new{len(seen)}", superseded=("x3.0", "x3.1")))
        if not page["has_more"]:
            break
        query["after"] = page["next"]
    assert seen == [f"x{number}" for number in reversed(range(7))]


async def test_an_import_of_messages_is_an_exchange(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("a", "b"))
    listed = (await client.get(URL)).json()["data"]
    assert [each["message_ids"] for each in listed] == [[x["id"] for x in created]]


async def test_a_session_that_is_not_there_has_no_exchanges(
    client: httpx.AsyncClient, site: Site
) -> None:
    response = await client.get(URL)
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    await seed(client, "s", *talk("a"))
    async with site.client("eve") as eve:
        assert (await eve.get(URL)).status_code == 404


async def test_a_cursor_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("a"))
    response = await client.get(URL, params={"after": "x"})
    assert (response.status_code, error_of(response)["param"]) == (400, "after")
