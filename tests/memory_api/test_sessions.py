"""Sessions and exchanges over the memory API."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import msgspec
import pytest

from proxy.memory.model import Injection, SessionKey
from proxy.memory.recording.spool import Spool
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, Site, error_of, said, seed, talk
from tests.support.store.commits import chat, draft, record

ALICE = digest_of(b"alice")


async def test_a_session_has_all_its_fields(client: httpx.AsyncClient) -> None:
    await seed(client, "s", said("system", "Be brief."), *talk("hello", "hi"), user="ann")

    session = (await client.get(f"{SESSIONS}/s")).json()

    created_at, last_active_at = session.pop("created_at"), session.pop("last_active_at")
    assert 1.7e9 < created_at <= last_active_at < 1e11
    tokens = session.pop("tokens")
    assert tokens > 2
    assert session == {
        "object": "session",
        "id": "s",
        "user_id": "ann",
        "messages": 2,
        "system": said("system", "Be brief."),
        "system_messages": [said("system", "Be brief.")],
        "summary": None,
        "window_start": 0,
        "windows": {},
        "end": 2,
        "title": None,
        "metadata": {},
        "ttl": 0,
    }


async def test_several_system_messages_are_all_shown(client: httpx.AsyncClient) -> None:
    leading = [said("system", "One."), said("developer", "Two.")]
    await seed(client, "s", *leading, *talk("hello"))

    session = (await client.get(f"{SESSIONS}/s")).json()

    assert session["system"] == leading[0]
    assert session["system_messages"] == leading


async def test_an_unknown_session_is_not_found(client: httpx.AsyncClient) -> None:
    for method, path in [
        ("GET", "nobody"),
        ("DELETE", "nobody"),
        ("GET", "nobody/messages"),
        ("GET", "nobody/exchanges/ex"),
    ]:
        response = await client.request(method, f"{SESSIONS}/{path}")
        assert response.status_code == 404, path
        assert error_of(response)["code"] == "session_not_found"

    response = await client.post(f"{SESSIONS}/nobody/context", json={"messages": talk("hi")})
    assert response.status_code == 404
    assert error_of(response)["code"] == "session_not_found"


@pytest.mark.parametrize(
    "id",
    [
        pytest.param("a/b", id="slash"),
        pytest.param("a%2Fb", id="what looks encoded"),
        pytest.param("a?b#c&d=e+f", id="what means something in URLs"),
        pytest.param("~!\"'*<>{}|\\^`", id="what hardly anybody uses"),
        pytest.param("messages", id="the name of a route"),
        pytest.param("x/messages", id="the path of a route"),
        pytest.param("x" * 256, id="256 characters"),
    ],
)
async def test_ids_in_paths_may_hold_anything_visible(client: httpx.AsyncClient, id: str) -> None:
    path = f"{SESSIONS}/{quote(id, safe='')}"
    created = await client.post(f"{path}/messages", json={"messages": talk("hello")})
    assert created.status_code == 200

    assert (await client.get(path)).json()["id"] == id
    assert len((await client.get(f"{path}/messages")).json()["data"]) == 1
    assert [s["id"] for s in (await client.get(SESSIONS)).json()["data"]] == [id]
    assert (await client.delete(path)).json()["id"] == id


@pytest.mark.parametrize("segment", ["%20", "a%00", "%c3%a9", "x" * 257, "%2E%2e", "a%0ab"])
async def test_an_id_that_no_session_can_have_is_refused(
    client: httpx.AsyncClient, segment: str
) -> None:
    response = await client.get(f"{SESSIONS}/{segment}/messages")
    assert response.status_code == 400
    assert error_of(response)["code"] == "invalid_session_id"


async def test_deleting_removes_a_session_for_good(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))

    response = await client.delete(f"{SESSIONS}/s")

    assert response.status_code == 200
    told = response.json()
    assert (told["object"], told["id"], told["deleted"]) == ("session.deleted", "s", True)
    assert (await client.get(f"{SESSIONS}/s")).status_code == 404
    assert (await client.get(f"{SESSIONS}/s/messages")).status_code == 404
    assert (await client.delete(f"{SESSIONS}/s")).status_code == 404


async def test_nothing_is_added_before_what_waits_in_the_spool(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello"))
    key = SessionKey(ALICE, "s")
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked == key)

    response = await client.post(f"{SESSIONS}/s/messages", json={"messages": talk("more")})
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
    assert (await client.get(f"{SESSIONS}/s")).json()["messages"] == 1


async def test_sessions_come_newest_first_and_page_by_page(
    client: httpx.AsyncClient, store: Backend
) -> None:
    for n in range(5):
        await store.commit(SessionKey(ALICE, f"s&{n}+"), chat(f"e{n}", at=1000.0 + n))

    seen: list[str] = []
    url, pages = f"{SESSIONS}?limit=2", 0
    while True:
        page = (await client.get(url)).json()
        assert page["object"] == "list"
        seen += [session["id"] for session in page["data"]]
        pages += 1
        if not page["has_more"]:
            break
        url = f"{SESSIONS}?limit=2&after={page['next']}"

    assert page["next"] is None
    assert pages == 3
    assert seen == ["s&4+", "s&3+", "s&2+", "s&1+", "s&0+"]


async def test_sessions_can_be_asked_for_by_user(client: httpx.AsyncClient) -> None:
    await seed(client, "a", *talk("hello"), user="ann")
    await seed(client, "b", *talk("hello"), user="bob")
    await seed(client, "c", *talk("hello"))

    listed = (await client.get(f"{SESSIONS}?user=bob")).json()

    assert [session["id"] for session in listed["data"]] == ["b"]
    assert (await client.get(f"{SESSIONS}?user=carl")).json() == {
        "object": "list",
        "data": [],
        "has_more": False,
        "next": None,
    }


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("after=nothing", "after"),
        ("after=%C3%A9", "after"),
        ("after=!!", "after"),
        ("after=bmFuOng", "after"),
        ("after=LWluZjp4", "after"),
        ("user=", "user"),
        ("user=a%20b", "user"),
    ],
)
async def test_a_wrong_query_is_refused_by_name(
    client: httpx.AsyncClient, query: str, param: str
) -> None:
    response = await client.get(f"{SESSIONS}?{query}")
    assert response.status_code == 400
    assert error_of(response)["param"] == param


async def test_an_exchange_says_what_memory_did(client: httpx.AsyncClient, store: Backend) -> None:
    did = Injection(
        status="applied",
        reason="spooled",
        messages=3,
        tokens=40,
        evicted_messages=2,
        evicted_tokens=20,
        duration_ms=1.5,
    )
    commit = record("ex_1", draft("ex_1", 0), draft("ex_1", 1, "assistant"), at=1234.5, model="m")
    usage = b'{"total_tokens": 7, "x": 1.0}'
    exchange = msgspec.structs.replace(
        commit.exchange, memory=did, usage=usage, finish_reason="stop"
    )
    await store.commit(SessionKey(ALICE, "s"), msgspec.structs.replace(commit, exchange=exchange))

    response = await client.get(f"{SESSIONS}/s/exchanges/ex_1")

    assert response.status_code == 200
    assert response.json() == {
        "object": "session.exchange",
        "id": "ex_1",
        "model": "m",
        "profile": "default",
        "status": 200,
        "incomplete": False,
        "finish_reason": "stop",
        "usage": {"total_tokens": 7, "x": 1.0},
        "memory": {
            "status": "applied",
            "reason": "spooled",
            "messages": 3,
            "tokens": 40,
            "recalled": [],
            "tools": [],
            "evicted": {"messages": 2, "tokens": 20, "reason": None},
            "duration_ms": 1.5,
            "breakdown": None,
            "shown": [],
            "shown_cut": 0,
            "resent": [],
        },
        "message_ids": ["ex_1.0", "ex_1.1"],
        "follows": None,
        "created_at": 1234.5,
    }


async def test_an_unknown_exchange_is_not_found(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    for name in ("ex_none", "%FF%00", "a%2Fb"):
        response = await client.get(f"{SESSIONS}/s/exchanges/{name}")
        assert response.status_code == 404
        assert error_of(response)["code"] == "exchange_not_found"
