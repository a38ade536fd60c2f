"""A tenant whose memory holds something of everything, and all that its API says of that."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from urllib.parse import quote

import httpx

from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.stores.open import Backend
from tests.support.rig import Rig
from tests.support.store.inside import AUTHORIZATION, TENANT
from tests.support.talk.words import messages, text
from tests.support.upstream.answers import chat_completion, json_answer
from tests.support.waiting import eventually

API = "/memory/v1"
PEOPLE = ("alice", "bob", "dave")
"""Dave has never chatted."""

HEADERS = {"authorization": AUTHORIZATION}

SETTINGS: dict[str, object] = {
    "memory__facts__enabled": True,
    "memory__profile__enabled": True,
    "memory__episodes__enabled": True,
    "memory__instructions__enabled": True,
    "background__tokens_per_day": 1,
}
"""Everything is on, and no model is asked to write any of it."""

Said = list[dict[str, Any]]


async def live(rig: Rig) -> None:
    """Fill memory: everything that people and programs can put into it."""
    await _chats(rig)
    await _edits(rig)
    await _memories(rig)


async def _say(rig: Rig, session: str, sent: Said, answer: str, **more: Any) -> None:
    rig.up.reply(json_answer(chat_completion(answer, n=more.pop("n", 1))))
    headers = {**HEADERS, "x-session-id": session, **more.pop("headers", {})}
    body = {"model": "scripted-1", "messages": sent, **more}
    response = await rig.client.post("/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200, response.text


async def _chats(rig: Rig) -> None:
    alice, bob = {"x-user-id": "alice"}, {"x-user-id": "bob"}
    wish = {"role": "user", "content": "Always answer in French. My dog is called Bello."}
    system = {"role": "system", "content": "You are kind.\nAlways."}
    await _say(rig, "a-1", [system, wish], "D'accord.", headers=alice)
    other = {"role": "user", "content": "Never use emoji. I live in Lisbon."}
    await _say(rig, "a-1", [other], "Bien.", headers=alice)
    await _say(rig, "a-2", messages("u1"), text("a1"), headers=alice)
    await _say(rig, "a-2", messages("u2"), text("a2"), headers=alice, n=2)
    await _say(rig, "a-2", messages("u1 a1 u2'"), text("a3"), headers=alice)
    rig.up.strict = False
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    rig.up.reply(json_answer(chat_completion(None, tool_calls=calls)))
    headers = {**HEADERS, **bob, "x-session-id": "b/1?"}
    asked = {"model": "scripted-1", "messages": messages("u5")}
    assert (
        await rig.client.post("/v1/chat/completions", json=asked, headers=headers)
    ).status_code == 200
    await _say(rig, "b/1?", messages("t1:c1"), "42 \U0001f600 \u2028.", headers=bob)
    await _say(rig, "nobodys", messages("u7"), text("a7"))
    # Bytes that no line can hold as they came: line breaks, half an emoji, deep nesting.
    odd = b'{"messages": [{"role": "user",\n"content": "half \\ud83d", "x": ' + _deep() + b"}]}"
    response = await rig.client.post(f"{API}/sessions/odd/messages", content=odd, headers=HEADERS)
    assert response.status_code == 200, response.text


def _deep() -> bytes:
    return b"[" * 300 + b"]" * 300


async def _edits(rig: Rig) -> None:
    path = f"{API}/sessions/a-1"
    for change in (
        {"title": "Bello", "metadata": {"a": [1.50, None]}},
        {"summary": {"text": "They spoke of a dog."}},
        {"summary": {"text": "They spoke of a dog, in French."}},
    ):
        response = await rig.client.patch(path, json=change, headers=HEADERS)
        assert response.status_code == 200, response.text


async def _memories(rig: Rig) -> None:
    client = rig.client
    for user, fact in (("alice", "Alice has a boat."), ("bob", "Bob is a baker.")):
        path = f"{API}/users/{user}/memories"
        assert (await client.post(path, json={"text": fact}, headers=HEADERS)).status_code == 201
    profile = {**HEADERS, "content-type": "application/merge-patch+json"}
    for content in (b'{"name": "Alice"}', b'{"name": "Alice B."}'):
        path = f"{API}/users/alice/profile"
        response = await client.patch(path, content=content, headers=profile)
        assert response.status_code == 200, response.text
    listed = await client.get(f"{API}/sessions/a-1/messages", headers=HEADERS)
    answer = listed.json()["data"][1]["id"]
    path = f"{API}/sessions/a-1/messages/{quote(answer, safe='')}/feedback"
    for score in ({"score": 1}, {"score": 1, "comment": "good"}):
        assert (await client.post(path, json=score, headers=HEADERS)).status_code == 200
    for namespace in (["users", "alice", "notes"], ["users", "dave", "notes"], ["shared", "x"]):
        for key in ("one", "two"):
            body = {"namespace": namespace, "key": key, "value": {"k": key, "n": [1.50]}}
            await client.put(f"{API}/store/items", json=body, headers=HEADERS)
        response = await client.put(f"{API}/store/items", json=body, headers=HEADERS)
        assert response.status_code == 200, response.text
    await client.put(f"{API}/instructions/default", json={"text": "Be brief."}, headers=HEADERS)
    await _dismiss_a_wish(client)


async def _dismiss_a_wish(client: httpx.AsyncClient) -> None:
    path = f"{API}/users/alice/memories?kind=instruction"
    found: list[str] = []

    async def there() -> bool:
        listed = (await client.get(path, headers=HEADERS)).json()["data"]
        found[:] = [each["id"] for each in listed if each["kind"] == "instruction"]
        return len(found) == 2

    await eventually(there)
    gone = f"{API}/users/alice/memories/{quote(found[0], safe='')}"
    assert (await client.delete(gone, headers=HEADERS)).status_code == 200


async def told_at_rest(client: httpx.AsyncClient) -> dict[str, Any]:
    """The same once recall's index has come to rest: it follows up to a second and a half later."""
    before: dict[str, Any] = {}
    while (now := await told(client)) != before:
        before = now
        await asyncio.sleep(1.5)
    return now


