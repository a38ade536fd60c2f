"""The people of a tenant over the memory API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from proxy.learning.kinds import Kinds
from proxy.memory.model import SessionKey
from proxy.memory_api.people import people
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import Site, error_of, seed, talk
from tests.support.store.commits import draft, record
from tests.support.talk.recalling import index

USERS = "/memory/v1/users"
ALICE = digest_of(b"alice")


async def said(store: Backend, session: str, user: str | None, at: float) -> None:
    """One exchange of somebody in a session."""
    id = f"ex_{session}_{at}"
    commit = record(id, draft(id, 0), draft(id, 1, "assistant"), at=at, user=user)
    assert await store.commit(SessionKey(ALICE, session), commit) == "recorded"


async def page(client: httpx.AsyncClient, **query: Any) -> tuple[list[str], str | None]:
    response = await client.get(USERS, params=query)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["has_more"] == (body["next"] is not None)
    return [person["id"] for person in body["data"]], body["next"]


async def everybody(client: httpx.AsyncClient, limit: int) -> list[str]:
    found, after = await page(client, limit=limit)
    while after is not None:
        more, after = await page(client, limit=limit, after=after)
        assert len(more) <= limit
        found += more
    return found


async def test_people_are_listed_newest_activity_first(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await said(store, "a", "kai", 100.0)
    await said(store, "b", "lee", 200.0)
    await said(store, "c", "kai", 300.0)
    await said(store, "d", None, 400.0)
    response = await client.get(USERS)
    assert response.json() == {
        "object": "list",
        "data": [
            {"object": "user", "id": "kai", "sessions": 2, "last_active_at": 300.0},
            {"object": "user", "id": "lee", "sessions": 1, "last_active_at": 200.0},
        ],
        "has_more": False,
        "next": None,
    }


async def test_where_nobody_is_named_nobody_is_listed(
    client: httpx.AsyncClient, store: Backend
) -> None:
    assert await page(client) == ([], None)
    await said(store, "a", None, 100.0)
    assert await page(client) == ([], None)


WHO: Sequence[str | None] = ["kai", "lee", "kai", None, "mio", "kai", "lee", None, "nia", "mio"]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
async def test_page_by_page_everybody_comes_once(
    client: httpx.AsyncClient, store: Backend, limit: int
) -> None:
    for n, user in enumerate(WHO):
        await said(store, f"s{n}", user, 1000.0 - n)
    assert await everybody(client, limit) == ["kai", "lee", "mio", "nia"]


async def test_who_becomes_active_meanwhile_comes_no_second_time(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for n, user in enumerate(("kai", "lee", "mio", "nia")):
        await said(store, f"s{n}", user, 1000.0 - n)
        await said(store, f"old{n}", user, 500.0 - n)
    first, after = await page(client, limit=2)
    assert first == ["kai", "lee"] and after is not None
    await said(store, "s0", "kai", 2000.0)
    rest: list[str] = []
    while after is not None:
        more, after = await page(client, limit=2, after=after)
        rest += more
    assert rest == ["mio", "nia"]


async def test_a_page_may_be_short_where_there_is_much_to_look_at(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MAX_SESSIONS", 3)
    for n in range(12):
        await said(store, f"s{n}", "kai" if n < 11 else "lee", 1000.0 - n)
    first, after = await page(client, limit=3)
    assert first == ["kai"] and after is not None
    assert await everybody(client, 3) == ["kai", "lee"]


async def test_who_stands_before_is_not_counted_again_for_the_parts_that_follow(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MAX_SESSIONS", 50)
    for n in range(100):
        await said(store, f"s{n}", ("kai", "lee")[n % 2], 1000.0 - n)
    (found, after), parts = await page(client, limit=2), 1
    while after is not None:
        (more, after), parts = await page(client, limit=2, after=after), parts + 1
        found += more
    assert (found, parts) == (["kai", "lee"], 3)


async def test_of_nobody_new_more_is_looked_at_together(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MAX_PAGES", 10)
    for n in range(102):
        await said(store, f"s{n}", "kai" if n < 100 else ("lee", "mio")[n % 2], 1000.0 - n)
    first, after = await page(client, limit=3)
    assert (first, after is not None) == (["kai", "lee", "mio"], False)
    assert await everybody(client, 1) == ["kai", "lee", "mio"]


async def test_an_unknown_cursor_is_refused(client: httpx.AsyncClient, store: Backend) -> None:
    await said(store, "a", "kai", 100.0)
    for after in ("!", "bm9uZQ", "%", "bmFuOng"):
        response = await client.get(USERS, params={"after": after})
        assert (response.status_code, error_of(response)["param"]) == (400, "after")


# One person


async def test_a_person_in_numbers(client: httpx.AsyncClient, site: Site) -> None:
    first = await seed(client, "a", *talk("My boat is red.", "Noted."), user="kai")
    second = await seed(client, "b", *talk("Always answer in French."), user="kai")
    await seed(client, "c", *talk("Hello."), user="lee")
    await index(site.store, SessionKey(ALICE, "a"))
    await index(site.store, SessionKey(ALICE, "b"))
    await client.post(f"{USERS}/kai/memories", json={"text": "Kai sails."})
    await client.patch(f"{USERS}/kai/profile", json={"city": "Bonn"})
    place = {"namespace": ["users", "kai", "notes"], "key": "k", "value": {}}
    assert (await client.put("/memory/v1/store/items", json=place)).status_code == 200

    person = (await client.get(f"{USERS}/kai")).json()

    sessions = [(await client.get(f"/memory/v1/sessions/{id}")).json() for id in ("a", "b")]
    assert person == {
        "object": "user",
        "id": "kai",
        "sessions": 2,
        "messages": 3,
        "tokens": sum(message["tokens"] for message in [*first, *second]),
        "first_active_at": min(session["created_at"] for session in sessions),
        "last_active_at": max(session["last_active_at"] for session in sessions),
        "memories": {
            **dict.fromkeys((kind.memory for kind in Kinds().personal), 0),
            "fact": 1,
            "profile": person["memories"]["profile"],
            "instruction": 1,
            "preference": 0,
            "item": 1,
        },
    }
    assert person["memories"]["profile"] >= 1


async def test_who_has_only_memories_is_known_too(client: httpx.AsyncClient) -> None:
    await client.post(f"{USERS}/kai/memories", json={"text": "Kai sails."})
    person = (await client.get(f"{USERS}/kai")).json()
    assert (person["sessions"], person["memories"]["fact"]) == (0, 1)
    assert person["first_active_at"] is None and person["last_active_at"] is None


async def test_of_somebody_else_nothing_is_known(site: Site, client: httpx.AsyncClient) -> None:
    await seed(client, "a", *talk("Hello."), user="kai")
    async with site.client("bob") as other:
        for user in ("kai", "nobody"):
            response = await other.get(f"{USERS}/{user}")
            assert (response.status_code, error_of(response)["code"]) == (404, "user_not_found")
        assert (await other.get(USERS)).json()["data"] == []


async def test_a_wrong_id_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{USERS}/a%20b")
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_user_id")
