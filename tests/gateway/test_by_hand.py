"""Sessions changed by hand over the memory API while people chat, on every store."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import httpx
import pytest

from tests.support.rig import KEY, Rig, Talk
from tests.support.talk.recalling import marker, somebody
from tests.support.talk.words import messages, name, text
from tests.support.upstream.answers import chat_completion, json_answer
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

A9 = {"content": text("a9")}
AUTH = {"authorization": f"Bearer {KEY}"}


async def call(
    talk: Talk, method: str, path: str, status: int = 200, **more: Any
) -> dict[str, Any]:
    """The memory API, below the session."""
    url = f"/memory/v1/sessions/{talk.session}{path}"
    headers = {**AUTH, **more.pop("headers", {})}
    response = await talk.rig.client.request(method, url, headers=headers, **more)
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def ids(talk: Talk, state: str = "active") -> dict[str, str]:
    """Message ids by their names in shorthand, else by what they say."""
    listed = await call(talk, "GET", "/messages", params={"state": state})
    return {name(item["message"]): item["id"] for item in listed["data"]}


def beside(talk: Talk, session: str) -> Talk:
    """Another session of the same proxy and key."""
    return Talk(talk.rig, session, talk.headers)


async def test_the_next_request_has_what_was_edited_and_not_what_was_removed(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u2", "a2")
    known = await ids(talk)

    await call(talk, "PATCH", f"/messages/{known['a1']}", json=A9)
    await call(talk, "DELETE", f"/messages/{known['u2']}")
    await call(talk, "DELETE", f"/messages/{known['a2']}")

    assert await talk.say("u3", "a3") == "u1 a9 u3"
    assert await talk.log() == "u1 a9 u3 a3"


async def test_a_client_that_resends_the_edited_conversation_goes_on_with_it(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u1 a1 u2", "a2")
    known = await ids(talk)
    await call(talk, "PATCH", f"/messages/{known['a1']}", json=A9)
    assert await talk.say("u1 a9 u2 a2 u3", "a3") == "u1 a9 u2 a2 u3"
    assert await talk.log() == "u1 a9 u2 a2 u3 a3"


async def test_a_client_that_resends_the_old_words_has_the_last_word(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u1 a1 u2", "a2")
    await call(talk, "PATCH", f"/messages/{(await ids(talk))['a2']}", json=A9)
    assert await talk.say("u1 a1 u2 a2 u3", "a3") == "u1 a1 u2 a2 u3"
    assert await talk.log() == "u1 a1 u2 a2 u3 a3"


async def test_after_a_rewind_the_conversation_goes_on_before_it(every: Rig) -> None:
    talk = every.talk()
    for turn in "123":
        await talk.say(f"u{turn}", f"a{turn}")
    session = await call(talk, "POST", "/rewind", json={"turns": 2})
    assert session["messages"] == 2
    assert await talk.say("u4", "a4") == "u1 a1 u4"
    assert await talk.gone() == "u2 a2 u3 a3"


async def test_an_activated_branch_goes_on_whatever_the_client_sends(every: Rig) -> None:
    for resent in ("", "u1 a1 u2 a2 "):
        talk = every.talk()
        await talk.say("u1", "a1")
        await talk.say("u1 a1 u2", "a2")
        await talk.say("u1 a1 u3", "a3")
        assert await talk.log() == "u1 a1 u3 a3"

        branch = await ids(talk, "superseded")
        await call(talk, "POST", f"/messages/{branch['a2']}/activate")

        assert await talk.log() == "u1 a1 u2 a2"
        assert await talk.say(f"{resent}u4", "a4") == "u1 a1 u2 a2 u4"
        assert await talk.log() == "u1 a1 u2 a2 u4 a4"
        branch = await ids(talk, "superseded")
        await call(talk, "POST", f"/messages/{branch['u3']}/activate")
        assert await talk.log() == "u1 a1 u3 a3"


async def test_an_answer_made_again_gives_way_to_the_first_one(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u1 a1 u2", "a2")
    await talk.say("u1 a1 u2", "a3")
    await talk.say("u1 a1 u2", "a4")
    for answer in ("a2", "a4", "a3"):
        known = await ids(talk, "superseded")
        await call(talk, "POST", f"/messages/{known[answer]}/activate")
        assert await talk.log() == f"u1 a1 u2 {answer}"


async def test_another_choice_becomes_memory(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1", n=2)
    other = next(iter((await ids(talk, "superseded")).values()))
    await call(talk, "POST", f"/messages/{other}/activate")
    active = await ids(talk)
    assert other in active.values() and len(active) == 2


async def test_both_go_on_after_a_fork(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    await talk.say("u2", "a2")
    await talk.say("u3", "a3")
    known = await ids(talk)
    new = f"{talk.session}-fork"

    made = await call(talk, "POST", "/fork", 201, json={"id": new, "until": known["a2"]})

    fork = beside(talk, new)
    assert made["messages"] == 4
    assert await fork.say("u4", "a4") == "u1 a1 u2 a2 u4"
    assert await fork.say("u1 a1 u2 a2 u4 a4 u5", "a5") == "u1 a1 u2 a2 u4 a4 u5"
    assert await talk.say("u6", "a6") == "u1 a1 u2 a2 u3 a3 u6"
    assert await fork.log() == "u1 a1 u2 a2 u4 a4 u5 a5"
    await call(talk, "DELETE", "")
    assert await fork.log() == "u1 a1 u2 a2 u4 a4 u5 a5"
    exchanges = await call(fork, "GET", "/exchanges")
    assert len(exchanges["data"]) == 4


async def test_a_tool_loop_stays_valid_whatever_is_removed_from_it(every: Rig) -> None:
    """The scripted upstream refuses what a strict one would."""
    for removed in ("a1", "t1", "t2", "a2"):
        talk = every.talk()
        await talk.say("u1", "a1(c1,c2)")
        await talk.say("t1:c1 t2:c2", "a2")
        await call(talk, "DELETE", f"/messages/{(await ids(talk))[removed]}")
        left = await talk.say("u3", "a3")
        assert removed not in left.split() and ("t1" in left) == (removed == "a2")
        await talk.say("u4", "a4")
        assert not every.up.refused


async def test_edits_while_people_chat_lose_nothing(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u0", "a0")
    first = (await ids(talk))["u0"]
    every.up.always(json_answer(chat_completion("a")))

    async def edits() -> None:
        for number in range(8):
            await call(talk, "PATCH", f"/messages/{first}", json={"content": f"edited {number}"})
            await call(talk, "PATCH", "", json={"title": f"title {number}"})

    async def chats(who: str) -> None:
        for number in range(6):
            response = await talk.ask([{"role": "user", "content": f"{who} {number}"}])
            assert response.status_code == 200

    await asyncio.gather(edits(), chats("x"), chats("y"))

    session = await call(talk, "GET", "")
    said = await ids(talk)
    assert session["title"] == "title 7"
    assert session["messages"] == 2 + 2 * 12
    assert {f"{who} {n}" for who, n in itertools.product("xy", range(6))} <= set(said)
    assert said["edited 7"] == first


async def test_an_edited_message_is_recalled_by_its_new_words_alone(every: Rig) -> None:
    person, old, new = somebody(every), marker(), marker()
    talk = await person.tells(f"My boat is called {old}.")
    assert await person.is_reminded_of(old)
    message = (await ids(talk))[f"My boat is called {old}."]

    words = {"content": f"My boat is called {new}."}
    await call(talk, "PATCH", f"/messages/{message}", json=words)

    assert not await person.is_reminded_of(old)

    async def recalled() -> bool:
        return await person.is_reminded_of(new, x_memory_mode="read")

    await eventually(recalled)
    assert not await person.is_reminded_of(old)
    await call(talk, "DELETE", f"/messages/{message}")
    assert not await person.is_reminded_of(new)


async def test_a_change_for_another_tag_is_refused_and_does_nothing(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    known = await ids(talk)
    url = f"{every.proxy.url}/memory/v1/sessions/{talk.session}"
    async with httpx.AsyncClient(headers=AUTH) as client:
        for path in ("", f"/messages/{known['u1']}"):
            stale = {"if-match": (await client.get(url + path)).headers["etag"]}
            change = {"content": "u8"} if path else {"title": "first"}
            assert (await client.patch(url + path, json=change, headers=stale)).status_code == 200
            change = {"content": "u9"} if path else {"title": "second"}
            assert (await client.patch(url + path, json=change, headers=stale)).status_code == 412
        message = f"{url}/messages/{known['u1']}"
        stale = {"if-match": '"nonsense"'}
        assert (await client.delete(message, headers=stale)).status_code == 412
        fresh = {"if-match": (await client.get(message)).headers["etag"]}
        assert (await client.delete(message, headers=fresh)).status_code == 200
    assert await talk.log() == "a1"


async def test_imports_are_made_once_with_a_key(every: Rig) -> None:
    talk = every.talk()
    body = {"messages": messages("u1 a1")}
    key = {"idempotency-key": "one"}
    first = await call(talk, "POST", "/messages", json=body, headers=key)
    assert await call(talk, "POST", "/messages", json=body, headers=key) == first
    other = {"messages": messages("u2")}
    await call(talk, "POST", "/messages", 422, json=other, headers=key)
    fork = {"id": f"{talk.session}-fork"}
    made = await call(talk, "POST", "/fork", 201, json=fork, headers=key)
    assert await call(talk, "POST", "/fork", 201, json=fork, headers=key) == made
    await call(talk, "POST", "/fork", 409, json=fork)
    assert await talk.log() == "u1 a1"
