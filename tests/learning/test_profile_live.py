"""Profiles, examples and instructions in a running proxy: learned in one chat, known in others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.learning.environment import adding
from tests.support.rig import KEY, Rig, Talk, rig
from tests.support.upstream.answers import Script, chat_completion, json_answer
from tests.support.upstream.connection import Request
from tests.support.waiting import eventually

WRITER = "writer"
"""The model of all that is learned; chats use another one."""

USER = {"x-user-id": "kai", "authorization": f"Bearer {KEY}"}
API = "/memory/v1"


def plays(request: Request) -> Script:
    """Chats are answered "Aye."; who is asked to learn finds what there is to find."""
    if request.json["model"] != WRITER:
        return json_answer(chat_completion("Aye."))
    text = request.messages[0]["content"]
    if "the profile of a person" in text:
        told = adding("/name", "Kai", "I am Kai") if "I am Kai" in text else '{"patch": []}'
        return json_answer(chat_completion(told))
    improved = {"instructions": "Speak like a sailor.", "why": "People like it."}
    return json_answer(chat_completion(json.dumps(improved)))


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Rig]:
    fast = {"enabled": True, "model": WRITER}
    settings: dict[str, Any] = {
        "memory__profile": {**fast, "after_turns": 1},
        "memory__episodes": fast,
        "memory__instructions": {**fast, "after_feedback": 1},
        "memory__recall__enabled": False,
    }
    async with rig(tmp_path, **settings) as running:
        running.up.always(plays)
        yield running


async def says(live: Rig, text: str) -> tuple[Talk, str]:
    """A session with one message; the text of all that the upstream got for it."""
    talk = live.talk(**USER)
    response = await talk.ask([{"role": "user", "content": text}])
    assert response.status_code == 200, response.text
    chats = [request for request in live.up.requests if request.json["model"] != WRITER]
    return talk, "\n".join(str(message["content"]) for message in chats[-1].messages)


async def seen(live: Rig, path: str) -> Any:
    response = await live.client.get(f"{API}/{path}", headers=USER)
    return response.json()


async def test_who_says_their_name_is_known_by_it_in_another_session(live: Rig) -> None:
    await says(live, "Hello, I am Kai.")

    async def learned() -> bool:
        return bool((await seen(live, "users/kai/profile"))["document"] == {"name": "Kai"})

    await eventually(learned)
    _, sent = await says(live, "What is my name?")
    assert '<memory version="1" kind="profile">' in sent and "\nname: Kai\n" in sent


async def test_a_good_answer_is_an_example_in_another_session(live: Rig) -> None:
    talk, _ = await says(live, "How do I tie a bowline knot?")
    (answer,) = [m.card.id for m in await talk.history() if m.card.role == "assistant"]
    path = f"{API}/sessions/{talk.session}/messages/{answer}/feedback"
    assert (await live.client.post(path, headers=USER, json={"score": 1})).status_code == 200
    _, sent = await says(live, "How should I tie a bowline?")
    assert "User: How do I tie a bowline knot?\nAnswer: Aye." in sent


async def test_feedback_makes_a_proposal_and_approved_it_is_in_the_system_message(
    live: Rig,
) -> None:
    talk, _ = await says(live, "How do I tie a bowline knot?")
    (answer,) = [m.card.id for m in await talk.history() if m.card.role == "assistant"]
    path = f"{API}/sessions/{talk.session}/messages/{answer}/feedback"
    assert (await live.client.post(path, headers=USER, json={"score": -1})).status_code == 200
    proposals: list[Any] = []

    async def proposed() -> bool:
        proposals[:] = (await seen(live, "instructions/default/proposals"))["data"]
        return bool(proposals)

    await eventually(proposed)
    assert proposals[0]["state"] == "pending" and proposals[0]["doubts"] == []
    _, sent = await says(live, "Hello!")
    assert "sailor" not in sent
    where = f"{API}/instructions/default/proposals/{proposals[0]['id']}/approve"
    assert (await live.client.post(where, headers=USER)).status_code == 200
    _, sent = await says(live, "Hello!")
    assert '<memory version="1" kind="instructions">' in sent and "Speak like a sailor." in sent
