"""Whose session it is: its first user's, its key's, and the one that the path names."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.words import answer, messages
from tests.support.upstream.answers import sse

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_session_belongs_to_its_first_user(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")  # nobody's so far
    await talk.say("u2", "a2", x_user_id="ann")
    await talk.say("u3", "a3")  # without a user it is still open
    asked = len(every.up.requests)
    response = await talk.ask(messages("u4"), x_user_id="bob")
    assert (response.status_code, response.json()["error"]["code"]) == (
        403,
        "session_owner_mismatch",
    )
    assert len(every.up.requests) == asked
    assert await talk.log() == "u1 a1 u2 a2 u3 a3"
    assert await talk.say("u4", "a4", x_user_id="ann") == "u1 a1 u2 a2 u3 a3 u4"


async def test_the_owner_is_decided_inside_the_commit(every: Rig) -> None:
    talk = every.talk()
    release = asyncio.Event()
    held = sse(
        [*answer("a1", stream=True).pieces[:2], release, *answer("a1", stream=True).pieces[2:]]
    )
    first = asyncio.create_task(talk.ask(messages("u1"), held, stream=True, x_user_id="ann"))
    await every.up.wait_for(1)
    await talk.say("u2", "a2", x_user_id="bob")
    release.set()
    assert (await first).status_code == 200  # the chat ends well; the record would be foreign
    assert await talk.log() == "u2 a2"


async def test_a_guessed_session_finds_nothing_under_another_key(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    assert await talk.say("u2", "a2", authorization="Bearer another") == "u2"
    assert await talk.log() == "u1 a1"


async def test_the_session_in_the_path_is_the_session(every: Rig) -> None:
    talk = every.talk()
    await talk.say("u1", "a1")
    path = Talk(every, talk.session, {}, f"/s/{talk.session}/v1/chat/completions")
    assert await path.say("u2", "a2", x_session_id="overruled") == "u1 a1 u2"
    assert every.up.requests[-1].path == "/v1/chat/completions"
    assert await talk.log() == "u1 a1 u2 a2"


async def test_an_encoded_session_in_the_path_is_decoded(one: Rig) -> None:
    talk = Talk(one, "a/b?c%", {})
    await talk.say("u1", "a1")
    path = Talk(one, "a/b?c%", {}, "/s/a%2Fb%3Fc%25/v1/chat/completions")
    assert await path.say("u2", "a2") == "u1 a1 u2"


async def test_an_azure_deployment_has_memory_too(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    talk.path = "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
    assert await talk.say("u2", "a2") == "u1 a1 u2"
    target = one.up.requests[-1].target
    assert target == b"/v1/deployments/gpt/chat/completions?api-version=2024-10-21"
