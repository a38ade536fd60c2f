"""Forks over the memory API."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from proxy.memory.archive import Page, PlacedExchange, SessionArchive
from proxy.memory.erasure import Subject
from proxy.memory.history.reading import read_session
from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool
from proxy.memory_api.conversations import branches
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, said, seed, talk
from tests.support.store.commits import chat, draft, record, summary

TENANT = digest_of(b"alice")
KEY = SessionKey(TENANT, "s")
URL = f"{SESSIONS}/s/fork"


async def fork(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.post(URL, json={"id": "t", **fields})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    assert (await client.get(f"{SESSIONS}/t")).json() == made
    return made


async def archived(store: Backend, session: str) -> SessionArchive:
    found = await read_session(store, SessionKey(TENANT, session))
    assert found is not None
    return found


async def texts(client: httpx.AsyncClient, session: str, state: str = "active") -> list[str]:
    listed = await client.get(f"{SESSIONS}/{session}/messages", params={"state": state})
    return [item["message"]["content"] for item in listed.json()["data"]]


async def test_a_fork_has_everything_and_leaves_the_session_as_it_is(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", said("system", "Be brief."), *talk("a", "b", "c"), user="ann")
    await store.commit(KEY, chat("x", superseded=()))
    await client.patch(f"{SESSIONS}/s", json={"title": "A trip", "metadata": {"a": 1}, "ttl": 99})
    before = await archived(store, "s")

    made = await fork(client)

    assert await archived(store, "s") == before
    old = (await client.get(f"{SESSIONS}/s")).json()
    own = ("id", "created_at", "last_active_at")
    assert {k: v for k, v in made.items() if k not in own} == {
        k: v for k, v in old.items() if k not in own
    }
    assert made["last_active_at"] >= old["last_active_at"]
    copy = await archived(store, "t")
    assert (copy.lines, copy.exchanges) == (before.lines, before.exchanges)
    messages = (await client.get(f"{SESSIONS}/s/messages")).json()
    assert (await client.get(f"{SESSIONS}/t/messages")).json() == messages


async def test_large_sessions_are_forked_one_after_the_other(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "MAX_HELD_BYTES", 1)
    await seed(client, "s", *talk("a", "b"))
    restore, at_once, most = store.restore, 0, 0

    async def counted(key: SessionKey, archived: SessionArchive, since: float) -> bool:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return await restore(key, archived, since)

    monkeypatch.setattr(store, "restore", counted)
    made = await asyncio.gather(*(client.post(URL, json={"id": f"t{n}"}) for n in range(4)))
    assert [response.status_code for response in made] == [201] * 4
    assert most == 1
    assert await texts(client, "t3") == ["a", "b"]


async def test_a_session_that_is_too_large_is_not_forked(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "MAX_HELD_BYTES", 1)
    monkeypatch.setattr(branches, "MAX_FORK_BYTES", 1)
    await seed(client, "s", *talk("a", "b"))
    for key in ({}, {"idempotency-key": "k"}):
        response = await client.post(URL, json={"id": "t"}, headers=key)
        assert response.status_code == 413
        assert error_of(response)["code"] == "session_too_large"
    assert (await client.get(f"{SESSIONS}/t")).status_code == 404


async def test_a_fork_under_way_brings_nobody_back_who_is_erased(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("a", "b"), user="ann")
    real = store.restore

    async def restore(key: SessionKey, archived: SessionArchive, since: float) -> bool:
        receipt = await client.delete("/memory/v1/users/ann")
        assert receipt.json()["counts"]["sessions"] == 1
        return await real(key, archived, since)

    monkeypatch.setattr(store, "restore", restore)
    response = await client.post(URL, json={"id": "t"})
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    assert (await client.get(SESSIONS)).json()["data"] == []


async def test_a_session_that_is_deleted_while_it_is_forked_leaves_no_part_of_it(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("a", "b"))
    real = store.exchanges

    async def exchanges(*asked: Any) -> Page[PlacedExchange]:
        await store.delete(KEY)
        return await real(*asked)

    monkeypatch.setattr(store, "exchanges", exchanges)
    response = await client.post(URL, json={"id": "t"})
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    assert (await client.get(SESSIONS)).json()["data"] == []


async def test_a_name_that_is_being_erased_is_to_be_asked_for_again(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("a", "b"))
    await store.mark([Subject(TENANT, session="t")], time.time() + 60)
    response = await client.post(URL, json={"id": "t"})
    assert (response.status_code, error_of(response)["code"]) == (503, "memory_unavailable")
    await store.unmark(Subject(TENANT, session="t"))
    await fork(client)


async def test_each_goes_on_by_itself(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("a", "b"))
    await fork(client)
    one = await seed(client, "s", *talk("mine"))
    other = await seed(client, "t", *talk("theirs"))
    assert [one[0]["seq"], other[0]["seq"]] == [3, 3]
    assert await texts(client, "s") == ["a", "b", "mine"]
    assert await texts(client, "t") == ["a", "b", "theirs"]
    await client.delete(f"{SESSIONS}/s")
    assert await texts(client, "t") == ["a", "b", "theirs"]


async def test_a_fork_ends_with_the_message_that_is_named(client: httpx.AsyncClient) -> None:
    first = await seed(client, "s", *talk("a", "b"))
    await seed(client, "s", *talk("c", "d"))

    made = await fork(client, until=first[1]["id"], title="Another way")

    assert await texts(client, "t") == ["a", "b"]
    assert (made["messages"], made["end"], made["title"]) == (2, 2, "Another way")
    exchanges = (await client.get(f"{SESSIONS}/t/exchanges")).json()["data"]
    assert [each["message_ids"] for each in exchanges] == [[x["id"] for x in first]]
    assert (await client.get(f"{SESSIONS}/s")).json()["title"] is None
    more = await seed(client, "t", *talk("e"))
    assert more[0]["seq"] == 3


async def test_a_fork_within_an_exchange_has_a_part_of_it(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("a", "b", "c", "d"))
    await fork(client, until=created[2]["id"])
    assert await texts(client, "t") == ["a", "b", "c"]
    exchange = (await client.get(f"{SESSIONS}/t/exchanges")).json()["data"][0]
    assert exchange["message_ids"] == [x["id"] for x in created[:3]]
    assert (await seed(client, "t", *talk("e")))[0]["seq"] > 3


async def test_a_fork_at_a_superseded_message_has_its_branch(
    client: httpx.AsyncClient, store: Backend
) -> None:
    a = await seed(client, "s", *talk("a", "b"))
    old = await seed(client, "s", *talk("old", "older"))
    await client.post(f"{SESSIONS}/s/rewind", json={"turns": 1})
    await seed(client, "s", *talk("new", "newer"))

    made = await fork(client, until=old[1]["id"])

    assert await texts(client, "t") == ["a", "b", "old", "older"]
    assert made["messages"] == 4
    assert await texts(client, "s") == ["a", "b", "new", "newer"]
    assert [x["message"]["content"] for x in a] == ["a", "b"]


async def test_a_fork_keeps_what_was_superseded_before(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("a", "b"))
    await seed(client, "s", *talk("old", "older"))
    await client.post(f"{SESSIONS}/s/rewind", json={"turns": 1})
    new = await seed(client, "s", *talk("new", "newer"))
    await fork(client, until=new[0]["id"])
    assert await texts(client, "t") == ["a", "b", "new"]
    assert await texts(client, "t", "superseded") == ["old", "older"]


async def test_versions_of_the_summary_that_cover_what_is_left_out_are_left_out(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for id in "abcd":
        await store.commit(KEY, chat(id))
    assert await store.put_summary(KEY, summary(3, "Turn 1.", seen=2), 0, None)
    assert await store.put_summary(KEY, summary(5, "Turns 1 and 2.", seen=8), 1, None)

    made = await fork(client, until="a.1")
    assert made["summary"]["text"] == "Turn 1."
    await client.post(URL, json={"id": "u", "until": "a.0"})
    assert (await client.get(f"{SESSIONS}/u")).json()["summary"] is None
    await client.post(URL, json={"id": "v"})
    versions = (await client.get(f"{SESSIONS}/v/summaries")).json()["data"]
    assert [each["text"] for each in versions] == ["Turns 1 and 2.", "Turn 1."]


async def test_what_joins_an_old_turn_of_a_fork_later_is_not_covered_by_its_summary(
    client: httpx.AsyncClient, store: Backend
) -> None:
    calling = draft("a", 1, "assistant", calls=("c1",))
    await store.commit(KEY, record("a", draft("a", 0), calling))
    for id in "bcd":
        await store.commit(KEY, chat(id))
    assert await store.put_summary(KEY, summary(5, "Turns 1 and 2.", seen=8), 0, None)

    await fork(client, until="b.1")

    late = record("e", draft("e", 0, "tool", answers="c1", turn="a.0"))
    await store.commit(SessionKey(TENANT, "t"), late)
    copy = await archived(store, "t")
    assert copy.summaries
    assert copy.lines[-1].position.turn == 1
    assert not copy.summaries[0].covers(copy.lines[-1].position)


async def test_a_fork_belongs_to_the_same_user(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("a"), user="ann")
    assert (await fork(client))["user_id"] == "ann"
    listed = (await client.get(SESSIONS, params={"user": "ann"})).json()["data"]
    assert [each["id"] for each in listed] == ["t", "s"]


async def test_an_id_that_is_taken_stays_with_its_session(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("a"))
    await seed(client, "t", *talk("theirs"))
    for id in ("t", "s"):
        response = await client.post(URL, json={"id": id})
        assert (response.status_code, error_of(response)["code"]) == (409, "session_exists")
    assert await texts(client, "t") == ["theirs"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_session_id"),
        ({"id": ""}, 400, "invalid_session_id"),
        ({"id": ".."}, 400, "invalid_session_id"),
        ({"id": "a b"}, 400, "invalid_session_id"),
        ({"id": "é"}, 400, "invalid_session_id"),
        ({"id": "t", "more": 1}, 400, "invalid_value"),
        ({"id": "t", "title": ""}, 400, "invalid_value"),
        ({"id": "t", "until": 3}, 400, "invalid_value"),
        ({"id": "t", "until": "x.0"}, 404, "message_not_found"),
    ],
)
async def test_a_wrong_fork_is_refused(
    client: httpx.AsyncClient, body: Any, status: int, code: str
) -> None:
    await seed(client, "s", *talk("a"))
    response = await client.post(URL, json=body)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert (await client.get(f"{SESSIONS}/t")).status_code == 404


async def test_another_tenants_session_is_not_forked(client: httpx.AsyncClient, site: Site) -> None:
    await seed(client, "s", *talk("a"))
    async with site.client("eve") as eve:
        response = await eve.post(URL, json={"id": "t"})
        assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
        assert (await eve.get(f"{SESSIONS}/t")).status_code == 404


@pytest.mark.parametrize("session", ["s", "t"])
async def test_nothing_is_forked_while_exchanges_wait_in_the_spool(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    await seed(client, "s", *talk("a"))
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked.session == session)
    response = await client.post(URL, json={"id": "t"})
    assert response.status_code == 503
    assert (await client.get(f"{SESSIONS}/t")).status_code == 404