async def told(client: httpx.AsyncClient) -> dict[str, Any]:
    """All that the API says of this memory, by path."""
    said: dict[str, Any] = {}

    async def get(path: str) -> Any:
        response = await client.get(f"{API}{path}", headers=HEADERS)
        said[path] = (response.status_code, response.text)
        return response.json()

    async def post(path: str, body: object) -> None:
        response = await client.post(f"{API}{path}", json=body, headers=HEADERS)
        said[f"{path} {body}"] = (response.status_code, _still(response.json()))

    for session in (await get("/sessions?limit=1000"))["data"]:
        path = f"/sessions/{quote(session['id'], safe='')}"
        await get(path)
        await get(f"{path}/summaries")
        listed = await get(f"{path}/messages?state=active,superseded&limit=1000")
        for exchange in {message["exchange_id"] for message in listed["data"]}:
            await get(f"{path}/exchanges/{quote(exchange, safe='')}")
        for message in listed["data"]:
            await get(f"{path}/messages/{quote(message['id'], safe='')}/feedback")
        question = {"messages": [{"role": "user", "content": "What is my dog called?"}]}
        await post(f"{path}/context", question)
    for user in PEOPLE:
        await get(f"/sessions?user={user}")
        await get(f"/users/{user}/memories?limit=1000")
        await get(f"/users/{user}/profile")
        await get(f"/users/{user}/profile/versions")
        await post("/store/items/search", {"namespace_prefix": ["users", user, "notes"]})
    await post("/store/items/search", {"namespace_prefix": ["shared"]})
    await post("/store/namespaces", {})
    await get("/instructions/default")
    await get("/instructions/default/versions")
    return said


def _still(answer: Any) -> Any:
    """Without what depends on the moment: how much nearer the past is."""
    if isinstance(answer, dict):
        return {name: _still(each) for name, each in answer.items() if name not in MOVING}
    return [_still(each) for each in answer] if isinstance(answer, list) else answer


MOVING = ("score", "parts", "duration_ms")


async def wipe(here: Rig) -> None:
    """Nothing is left of the tenant."""
    store = cast(Backend, here.store.real)
    while (page := await store.sessions(TENANT, None, None, 1000)).items:
        for session in page.items:
            await store.delete(SessionKey(TENANT, session.id))
    for user in ("", *PEOPLE):
        await store.drop_items(ItemOwner(TENANT, user), ())
        await store.drop(Owner(TENANT, user=user))


async def exported(client: httpx.AsyncClient, path: str = "/export") -> bytes:
    response = await client.get(f"{API}{path}", headers=HEADERS)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return response.content


async def imported(client: httpx.AsyncClient, content: bytes, query: str = "") -> dict[str, Any]:
    response = await client.post(f"{API}/import{query}", content=content, headers=HEADERS)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def without_time(export: bytes) -> list[bytes]:
    """The lines of an export but the first, which says when it was made."""
    return export.splitlines()[1:]
