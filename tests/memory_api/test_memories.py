"""Facts over the memory API: added, listed, corrected, released, removed, searched, forgotten."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from proxy.learning.evidence import Source
from proxy.learning.facts.fact import Fact
from proxy.learning.facts.store import FactStore
from proxy.learning.kinds import Kinds
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, seed, talk
from tests.support.talk.recalling import index

USER = "/memory/v1/users/kai/memories"
KAI = ItemOwner(digest_of(b"alice"), "kai")
DAY = 86_400.0
FIELDS = {
    "object",
    "id",
    "kind",
    "text",
    "about",
    "state",
    "score",
    "parts",
    "tokens",
    "role",
    "message_id",
    "session_id",
    "sources",
    "valid_from",
    "last_confirmed",
    "expires_at",
    "superseded_by",
    "doubted_by",
    "later",
    "edited",
    "origin",
    "metadata",
    "created_at",
    "updated_at",
    "version",
}


def fact_store(site: Site) -> FactStore:
    return FactStore(site.store, len, time.time)


async def learned(site: Site, *facts: Fact, owner: ItemOwner = KAI) -> None:
    """Facts as a learner would have put them there."""
    await fact_store(site).change(
        owner, lambda held: held.update({fact.id: fact for fact in facts})
    )


def fact(name: str, text: str = "", session: str = "s", **fields: Any) -> Fact:
    source = Source(session=session, message="ex.0", exchange="ex", at=1000.0)
    known = {"sources": (source,), "valid_from": 1000.0, "last_confirmed": 1000.0, **fields}
    return Fact(id=f"fact_{name}", text=text or f"The user has a {name}.", **known)


async def add(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    response = await client.post(USER, json={"text": text, **more})
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    assert set(created) == FIELDS
    return created


async def memories(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    response = await client.get(USER, params=query)
    assert response.status_code == 200, response.text
    listed: list[dict[str, Any]] = response.json()["data"]
    assert all(set(one) >= FIELDS and one["object"] == "memory" for one in listed)
    return listed


async def texts(client: httpx.AsyncClient, **query: Any) -> list[str]:
    return [one["text"] for one in await memories(client, **query)]


# Adding


async def test_a_fact_is_added_and_found_by_its_id(client: httpx.AsyncClient) -> None:
    before = time.time()
    created = await add(client, "The user has a\nboat.", metadata={"from": "crm"})
    assert (created["kind"], created["text"]) == ("fact", "The user has a boat.")
    assert (created["about"], created["state"], created["origin"]) == ("user", "current", "added")
    assert (created["edited"], created["version"], created["sources"]) == (False, 1, [])
    assert created["metadata"] == {"from": "crm"} and created["expires_at"] is None
    assert before <= created["valid_from"] == created["last_confirmed"] <= time.time()
    assert (await client.get(f"{USER}/{created['id']}")).json() == created
    assert await memories(client) == [created]


async def test_times_and_whom_it_is_about_are_kept(client: httpx.AsyncClient) -> None:
    end = time.time() + 1000
    created = await add(
        client, "Likes soup.", about="Jack, a friend", kind="fact", valid_from=5, expires_at=end
    )
    assert (created["about"], created["valid_from"]) == ("Jack, a friend", 5)
    assert created["expires_at"] == end


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"nonsense", None),
        (b"[]", None),
        (b"{}", "text"),
        (b'{"text": ""}', "text"),
        (b'{"text": " \\n "}', "text"),
        (b'{"text": 7}', "text"),
        (b'{"text": "' + b"x" * 501 + b'"}', "text"),
        (b'{"text": "x", "about": 7}', "about"),
        (b'{"text": "x", "about": "' + b"x" * 101 + b'"}', "about"),
        (b'{"text": "x", "kind": "instruction"}', "kind"),
        (b'{"text": "x", "valid_from": "2023"}', "valid_from"),
        (b'{"text": "x", "valid_from": true}', "valid_from"),
        (b'{"text": "x", "expires_at": 1e300}', "expires_at"),
        (b'{"text": "x", "metadata": []}', "metadata"),
        (b'{"text": "x", "metadata": {"x": "' + b"x" * 5000 + b'"}}', "metadata"),
        (b'{"text": "x", "metadata": ' + b'{"a":' * 700 + b"1" + b"}" * 700 + b"}", "metadata"),
        (b'{"text": "x", "state": "current"}', "state"),
        (b'{"text": "x", "id": "fact_1"}', "id"),
    ],
)
async def test_a_wrong_fact_is_refused_by_name(
    client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    response = await client.post(USER, content=body)
    assert response.status_code == 400
    assert (error_of(response)["code"], error_of(response)["param"]) == ("invalid_value", param)
    assert await memories(client) == []


async def test_facts_that_are_added_at_once_wait_for_each_other(
    site: Site, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_items, refused = site.store.change_items, 0

    async def counted(*asked: Any) -> bool:
        nonlocal refused
        done = await change_items(*asked)
        refused += not done
        return done

    monkeypatch.setattr(site.store, "change_items", counted)
    said = [f"The user has {n} boats." for n in range(40)]
    await asyncio.gather(*(add(client, text) for text in said))
    assert set(await texts(client)) == set(said)
    assert refused == 0


async def test_who_always_comes_too_late_is_told_that_others_change_the_same(
    site: Site, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*asked: Any) -> bool:
        return False

    monkeypatch.setattr(site.store, "change_items", never)
    response = await client.post(USER, json={"text": "The user has a boat."})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert error_of(response)["code"] == "memory_unavailable"
    assert error_of(response)["message"].startswith("Others are changing the same memory.")


# Listing


async def test_by_default_what_is_current_is_listed(site: Site, client: httpx.AsyncClient) -> None:
    await learned(
        site,
        fact("boat"),
        fact("dog", state="superseded", superseded_by="fact_boat"),
        fact("cat", state="quarantined"),
        fact("tent", expires_at=2000.0),
    )
    assert await texts(client) == ["The user has a boat."]
    assert await texts(client, state="quarantined") == ["The user has a cat."]
    (expired,) = await memories(client, state="expired")
    assert (expired["text"], expired["state"]) == ("The user has a tent.", "expired")
    (old,) = await memories(client, state="superseded")
    assert (old["text"], old["superseded_by"]) == ("The user has a dog.", "fact_boat")
    assert len(await texts(client, state="current,expired,superseded,quarantined")) == 4


async def test_sources_say_where_a_fact_is_from(site: Site, client: httpx.AsyncClient) -> None:
    inherited = Source(session="t", message="old.0", exchange="old", at=500.0)
    await learned(site, fact("boat", inherited=(inherited,)))
    (one,) = await memories(client)
    assert (one["message_id"], one["session_id"]) == ("ex.0", "s")
    assert one["sources"] == [
        {"session_id": "s", "message_id": "ex.0", "exchange_id": "ex", "created_at": 1000.0},
        {"session_id": "t", "message_id": "old.0", "exchange_id": "old", "created_at": 500.0},
    ]


async def test_what_nobody_has_confirmed_for_long_is_up_for_review(
    site: Site, client: httpx.AsyncClient
) -> None:
    now = time.time()
    await learned(
        site,
        fact("boat", last_confirmed=now - 40 * DAY),
        fact("dog", last_confirmed=now - 10 * DAY),
    )
    assert await texts(client, stale_days=30) == ["The user has a boat."]
    assert len(await texts(client, stale_days=5)) == 2
    assert await texts(client, stale_days=90) == []


async def test_facts_wishes_and_kinds_are_told_apart(site: Site, client: httpx.AsyncClient) -> None:
    await add(client, "The user has a boat.")
    await seed(client, "s", *talk("Always answer in French.", "Oui."), user="kai")
    await index(site.store, SessionKey(KAI.tenant, "s"))
    both = await memories(client)
    assert [one["kind"] for one in both] == ["fact", "instruction"]
    assert both[1]["state"] == "current" and both[1]["sources"][0]["session_id"] == "s"
    assert [one["kind"] for one in await memories(client, kind="instruction")] == ["instruction"]
    assert [one["kind"] for one in await memories(client, kind="fact,preference")] == ["fact"]
    assert await memories(client, kind="instruction", state="superseded") == []
    assert (await client.get(f"{USER}/{both[1]['id']}")).json() == both[1]


async def test_a_list_is_read_page_by_page(site: Site, client: httpx.AsyncClient) -> None:
    await learned(site, *(fact(f"{n:02}") for n in range(7)))
    await seed(client, "s", *talk("Always answer in French. Never use emoji.", "Oui."), user="kai")
    await index(site.store, SessionKey(KAI.tenant, "s"))
    whole = await texts(client)
    assert len(whole) == 9
    read: list[str] = []
    after: dict[str, str] = {}
    while True:
        body = (await client.get(USER, params={"limit": 2, **after})).json()
        read += [one["text"] for one in body["data"]]
        assert body["has_more"] is (body["next"] is not None)
        if body["next"] is None:
            break
        first = body["data"][0]["id"]  # what is gone does not break the list
        assert (await client.delete(f"{USER}/{first}")).status_code == 200
        after = {"after": body["next"]}
    assert read == whole


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"kind": "passage"}, "kind"),
        ({"kind": ""}, "kind"),
        ({"state": "active"}, "state"),
        ({"stale_days": "x"}, "stale_days"),
        ({"stale_days": "-1"}, "stale_days"),
        ({"limit": "0"}, "limit"),
        ({"after": "x"}, "after"),
        ({"after": "e30"}, "after"),
    ],
)
async def test_a_wrong_listing_is_refused_by_name(
    client: httpx.AsyncClient, query: dict[str, str], param: str
) -> None:
    response = await client.get(USER, params=query)
    assert response.status_code == 400 and error_of(response)["param"] == param


# Changing


async def test_a_fact_is_corrected(site: Site, client: httpx.AsyncClient) -> None:
    await learned(site, fact("boat"))
    path = f"{USER}/fact_boat"
    changed = (await client.patch(path, json={"text": "The user has a ship."})).json()
    assert (changed["text"], changed["edited"], changed["version"]) == (
        "The user has a ship.",
        True,
        2,
    )
    assert changed["sources"] and changed["last_confirmed"] > 1000.0
    assert (await client.get(path)).json() == changed
    (line,) = (await fact_store(site).card(KAI)).lines
    assert "ship" in line.line


async def test_a_fact_is_released_from_quarantine(site: Site, client: httpx.AsyncClient) -> None:
    await learned(site, fact("boat", state="quarantined"))
    assert (await fact_store(site).card(KAI)).lines == ()
    changed = await client.patch(f"{USER}/fact_boat", json={"state": "current"})
    assert (changed.status_code, changed.json()["state"]) == (200, "current")
    assert len((await fact_store(site).card(KAI)).lines) == 1


async def test_a_superseded_fact_is_made_current_again(
    site: Site, client: httpx.AsyncClient
) -> None:
    await learned(site, fact("boat", state="superseded", superseded_by="fact_dog"), fact("dog"))
    changed = (await client.patch(f"{USER}/fact_boat", json={"state": "current"})).json()
    assert (changed["state"], changed["superseded_by"]) == ("current", None)


async def test_a_fact_that_somebody_vouches_for_is_doubted_no_more(
    site: Site, client: httpx.AsyncClient
) -> None:
    await learned(site, fact("boat", doubted_by="fact_dog"), fact("dog"))
    changed = (await client.patch(f"{USER}/fact_boat", json={"state": "current"})).json()
    assert (changed["state"], changed["doubted_by"]) == ("current", None)


async def test_an_end_is_set_and_taken_back(client: httpx.AsyncClient) -> None:
    path = f"{USER}/{(await add(client, 'The user has a boat.'))['id']}"
    assert (await client.patch(path, json={"expires_at": 5})).json()["state"] == "expired"
    back = (await client.patch(path, json={"expires_at": None})).json()
    assert (back["state"], back["expires_at"]) == ("current", None)
    same = (await client.patch(path, json={"about": "Jack", "metadata": {"a": 1}})).json()
    assert (same["about"], same["metadata"]) == ("Jack", {"a": 1})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"[]", None),
        (b'{"text": null}', "text"),
        (b'{"state": "expired"}', "state"),
        (b'{"state": 1}', "state"),
        (b'{"kind": "fact"}', "kind"),
        (b'{"valid_from": 1}', "valid_from"),
    ],
)
async def test_a_wrong_change_is_refused_by_name(
    site: Site, client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    await learned(site, fact("boat"))
    response = await client.patch(f"{USER}/fact_boat", content=body)
    assert response.status_code == 400 and error_of(response)["param"] == param
    assert (await memories(client))[0]["version"] == 1


async def test_a_wish_is_not_changed(site: Site, client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("Always answer in French.", "Oui."), user="kai")
    await index(site.store, SessionKey(KAI.tenant, "s"))
    (wish,) = await memories(client)
    response = await client.patch(f"{USER}/{wish['id']}", json={"text": "x"})
    assert response.status_code == 400


# Removing


async def test_a_fact_is_removed_for_good(site: Site, client: httpx.AsyncClient) -> None:
    await learned(site, fact("boat"), fact("dog", state="superseded", superseded_by="fact_boat"))
    path = f"{USER}/fact_boat"
    gone = await client.delete(path)
    assert gone.json() == {"object": "memory.deleted", "id": "fact_boat", "deleted": True}
    for again in (
        await client.get(path),
        await client.delete(path),
        await client.patch(path, json={}),
    ):
        assert again.status_code == 404
        assert error_of(again)["code"] == "memory_not_found"
    (left,) = await memories(client, state="superseded")
    assert (left["text"], left["superseded_by"]) == ("The user has a dog.", None)
    assert (await fact_store(site).card(KAI)).lines == ()


# Search


async def search(client: httpx.AsyncClient, query: str, **more: Any) -> list[dict[str, Any]]:
    response = await client.post(f"{USER}/search", json={"query": query, **more})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def test_facts_are_found_beside_what_was_said(site: Site, client: httpx.AsyncClient) -> None:
    await learned(
        site,
        fact("boat", "The user has a boat called Marlin."),
        fact("cat", "The user has a cat called Marlin.", state="quarantined"),
        fact("soup", "The user likes soup."),
    )
    await seed(client, "s", *talk("I painted Marlin, my boat.", "Fine."), user="kai")
    await index(site.store, SessionKey(KAI.tenant, "s"))
    found = await search(client, "What is the boat Marlin?")
    assert {one["kind"] for one in found} == {"fact", "passage"}
    assert all(set(one) >= FIELDS for one in found)
    facts = [one for one in found if one["kind"] == "fact"]
    assert [one["id"] for one in facts] == ["fact_boat"] and 0 < facts[0]["score"] <= 1
    assert {one["kind"] for one in await search(client, "Marlin", kinds=["passage"])} == {"passage"}
    assert {one["kind"] for one in await search(client, "Marlin", kinds=["fact"])} == {"fact"}
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)


async def test_a_search_is_filtered_by_fields(site: Site, client: httpx.AsyncClient) -> None:
    await learned(
        site,
        fact("boat", metadata={"team": "a"}),
        fact("boat2", "Jack has a boat.", about="Jack", metadata={"team": "b"}, origin="saved"),
    )

    async def found(**wanted: Any) -> list[str]:
        return [one["id"] for one in await search(client, "boat", kinds=["fact"], filter=wanted)]

    assert set(await found()) == {"fact_boat", "fact_boat2"}
    assert await found(about="user") == ["fact_boat"]
    assert await found(metadata={"team": "b"}) == ["fact_boat2"]
    assert await found(origin={"$ne": "saved"}) == ["fact_boat"]
    assert await found(about="Jack", session_id="s") == ["fact_boat2"]
    assert await found(nonsense="x") == []
    bad = {"query": "boat", "filter": {"about": {"$like": "x"}}}
    assert (await client.post(f"{USER}/search", json=bad)).status_code == 400


# Forgetting


async def forget(client: httpx.AsyncClient, session: str, query: str = "", **body: Any) -> Any:
    response = await client.post(f"{SESSIONS}/{session}/forget{query}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_what_was_learned_from_a_session_is_forgotten_with_a_receipt(
    site: Site, client: httpx.AsyncClient
) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."), user="kai")
    other = Source(session="t", message="t.0", exchange="t", at=2000.0)
    both = fact("dog")
    both = replace(both, sources=(*both.sources, other))
    await learned(site, fact("boat"), both, fact("cat", session="t"))
    rehearsed = await forget(client, "s", dry_run=True)
    assert len(await memories(client)) == 3
    receipt = await forget(client, "s")
    assert {**rehearsed, "dry_run": False} == receipt
    assert (receipt["object"], receipt["session_id"]) == ("memory.forgotten", "s")
    assert receipt["exchange_id"] is None
    assert {(one["id"], one["kind"], one["action"], one["text"]) for one in receipt["data"]} == {
        ("fact_boat", "fact", "deleted", "The user has a boat."),
        ("fact_dog", "fact", "source_removed", "The user has a dog."),
    }
    left = await memories(client)
    assert {one["id"] for one in left} == {"fact_dog", "fact_cat"}
    assert all(source["session_id"] == "t" for one in left for source in one["sources"])
    assert (await forget(client, "s"))["data"] == []
    messages = (await client.get(f"{SESSIONS}/s/messages")).json()["data"]
    assert len(messages) == 2


async def test_one_exchange_is_forgotten(site: Site, client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."), user="kai")
    await learned(site, fact("boat"))
    assert (await forget(client, "s", exchange_id="other"))["data"] == []
    receipt = await forget(client, "s", exchange_id="ex")
    assert (receipt["exchange_id"], len(receipt["data"])) == ("ex", 1)
    assert await memories(client) == []


async def test_a_session_that_is_gone_is_forgotten_by_its_user(
    site: Site, client: httpx.AsyncClient
) -> None:
    await learned(site, fact("boat"))
    missing = await client.post(f"{SESSIONS}/s/forget")
    assert (missing.status_code, error_of(missing)["code"]) == (404, "session_not_found")
    assert (await forget(client, "s", "?user=eve"))["data"] == []
    assert len((await forget(client, "s", "?user=kai"))["data"]) == 1
    assert await memories(client) == []


async def test_every_feature_passes_over_what_is_forgotten(
    site: Site, client: httpx.AsyncClient
) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."), user="kai")
    await forget(client, "s")
    found = await site.store.namespaces(KAI, ("users", "kai", "learned"), None, 99)
    assert {namespace[3] for namespace in found} == set(Kinds().reading)


async def test_nothing_was_learned_from_a_session_of_nobody(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."))
    assert (await forget(client, "s"))["data"] == []


@pytest.mark.parametrize(
    ("body", "param"),
    [(b"[]", None), (b'{"dry_run": 1}', "dry_run"), (b'{"exchange_id": 7}', "exchange_id")],
)
async def test_a_wrong_forgetting_is_refused_by_name(
    site: Site, client: httpx.AsyncClient, body: bytes, param: str | None
) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."), user="kai")
    await learned(site, fact("boat"))
    response = await client.post(f"{SESSIONS}/s/forget", content=body)
    assert response.status_code == 400 and error_of(response)["param"] == param
    assert len(await memories(client)) == 1


# Whose


async def test_another_key_and_another_user_see_and_change_nothing(
    site: Site, client: httpx.AsyncClient
) -> None:
    await seed(client, "s", *talk("I have a boat.", "Fine."), user="kai")
    await learned(site, fact("boat"))
    path = f"{USER}/fact_boat"
    async with site.client("bob") as other:
        assert await memories(other) == [] == await search(other, "boat")
        assert (await other.get(path)).status_code == 404
        assert (await other.patch(path, json={"text": "x"})).status_code == 404
        assert (await other.delete(path)).status_code == 404
        assert (await other.post(f"{SESSIONS}/s/forget")).status_code == 404
        assert (await forget(other, "s", "?user=kai"))["data"] == []
    eve = USER.replace("kai", "eve")
    assert (await client.get(f"{eve}/fact_boat")).status_code == 404
    assert (await client.get(eve)).json()["data"] == []
    assert len(await memories(client)) == 1


async def test_the_administrator_says_whose_facts_are_meant(
    site: Site, client: httpx.AsyncClient
) -> None:
    await learned(site, fact("boat"))
    async with site.client(ADMIN_KEY) as admin:
        assert (await admin.get(USER)).status_code == 400
        assert len(await memories(admin, tenant=KAI.tenant)) == 1
        assert (await admin.get(USER, params={"tenant": "other"})).status_code == 404


async def test_without_a_key_of_their_own_nobody_writes_from_elsewhere(site: Site) -> None:
    async with site.client(peer="192.0.2.1") as stranger:
        for response in (
            await stranger.post(USER, json={"text": "x"}),
            await stranger.patch(f"{USER}/fact_x", json={"text": "x"}),
            await stranger.post(f"{SESSIONS}/s/forget"),
        ):
            assert response.status_code == 401
