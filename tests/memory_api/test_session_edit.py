"""A session changed by hand over the memory API; its summary: see ``test_summaries``."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from proxy.memory.archive import Revision, Session
from proxy.memory.model import SessionKey
from proxy.memory.recording.spool import Spool
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, error_of, said, seed, talk

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s"


async def changed(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.patch(URL, json=fields)
    assert response.status_code == 200, response.text
    session: dict[str, Any] = response.json()
    assert (await client.get(URL)).json() == session
    return session


async def test_everything_is_changed_in_one_request(client: httpx.AsyncClient) -> None:
    await seed(client, "s", said("system", "Be brief."), *talk("hello", "hi"))
    before = (await client.get(URL)).json()

    session = await changed(
        client,
        title="A trip",
        metadata={"colour": "red", "tags": [1, None]},
        ttl=3600,
        system=said("developer", "Be long."),
        summary={"text": "They said hello."},
    )

    assert session["summary"]["text"] == "They said hello."
    expected = {
        "title": "A trip",
        "metadata": {"colour": "red", "tags": [1, None]},
        "ttl": 3600,
        "system": said("developer", "Be long."),
        "system_messages": [said("developer", "Be long.")],
        "summary": session["summary"],
    }
    assert session == before | expected


async def test_what_is_not_named_stays(client: httpx.AsyncClient) -> None:
    await seed(client, "s", said("system", "Be brief."), *talk("hello"))
    await changed(client, title="A trip", metadata={"a": 1})
    session = await changed(client, ttl=5)
    assert (session["title"], session["metadata"], session["ttl"]) == ("A trip", {"a": 1}, 5)
    assert session["system"] == said("system", "Be brief.")
    session = await changed(client, metadata={"b": 2})
    assert session["metadata"] == {"b": 2}


async def test_null_removes_a_title_and_forgets_the_system_messages(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "s", said("system", "Be brief."), *talk("hello"))
    await changed(client, title="A trip")
    session = await changed(client, title=None, system=None)
    assert (session["title"], session["system"], session["system_messages"]) == (None, None, [])


async def test_several_system_messages_are_remembered_as_they_are(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await seed(client, "s", *talk("hello"))
    system = [said("system", "One.", name="a"), said("developer", "Two.")]
    session = await changed(client, system=system)
    assert session["system_messages"] == system
    found = await store.session(KEY)
    assert found is not None and found.details.system_tokens > 2


async def test_a_system_message_that_was_put_is_sent(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello", "hi"))
    await changed(client, system=said("system", "Speak French."))
    body = {"messages": [said("user", "Well?")]}
    preview = (await client.post(f"{URL}/context", json=body)).json()
    assert preview["messages"][0] == said("system", "Speak French.")


async def test_activity_is_not_a_change_by_hand(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    before = (await client.get(URL)).json()["last_active_at"]
    assert (await changed(client, title="A trip"))["last_active_at"] == before


LONG = "x" * 201
LARGE = {"x": "y" * (16 * 1024)}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param({}, "title, metadata, ttl, system, summary", id="nothing"),
        pytest.param({"id": "t"}, "id", id="another field"),
        pytest.param({"title": ""}, "title", id="empty title"),
        pytest.param({"title": LONG}, "title", id="long title"),
        pytest.param({"title": 3}, "title", id="a number as title"),
        pytest.param({"metadata": []}, "metadata", id="a list as metadata"),
        pytest.param({"metadata": None}, "metadata", id="no metadata"),
        pytest.param({"metadata": LARGE}, "metadata", id="large metadata"),
        pytest.param({"ttl": -1}, "ttl", id="negative ttl"),
        pytest.param({"ttl": 1.5}, "ttl", id="half a second"),
        pytest.param({"ttl": True}, "ttl", id="a truth as ttl"),
        pytest.param({"ttl": None}, "ttl", id="no ttl"),
        pytest.param({"ttl": 10**12}, "ttl", id="a ttl no store can count"),
        pytest.param({"system": "Be brief."}, "system", id="text as system"),
        pytest.param({"system": []}, "system", id="no system messages"),
        pytest.param({"system": said("user", "x")}, "system", id="a user's message"),
        pytest.param({"system": [said("system", "x"), 3]}, "system", id="one that is none"),
        pytest.param({"system": said("system", " ")}, "system", id="a blank one"),
        pytest.param({"title": "A trip", "ttl": "long"}, "ttl", id="one right, one wrong"),
    ],
)
async def test_a_wrong_change_is_refused_whole(
    client: httpx.AsyncClient, body: Any, param: str
) -> None:
    await seed(client, "s", *talk("hello"))
    before = (await client.get(URL)).json()
    response = await client.patch(URL, json=body)
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert (await client.get(URL)).json() == before


async def test_metadata_nested_too_deeply_is_refused(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    deep = b'{"metadata": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}"
    response = await client.patch(URL, content=deep)
    assert response.status_code == 400
    assert error_of(response)["param"] == "metadata"


async def test_a_title_may_be_of_any_script(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello"))
    title = "旅行 \u202e <script>" + "é" * 187
    assert (await changed(client, title=title))["title"] == title


async def test_a_session_that_is_not_there_is_not_changed(client: httpx.AsyncClient) -> None:
    response = await client.patch(URL, json={"title": "A trip"})
    assert response.status_code == 404
    assert error_of(response)["code"] == "session_not_found"


async def test_two_who_change_different_things_at_once_both_succeed(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "s", *talk("hello"))
    fields: list[dict[str, Any]] = [{"title": "A"}, {"ttl": 9}, {"metadata": {"a": 1}}]
    answers = await asyncio.gather(*(client.patch(URL, json=each) for each in fields * 3))
    assert {answer.status_code for answer in answers} == {200}
    session = (await client.get(URL)).json()
    assert (session["title"], session["ttl"], session["metadata"]) == ("A", 9, {"a": 1})


async def test_a_change_that_is_overtaken_is_made_on_what_is_there_then(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello"))
    real, calls = store.session, 0

    async def overtaken(key: SessionKey) -> Session | None:
        nonlocal calls
        found = await real(key)
        calls += 1
        if calls == 1 and found is not None:
            details = found.details
            changed = type(details)(title=details.title, ttl=77)
            assert await store.revise(key, Revision(details=changed, expected_details=details))
        return found

    monkeypatch.setattr(store, "session", overtaken)
    response = await client.patch(URL, json={"title": "A trip"})

    assert (response.json()["title"], response.json()["ttl"]) == ("A trip", 77)


async def test_a_tag_that_is_not_the_present_one_changes_nothing(
    client: httpx.AsyncClient,
) -> None:
    await seed(client, "s", *talk("hello"))
    tag = (await client.get(URL)).headers["etag"]
    change = {"title": "First.", "summary": {"text": "Hello."}}
    first = await client.patch(URL, json=change, headers={"if-match": tag})
    second = await client.patch(URL, json={"title": "Second."}, headers={"if-match": tag})
    assert (first.status_code, second.status_code) == (200, 412)
    assert (await client.get(URL)).json()["title"] == "First."


async def test_nothing_is_changed_while_exchanges_wait_in_the_spool(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(client, "s", *talk("hello"))
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked == KEY)
    response = await client.patch(URL, json={"title": "A trip"})
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
    assert (await client.get(URL)).json()["title"] is None
