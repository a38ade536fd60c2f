"""Idempotency-Key on what creates something."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from proxy.memory.erasure import Subject
from proxy.memory.items import REQUESTS, ItemOwner
from proxy.memory.model import Commit, Outcome, SessionKey
from proxy.memory.store import StoreError
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, seed, talk

TENANT = digest_of(b"alice")
MESSAGES = f"{SESSIONS}/s/messages"
MEMORIES = "/memory/v1/users/ann/memories"
FORK = f"{SESSIONS}/s/fork"

ROUTES = [
    pytest.param(MESSAGES, {"messages": talk("hello", "hi")}, id="messages"),
    pytest.param(MEMORIES, {"text": "Likes boats."}, id="memories"),
    pytest.param(FORK, {"id": "t"}, id="fork"),
]
OTHERS: Mapping[str, dict[str, Any]] = {
    MESSAGES: {"messages": talk("other")},
    MEMORIES: {"text": "Likes trains."},
    FORK: {"id": "u"},
}


def keyed(key: str = "k1") -> dict[str, str]:
    return {"idempotency-key": key}


async def everything(client: httpx.AsyncClient) -> list[Any]:
    urls = (SESSIONS, MESSAGES, MEMORIES, f"{SESSIONS}/t", f"{SESSIONS}/u")
    return [(await client.get(url)).json() for url in urls]


@pytest.mark.parametrize(("url", "body"), ROUTES)
async def test_the_same_key_and_body_again_create_nothing(
    client: httpx.AsyncClient, url: str, body: Any
) -> None:
    await seed(client, "s", *talk("first"))
    first = await client.post(url, json=body, headers=keyed())
    assert first.status_code in (200, 201), first.text
    there = await everything(client)
    for _ in range(2):
        again = await client.post(url, json=body, headers=keyed())
        assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert await everything(client) == there


@pytest.mark.parametrize(("url", "body"), ROUTES)
async def test_the_same_key_with_another_body_is_refused(
    client: httpx.AsyncClient, url: str, body: Any
) -> None:
    await seed(client, "s", *talk("first"))
    await client.post(url, json=body, headers=keyed())
    there = await everything(client)
    response = await client.post(url, json=OTHERS[url], headers=keyed())
    assert (response.status_code, error_of(response)["code"]) == (422, "idempotency_key_reused")
    assert await everything(client) == there
    assert (await client.post(url, json=OTHERS[url], headers=keyed("k2"))).status_code < 300


@pytest.mark.parametrize(("one", "other"), [("dup~1", "dup%7E1"), ("a:b", "a%3ab"), ("c", "%63")])
async def test_the_same_path_in_another_spelling_is_the_same_request(
    client: httpx.AsyncClient, one: str, other: str
) -> None:
    body = {"messages": talk("hello")}
    for session in (one, other):
        url = f"{SESSIONS}/{session}/messages"
        assert (await client.post(url, json=body, headers=keyed())).status_code == 200
        assert len((await client.get(url)).json()["data"]) == 1


async def test_a_slash_in_an_id_makes_another_path(client: httpx.AsyncClient) -> None:
    body = {"messages": talk("hello")}
    for session in ("a%2Fb", "a%252Fb", "a"):
        url = f"{SESSIONS}/{session}/messages"
        assert (await client.post(url, json=body, headers=keyed())).status_code == 200
    assert len((await client.get(SESSIONS)).json()["data"]) == 3


@pytest.mark.parametrize(("url", "body"), ROUTES[:2])
async def test_without_a_key_each_request_is_one_of_its_own(
    client: httpx.AsyncClient, url: str, body: Any
) -> None:
    await seed(client, "s", *talk("first"))
    first = (await client.post(url, json=body)).json()
    assert (await client.post(url, json=body)).json() != first


@pytest.mark.parametrize(("url", "body"), ROUTES)
async def test_several_attempts_at_once_are_one(
    client: httpx.AsyncClient, url: str, body: Any
) -> None:
    await seed(client, "s", *talk("first"))
    answers = await asyncio.gather(
        *(client.post(url, json=body, headers=keyed()) for _ in range(5))
    )
    right = [answer.json() for answer in answers if answer.status_code < 300]
    assert right
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    then = await client.post(url, json=body, headers=keyed())
    assert then.json() in right
    active = (await client.get(MESSAGES)).json()["data"]
    assert len(active) == (3 if url == MESSAGES else 1)


async def test_what_was_erased_since_does_not_come_back_with_its_key(
    client: httpx.AsyncClient, store: Backend
) -> None:
    """The first attempt got nowhere, for the session was being erased."""
    body, at = {"messages": talk("hello")}, time.time()
    subject = Subject(TENANT, session="s")
    await store.mark([subject], at + 1000)
    for headers in (keyed(), keyed(), {}):
        response = await client.post(MESSAGES, json=body, headers=headers)
        assert (response.status_code, error_of(response)["code"]) == (503, "memory_unavailable")
    await store.mark([subject], at - 1)
    assert (await client.post(MESSAGES, json=body, headers=keyed())).status_code == 200
    await store.delete(SessionKey(TENANT, "s"))
    await store.mark([subject], at + 1000)
    assert (await client.post(MESSAGES, json=body, headers=keyed())).status_code == 410


async def test_a_key_belongs_to_its_tenant_and_its_path(
    client: httpx.AsyncClient, site: Site
) -> None:
    body = {"messages": talk("hello")}
    one = (await client.post(MESSAGES, json=body, headers=keyed())).json()
    two = await client.post(f"{SESSIONS}/t/messages", json=OTHERS[MESSAGES], headers=keyed())
    assert two.status_code == 200
    async with site.client("eve") as eve:
        theirs = await eve.post(MESSAGES, json=OTHERS[MESSAGES], headers=keyed())
        assert theirs.status_code == 200
        assert theirs.json()["data"][0]["id"] not in (one["data"][0]["id"], two.json())


@pytest.mark.parametrize(("url", "body"), ROUTES)
async def test_what_was_deleted_since_is_not_created_again(
    client: httpx.AsyncClient, url: str, body: Any
) -> None:
    await seed(client, "s", *talk("first"))
    first = (await client.post(url, json=body, headers=keyed())).json()
    if url == MEMORIES:
        await client.delete(f"{MEMORIES}/{first['id']}")
    elif url == FORK:
        await client.delete(f"{SESSIONS}/t")
    else:
        for message in first["data"]:
            await client.delete(f"{MESSAGES}/{message['id']}")
    there = await everything(client)
    response = await client.post(url, json=body, headers=keyed())
    assert (response.status_code, error_of(response)["code"]) == (410, "idempotency_key_spent")
    assert await everything(client) == there
    assert (await client.post(url, json=body, headers=keyed("k2"))).status_code < 300


async def test_a_seed_that_was_deleted_is_sown_again_with_another_key(
    client: httpx.AsyncClient,
) -> None:
    body = {"messages": talk("hello", "hi")}
    assert (await client.post(MESSAGES, json=body, headers=keyed())).status_code == 200
    await client.delete(f"{SESSIONS}/s")
    response = await client.post(MESSAGES, json=body, headers=keyed())
    assert (response.status_code, error_of(response)["code"]) == (410, "idempotency_key_spent")
    assert (await client.post(MESSAGES, json=body, headers=keyed("k2"))).status_code == 200


async def test_another_session_of_the_forks_id_is_not_taken_for_it(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "s", *talk("first"))
    assert (await client.post(FORK, json={"id": "t"}, headers=keyed())).status_code == 201
    await client.delete(f"{SESSIONS}/t")
    await seed(client, "t", *talk("another"))
    response = await client.post(FORK, json={"id": "t"}, headers=keyed())
    assert (response.status_code, error_of(response)["code"]) == (410, "idempotency_key_spent")


async def test_an_attempt_that_the_store_broke_off_is_made_up_for(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = store.commit, 0

    async def broken(key: SessionKey, commit: Commit) -> Outcome:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise StoreError("gone")
        outcome = await real(key, commit)
        if calls == 2:
            raise StoreError("gone after it had written")
        return outcome

    monkeypatch.setattr(store, "commit", broken)
    body = {"messages": talk("hello", "hi")}
    answers = [await client.post(MESSAGES, json=body, headers=keyed()) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [503, 503, 200, 200]
    assert answers[2].json() == answers[3].json() == (await client.get(MESSAGES)).json()


async def test_what_was_refused_may_come_again_with_its_key(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("first"))
    await seed(client, "t", *talk("theirs"))
    wrong = [{"messages": []}, {"messages": [1]}]
    for body in wrong:
        assert (await client.post(MESSAGES, json=body, headers=keyed())).status_code == 400
    right = await client.post(MESSAGES, json={"messages": talk("a")}, headers=keyed())
    assert right.status_code == 200
    await seed(client, "u2", *talk("theirs"), user="bob")
    for user, status in (("eve", 403), ("bob", 200)):
        theirs = {"messages": talk("a"), "user": user}
        response = await client.post(f"{SESSIONS}/u2/messages", json=theirs, headers=keyed())
        assert response.status_code == status
    for body in ({"id": "t"}, {"id": "u", "until": "x.0"}, {"id": "t"}):
        assert (await client.post(FORK, json=body, headers=keyed())).status_code in (404, 409)
    assert (await client.post(FORK, json={"id": "u"}, headers=keyed())).status_code == 201


@pytest.mark.parametrize(("url", "body"), ROUTES)
@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä".encode("latin-1")])
async def test_a_key_that_is_none_is_refused(
    client: httpx.AsyncClient, url: str, body: Any, key: str | bytes
) -> None:
    await seed(client, "s", *talk("first"))
    raw = key if isinstance(key, bytes) else key.encode()
    response = await client.post(url, json=body, headers={b"idempotency-key": raw})
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_header")
    assert error_of(response)["param"] == "Idempotency-Key"


async def test_what_is_kept_says_nothing_of_what_was_sent(
    client: httpx.AsyncClient, store: Backend
) -> None:
    body = {"messages": talk("my secret is swordfish")}
    for number in range(2):
        await client.post(MESSAGES, json=body, headers=keyed(f"secret-key-{number}"))
    page = await store.items(ItemOwner(TENANT), (REQUESTS,), None, 10)
    values = [str(bytes(item.value)) for item in page.items]
    assert len(set(values)) == 2, "the same body is not seen to be the same"
    for item in page.items:
        assert item.expires_at is not None and 86_000 < item.expires_at - item.created_at < 86_401
        kept = f"{item.namespace} {item.key} {bytes(item.value)!r}"
        assert not any(word in kept for word in ("swordfish", "secret", "/s/"))


async def test_nobody_writes_there_by_hand(client: httpx.AsyncClient) -> None:
    item = {"namespace": [REQUESTS], "key": "x", "value": {}}
    response = await client.put("/memory/v1/store/items", json=item)
    assert (response.status_code, error_of(response)["code"]) == (409, "reserved_namespace")
