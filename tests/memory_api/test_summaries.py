"""A session's summary over the memory API: read, edited, forgotten, made anew."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from proxy.memory.archive import Session
from proxy.memory.model import LoadOptions, Position, SessionKey, Summary
from proxy.memory.recording.spool import Spool
from proxy.settings import Settings
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, seed, talk
from tests.support.store.commits import chat

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s"


@pytest.fixture
def settings() -> Settings:
    summary = {"enabled": True, "max_tokens": 20}
    longer = {"enabled": False, "max_tokens": 40}
    return Settings.model_validate(
        {
            "server": {"admin_key": ADMIN_KEY},
            "store": {"timeout": 5},
            "memory": {"summary": summary},
            "profiles": {"long": {"summary": longer}},
        }
    )


async def put(store: Backend, text: str, after: int) -> None:
    until = 2 * after + 3
    summary = Summary(
        text=text,
        version=0,
        until=Position(until, 0),
        seen=9,
        covers_until=until - 1,
        tokens=3,
        model="small",
        created_at=1000.0 + after,
    )
    assert await store.put_summary(KEY, summary, after, None)


async def edit(client: httpx.AsyncClient, summary: Any) -> httpx.Response:
    return await client.patch(URL, json={"summary": summary})


async def test_a_session_shows_the_summary_in_force(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("one", "two", "three", "four"))
    assert (await client.get(URL)).json()["summary"] is None
    await put(store, "First.", 0)
    await put(store, "Second.", 1)

    expected = {
        "text": "Second.",
        "version": 2,
        "covers_until": 4,
        "edited": False,
        "tokens": 3,
        "created_at": 1001.0,
    }
    assert (await client.get(URL)).json()["summary"] == expected
    assert (await client.get(SESSIONS)).json()["data"][0]["summary"] == expected


async def test_the_versions_are_listed_newest_first_and_page_by_page(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("one", "two"))
    for n in range(5):
        await put(store, f"Text {n}.", n)

    first = (await client.get(f"{URL}/summaries?limit=3")).json()
    assert [version["version"] for version in first["data"]] == [5, 4, 3]
    assert first["has_more"] is True
    assert first["data"][0] == {
        "object": "session.summary",
        "text": "Text 4.",
        "version": 5,
        "covers_until": 10,
        "edited": False,
        "tokens": 3,
        "created_at": 1004.0,
        "model": "small",
    }
    rest = (await client.get(f"{URL}/summaries?limit=3&after={first['next']}")).json()
    assert [version["version"] for version in rest["data"]] == [2, 1]
    assert (rest["has_more"], rest["next"]) == (False, None)


async def test_a_session_without_a_summary_has_no_versions(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("one"))
    listed = (await client.get(f"{URL}/summaries")).json()
    assert listed == {"object": "list", "data": [], "has_more": False, "next": None}


async def test_an_edit_is_a_version_of_the_same_coverage(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("one", "two"))
    await put(store, "Wrong.", 0)

    response = await edit(client, {"text": "Kai lives in Bern."})

    assert response.status_code == 200
    assert response.json()["object"] == "session"
    summary = response.json()["summary"]
    assert abs(summary.pop("created_at") - time.time()) < 60
    assert summary.pop("tokens") > 3
    assert summary == {
        "text": "Kai lives in Bern.",
        "version": 2,
        "covers_until": 2,
        "edited": True,
    }
    edited, before = await store.summaries(KEY)
    assert (edited.until, edited.seen, edited.model) == (before.until, before.seen, None)
    assert before.text == "Wrong."


async def test_an_edit_without_a_summary_covers_nothing_yet(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("one", "two"))

    response = await edit(client, {"text": " Kai lives in Bern.\n"})

    assert response.json()["summary"]["version"] == 1
    assert response.json()["summary"]["covers_until"] == 0
    (summary,) = await store.summaries(KEY)
    assert summary.text == " Kai lives in Bern.\n"
    assert not summary.covers(Position(1, 1))


async def test_an_edit_that_is_overtaken_is_made_on_the_newer_version(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("one", "two"))
    real, calls = store.session, 0

    async def overtaken(key: SessionKey) -> Session | None:
        nonlocal calls
        found = await real(key)
        calls += 1
        if calls == 1:
            await put(store, "Meanwhile.", 0)
        return found

    monkeypatch.setattr(store, "session", overtaken)
    response = await edit(client, {"text": "Mine."})

    assert response.json()["summary"]["version"] == 2
    assert response.json()["summary"]["covers_until"] == 2


async def test_an_edit_that_is_overtaken_again_and_again_is_to_be_tried_later(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*given: object, **named: object) -> bool:
        return False

    await seed(client, "s", *talk("one"))
    monkeypatch.setattr(store, "put_summary", never)
    response = await edit(client, {"text": "Mine."})
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"


async def test_null_forgets_all_versions(client: httpx.AsyncClient, store: Backend) -> None:
    await seed(client, "s", *talk("one", "two"))
    await put(store, "First.", 0)
    await put(store, "Second.", 1)

    for _ in range(2):
        response = await edit(client, None)
        assert response.status_code == 200
        assert response.json()["summary"] is None
    assert not await store.summaries(KEY)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "title, metadata, ttl, system, summary"),
        ({"summary": {"text": "a"}, "messages": 3}, "messages"),
        ({"summary": "text"}, "summary"),
        ({"summary": ["text"]}, "summary"),
        ({"summary": {}}, "summary.text"),
        ({"summary": {"text": "a", "version": 3}}, "summary.version"),
        ({"summary": {"text": 3}}, "summary.text"),
        ({"summary": {"text": None}}, "summary.text"),
        ({"summary": {"text": ""}}, "summary.text"),
        ({"summary": {"text": " \n"}}, "summary.text"),
        ({"summary": {"text": "word " * 41}}, "summary.text"),
        ({"summary": {"text": "word " * 2_000_000}}, "summary.text"),
    ],
)
async def test_a_wrong_change_is_refused_by_name(
    client: httpx.AsyncClient, body: Any, param: str
) -> None:
    await seed(client, "s", *talk("one"))
    response = await client.patch(URL, json=body)
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert (await client.get(URL)).json()["summary"] is None


async def test_a_refusal_says_what_can_be_changed(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("one"))
    response = await client.patch(URL, json={"tokens": 5})
    known = "title, metadata, ttl, system, summary"
    assert error_of(response)["message"] == f"What can be changed is: {known}."
    response = await client.patch(URL, content=b"no json")
    assert response.status_code == 400


async def test_as_long_as_any_profile_allows_is_not_too_long(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("one"))
    response = await edit(client, {"text": "word " * 30})
    assert response.status_code == 200


# Made anew


@pytest.mark.parametrize(("text", "kind"), [("Wrong.", "rebuild"), (None, "summary")])
async def test_a_rebuild_asks_for_work_and_forgets_nothing(
    client: httpx.AsyncClient, store: Backend, text: str | None, kind: str
) -> None:
    await store.commit(KEY, chat("x1", profile=""))
    await store.mark_stalled(KEY)
    if text:
        await put(store, text, 0)

    response = await client.post(f"{URL}/summary/rebuild")

    assert response.status_code == 202
    assert response.json()["id"] == "s"
    assert [each.text for each in await store.summaries(KEY)] == [text] * bool(text)
    assert bool(response.json()["summary"]) == bool(text)
    assert not (await store.load(KEY, LoadOptions(profile=""))).stalled
    (work,) = await store.waiting(time.time() + 1, 10)
    assert (work.tenant, work.session, work.kind, work.profile) == (*KEY, kind, "")
    assert work.due <= time.time()


async def test_a_profile_without_summaries_rebuilds_none_and_forgets_none(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await store.commit(KEY, chat("x1", profile="long"))
    await put(store, "Still here.", 0)

    response = await client.post(f"{URL}/summary/rebuild")

    assert response.status_code == 400
    assert error_of(response)["code"] == "summary_disabled"
    assert len(await store.summaries(KEY)) == 1
    assert not await store.waiting(time.time() + 1, 10)


# Whose, and when


ROUTES = [("PATCH", URL), ("GET", f"{URL}/summaries"), ("POST", f"{URL}/summary/rebuild")]


@pytest.mark.parametrize("change", [{"summary": {"text": "a"}}, {"summary": None}])
@pytest.mark.parametrize(("method", "url"), ROUTES)
async def test_an_unknown_session_is_not_found(
    client: httpx.AsyncClient, method: str, url: str, change: Any
) -> None:
    response = await client.request(method, url, json=change)
    assert response.status_code == 404
    assert error_of(response)["code"] == "session_not_found"


@pytest.mark.parametrize(("method", "url"), ROUTES)
async def test_anothers_session_is_not_found(
    client: httpx.AsyncClient, site: Site, store: Backend, method: str, url: str
) -> None:
    await seed(client, "s", *talk("one"))
    await put(store, "Private.", 0)
    async with site.client("eve") as eve:
        response = await eve.request(method, url, json={"summary": None})
    assert response.status_code == 404
    assert len(await store.summaries(KEY)) == 1


@pytest.mark.parametrize(("method", "url"), [ROUTES[0], ROUTES[2]])
async def test_nothing_is_changed_while_exchanges_wait_in_the_spool(
    client: httpx.AsyncClient,
    store: Backend,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    url: str,
) -> None:
    await seed(client, "s", *talk("one"))
    await put(store, "Still here.", 0)
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked == KEY)

    response = await client.request(method, url, json={"summary": None})

    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
    assert len(await store.summaries(KEY)) == 1
