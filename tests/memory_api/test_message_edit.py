"""One message over the memory API: looked at, edited in place, removed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from proxy.chat.message import read_message
from proxy.memory.archive import Revision, StoredMessage
from proxy.memory.model import MessageEdit, SessionKey
from proxy.memory.recording.spool import Spool
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import SESSIONS, error_of, said, seed, talk
from tests.support.store.commits import draft, record
from tests.support.upstream.strict import validate

KEY = SessionKey(digest_of(b"alice"), "s")
URL = f"{SESSIONS}/s/messages"


def call(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def calling(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(id) for id in ids]}


def result(id: str, text: str = "42") -> dict[str, Any]:
    return said("tool", text, tool_call_id=id)


TOOLS = [
    said("user", "q1"),
    calling("c1", "c2"),
    result("c1"),
    result("c2"),
    said("assistant", "a1"),
    said("user", "q2"),
    said("assistant", "a2"),
]


async def sent(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """What an upstream would be sent now; it must accept that."""
    body = {"messages": [said("user", "next")], "profile": ""}
    messages: list[dict[str, Any]] = (await client.post(f"{SESSIONS}/s/context", json=body)).json()[
        "messages"
    ]
    validate({"model": "m", "messages": messages})
    return messages


async def listed(client: httpx.AsyncClient, state: str = "active") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(URL, params={"state": state})).json()["data"]
    return found


# Looked at


async def test_one_message_is_as_the_list_shows_it(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))
    for message in created:
        assert (await client.get(f"{URL}/{message['id']}")).json() == message


async def test_a_reply_is_shown_as_it_came(client: httpx.AsyncClient, store: Backend) -> None:
    wire = b'{"role":"assistant","content":"Hi","reasoning":"They greet me."}'
    answer = draft("x", 1, "assistant", wire=wire)
    await store.commit(KEY, record("x", draft("x", 0), answer))
    response = await client.get(f"{URL}/x.1")
    assert b'"message":' + wire in response.content


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_an_unknown_message_is_not_found(client: httpx.AsyncClient, method: str) -> None:
    change = {"content": "x"} if method == "PATCH" else None
    response = await client.request(method, f"{URL}/x.0", json=change)
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    await seed(client, "s", *talk("hello"))
    for id in ("x.0", "%2e", "a%2fb", "%ff"):
        response = await client.request(method, f"{URL}/{id}", json=change)
        assert (response.status_code, error_of(response)["code"]) == (404, "message_not_found")


# Edited


async def test_an_edit_keeps_the_place_and_nothing_of_the_old_text(
    client: httpx.AsyncClient, store: Backend
) -> None:
    created = await seed(client, "s", *talk("my secret is 1234", "noted"))
    url = f"{URL}/{created[0]['id']}"

    response = await client.patch(url, json={"content": "I have no secret at all"})

    edited = response.json()
    assert (await client.get(url)).json() == edited
    assert edited["message"] == said("user", "I have no secret at all")
    for name in ("id", "seq", "exchange_id", "state", "origin", "created_at"):
        assert edited[name] == created[0][name]
    assert "1234" not in (await client.get(URL, params={"state": "active,superseded"})).text
    assert "1234" not in json.dumps(await sent(client))


async def test_an_edited_message_is_read_as_an_imported_one(
    client: httpx.AsyncClient, store: Backend
) -> None:
    before, after = [said("user", "a"), said("user", "b c d e f")]
    created = await seed(client, "s", before, *talk("x", "y"))
    other = (await seed(client, "t", after))[0]
    edited = (await client.patch(f"{URL}/{created[0]['id']}", json={"message": after})).json()
    mine = await store.message(KEY, created[0]["id"])
    theirs = await store.message(SessionKey(KEY.tenant, "t"), other["id"])
    assert mine is not None and theirs is not None
    assert (mine.card.digest, mine.card.tokens) == (theirs.card.digest, theirs.card.tokens)
    assert edited["tokens"] == other["tokens"]
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert session["tokens"] == sum(x["tokens"] for x in await listed(client))


@pytest.mark.parametrize("spoken", [{"audio": {"id": "a1"}}, {"refusal": "I may not."}])
async def test_an_edited_answer_says_no_more_what_it_said_instead_of_content(
    client: httpx.AsyncClient, spoken: dict[str, Any]
) -> None:
    answer = {"role": "assistant", "content": None, **spoken}
    created = await seed(client, "s", said("user", "q"), answer)
    await client.patch(f"{URL}/{created[1]['id']}", json={"content": "b"})
    assert await sent(client) == [said("user", "q"), said("assistant", "b"), said("user", "next")]


async def test_other_fields_of_a_message_stay_where_only_its_content_is_edited(
    client: httpx.AsyncClient,
) -> None:
    created = await seed(client, "s", said("user", "a", name="Ann", more={"x": [1.0]}))
    parts = [{"type": "text", "text": "b"}]
    edited = (await client.patch(f"{URL}/{created[0]['id']}", json={"content": parts})).json()
    assert edited["message"] == {
        "role": "user",
        "content": parts,
        "name": "Ann",
        "more": {"x": [1.0]},
    }


async def test_what_a_reply_had_beside_its_text_goes_with_the_text(
    client: httpx.AsyncClient, store: Backend
) -> None:
    wire = b'{"role":"assistant","content":"Hi Kai","reasoning":"Kai greets me."}'
    answer = draft("x", 1, "assistant", wire=wire, incomplete=True)
    await store.commit(KEY, record("x", draft("x", 0), answer))
    edited = (await client.patch(f"{URL}/x.1", json={"content": "Hi"})).json()
    assert edited["message"] == said("assistant", "Hi")
    assert (edited["incomplete"], edited["origin"]) == (False, "response")


async def test_large_media_become_a_placeholder_in_an_edit_too(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("look"))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}
    edited = await client.patch(f"{URL}/{created[0]['id']}", json={"content": [image]})
    assert edited.status_code == 200
    assert "A" * 100 not in edited.text
    assert "image/png" in edited.text


async def test_a_superseded_message_is_edited_as_well(
    client: httpx.AsyncClient, store: Backend
) -> None:
    await store.commit(KEY, record("x", draft("x", 0), draft("x", 1, "assistant")))
    gone = ("x.0", "x.1")
    await store.commit(KEY, record("y", draft("y", 0), superseded=gone))
    edited = (await client.patch(f"{URL}/x.0", json={"content": "other"})).json()
    assert (edited["state"], edited["message"]["content"]) == ("superseded", "other")
    assert (await client.get(f"{SESSIONS}/s")).json()["messages"] == 1


WRONG = [
    pytest.param({}, "content", id="nothing"),
    pytest.param({"content": "a", "message": said("user", "a")}, "content", id="both"),
    pytest.param({"text": "a"}, "text", id="another field"),
    pytest.param({"content": None}, "content", id="null"),
    pytest.param({"content": []}, "content", id="no parts"),
    pytest.param({"content": ["a"]}, "content[0]", id="parts that are none"),
    pytest.param({"content": 3}, "content", id="a number"),
    pytest.param({"content": " "}, "content", id="blank"),
    pytest.param({"message": "a"}, "message", id="text as message"),
    pytest.param({"message": said("assistant", "a")}, "message.role", id="another role"),
    pytest.param({"message": {"content": "a"}}, "message.role", id="no role"),
]


@pytest.mark.parametrize(("body", "param"), WRONG)
async def test_a_wrong_edit_is_refused(client: httpx.AsyncClient, body: Any, param: str) -> None:
    created = await seed(client, "s", *talk("hello"))
    response = await client.patch(f"{URL}/{created[0]['id']}", json=body)
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert await listed(client) == created


async def test_a_result_stays_that_of_its_call(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *TOOLS)
    url = f"{URL}/{created[2]['id']}"
    response = await client.patch(url, json={"message": result("c9")})
    assert error_of(response)["param"] == "message.tool_call_id"
    assert (await client.patch(url, json={"content": ""})).status_code == 200
    assert (await sent(client))[2] == result("c1", "")


async def test_calls_that_are_not_made_any_more_take_their_results_with_them(
    client: httpx.AsyncClient,
) -> None:
    created = await seed(client, "s", *TOOLS)
    one = said("assistant", "Let me see.", tool_calls=[call("c2")])
    await client.patch(f"{URL}/{created[1]['id']}", json={"message": one})
    assert await sent(client) == [TOOLS[0], one, *TOOLS[3:], said("user", "next")]

    none = said("assistant", "Let me see.")
    await client.patch(f"{URL}/{created[1]['id']}", json={"message": none})
    assert await sent(client) == [TOOLS[0], none, *TOOLS[4:], said("user", "next")]


async def test_an_edit_that_is_overtaken_is_made_of_what_is_there_then(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await seed(client, "s", said("user", "one", name="Ann"))
    id, real, calls = created[0]["id"], store.message, 0

    async def overtaken(key: SessionKey, message: str) -> StoredMessage | None:
        nonlocal calls
        found = await real(key, message)
        calls += 1
        if calls == 1 and found is not None:
            raw = b'{"role":"user","content":"two","name":"Bo"}'
            assert read_message(raw) is not None
            edit = MessageEdit(card=found.card, body=raw, replaced_wire=found.body)
            assert await store.revise(key, Revision(edited=(edit,)))
        return found

    monkeypatch.setattr(store, "message", overtaken)
    edited = (await client.patch(f"{URL}/{id}", json={"content": "three"})).json()

    assert edited["message"] == said("user", "three", name="Bo")


async def test_an_edit_for_another_tag_is_refused(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("one"))
    url = f"{URL}/{created[0]['id']}"
    tag = {"if-match": (await client.get(url)).headers["etag"]}
    assert (await client.patch(url, json={"content": "two"}, headers=tag)).status_code == 200
    for method in ("PATCH", "DELETE"):
        response = await client.request(method, url, json={"content": "three"}, headers=tag)
        assert (response.status_code, error_of(response)["code"]) == (412, "precondition_failed")
    tag = {"if-match": (await client.get(url)).headers["etag"]}
    assert (await client.delete(url, headers=tag)).status_code == 200


# Removed


async def test_a_removed_message_is_nowhere(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi", "my secret is 1234", "noted"))
    id = created[2]["id"]

    response = await client.delete(f"{URL}/{id}")

    expected = {"object": "session.message.deleted", "id": id, "deleted": True, "ids": [id]}
    assert response.json() == expected
    assert (await client.get(f"{URL}/{id}")).status_code == 404
    assert (await client.delete(f"{URL}/{id}")).status_code == 404
    assert await listed(client, "active,superseded") == [x for x in created if x["id"] != id]
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert (session["messages"], session["end"]) == (3, 4)
    assert "1234" not in json.dumps(await sent(client))


async def test_an_answer_whose_question_is_removed_does_not_come_first(
    client: httpx.AsyncClient,
) -> None:
    created = await seed(client, "s", *TOOLS)
    await client.delete(f"{URL}/{created[0]['id']}")
    assert await sent(client) == [*TOOLS[5:], said("user", "next")]
    await client.delete(f"{URL}/{created[5]['id']}")
    assert await sent(client) == [said("user", "next")]
    assert len(await listed(client)) == 5


async def test_a_call_takes_all_its_results_with_it(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *TOOLS)
    removed = (await client.delete(f"{URL}/{created[1]['id']}")).json()
    assert removed["ids"] == [x["id"] for x in created[1:4]]
    assert await sent(client) == [TOOLS[0], *TOOLS[4:], said("user", "next")]


async def test_a_result_that_is_removed_leaves_its_call_out(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *TOOLS)
    removed = (await client.delete(f"{URL}/{created[2]['id']}")).json()
    assert removed["ids"] == [created[2]["id"]]
    assert await sent(client) == [TOOLS[0], *TOOLS[4:], said("user", "next")]


async def test_of_calls_with_the_same_id_each_has_its_own_results(
    client: httpx.AsyncClient,
) -> None:
    twice = [
        said("user", "q1"),
        calling("c1"),
        result("c1", "first"),
        calling("c1"),
        result("c1", "second"),
        said("assistant", "done"),
    ]
    created = await seed(client, "s", *twice)
    removed = (await client.delete(f"{URL}/{created[1]['id']}")).json()
    assert removed["ids"] == [created[1]["id"], created[2]["id"]]
    assert await sent(client) == [twice[0], *twice[3:], said("user", "next")]


async def test_an_exchange_goes_with_its_last_message(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))
    exchange = f"{SESSIONS}/s/exchanges/{created[0]['exchange_id']}"
    await client.delete(f"{URL}/{created[0]['id']}")
    assert (await client.get(exchange)).json()["message_ids"] == [created[1]["id"]]
    await client.delete(f"{URL}/{created[1]['id']}")
    assert (await client.get(exchange)).status_code == 404
    session = (await client.get(f"{SESSIONS}/s")).json()
    assert (session["messages"], session["end"]) == (0, 2)


async def test_removed_by_two_at_once_it_is_removed_once(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))
    url = f"{URL}/{created[0]['id']}"
    answers = await asyncio.gather(*(client.delete(url) for _ in range(4)))
    assert {answer.status_code for answer in answers} <= {200, 404}
    assert await listed(client) == created[1:]


async def test_feedback_on_a_removed_message_goes_with_it(client: httpx.AsyncClient) -> None:
    created = await seed(client, "s", *talk("hello", "hi"), user="ann")
    url = f"{URL}/{created[1]['id']}"
    comment = {"score": -1, "comment": "The secret is 1234."}
    assert (await client.post(f"{url}/feedback", json=comment)).status_code == 200
    await client.delete(url)
    body = {"namespace_prefix": ["users", "ann"]}
    found = await client.post("/memory/v1/store/items/search", json=body)
    assert found.json()["data"] == []


async def test_feedback_from_before_the_session_had_an_owner_goes_with_the_message(
    client: httpx.AsyncClient,
) -> None:
    created = await seed(client, "s", *talk("hello", "hi"))
    url = f"{URL}/{created[1]['id']}"
    comment = {"score": -1, "comment": "The secret is 1234."}
    assert (await client.post(f"{url}/feedback", json=comment)).status_code == 200
    await seed(client, "s", *talk("more"), user="ann")
    assert (await client.get(f"{url}/feedback")).json()["comment"] == comment["comment"]
    await client.delete(url)
    assert "1234" not in (await client.get("/memory/v1/export")).text


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_another_tenants_message_is_not_found(
    client: httpx.AsyncClient, site: Any, method: str
) -> None:
    created = await seed(client, "s", *talk("hello"))
    async with site.client("eve") as eve:
        response = await eve.request(method, f"{URL}/{created[0]['id']}", json={"content": "gone"})
    assert response.status_code == 404
    assert await listed(client) == created


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_nothing_is_changed_while_exchanges_wait_in_the_spool(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    created = await seed(client, "s", *talk("hello"))
    monkeypatch.setattr(Spool, "has_waiting", lambda self, asked: asked == KEY)
    response = await client.request(method, f"{URL}/{created[0]['id']}", json={"content": "x"})
    assert response.status_code == 503
    assert error_of(response)["code"] == "memory_unavailable"
    assert await listed(client) == created
