"""No request carries more cache marks than its client has set, whatever is remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.memory.model import Card, Commit, Draft, Exchange
from tests.support.rig import Rig
from tests.support.upstream.answers import chat_completion, json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARKS = ("cache_control", "prompt_cache_breakpoint")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def marks_in(what: object) -> int:
    return sum(json.dumps(what).count(f'"{mark}"') for mark in MARKS)


def said(text: str, **mark: object) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text, **mark}]}


@pytest.mark.parametrize("mark", MARKS)
async def test_a_client_that_marks_its_newest_message_never_gets_the_old_marks_back(
    one: Rig, mark: str
) -> None:
    talk = one.talk()
    for n in range(6):
        asked = said(f"question {n}", **{mark: {"type": "ephemeral"}})
        system = {**said("be brief", **{mark: {}}), "role": "system"}
        sent = [system, asked] if not n else [asked]
        answer = await talk.ask(sent, json_answer(chat_completion(f"answer {n}")))
        assert answer.status_code == 200
        got = one.up.requests[-1].messages
        assert len(got) == 2 * n + 2
        assert got[-1] == asked
        assert marks_in(got) == (1 if n else 2)
    assert not marks_in(await talk.bodies())


@pytest.mark.parametrize("mark", MARKS)
async def test_a_mark_that_moves_on_an_image_is_the_same_image(one: Rig, mark: str) -> None:
    talk = one.talk()
    history: list[dict[str, Any]] = []
    for n in range(4):
        text = {"type": "text", "text": f"what is this, {n}?"}
        history.append({"role": "user", "content": [text, IMAGE]})
        newest = {"role": "user", "content": [text, IMAGE | {mark: {}}]}
        await talk.ask(
            [*history[:-1], newest], json_answer(chat_completion(f"it is {n}, of course"))
        )
        assert one.up.requests[-1].messages == [*history[:-1], newest]
        history.append({"role": "assistant", "content": f"it is {n}, of course"})
    assert len(await talk.bodies()) == 8


async def test_marks_that_an_older_release_has_stored_are_not_sent(one: Rig) -> None:
    talk = one.talk()
    system = json.dumps([{**said("be brief", cache_control={}), "role": "system"}]).encode()
    old = Exchange(id="old", profile="", started_at=1.0, created_at=1.0)
    cards = [
        Card(id=f"old.{n}", role=role, tokens=5, digest=role, evidence=n == 1)
        for n, role in enumerate(("user", "assistant"))
    ]
    bodies = [{**said("a word", cache_control={}), "role": card.role} for card in cards]
    drafts = tuple(
        Draft(card=card, turn="old.0", body=json.dumps(body).encode())
        for card, body in zip(cards, bodies, strict=True)
    )
    await one.store.real.commit(talk.key, Commit(exchange=old, drafts=drafts, system=system))
    assert marks_in(await talk.bodies()) == 2
    await talk.ask([{"role": "user", "content": "u2"}], json_answer(chat_completion("a2")))
    got = one.up.requests[-1].messages
    assert [x["role"] for x in got] == ["system", "user", "assistant", "user"]
    assert not marks_in(got)


async def test_an_import_brings_no_marks(one: Rig) -> None:
    talk = one.talk()
    marked = said("hello", cache_control={}, prompt_cache_breakpoint={})
    body = {"messages": [{**marked, "role": "system"}, marked, {**marked, "role": "assistant"}]}
    url = f"/memory/v1/sessions/{talk.session}/messages"
    answer = await one.client.post(url, json=body, headers=talk.all_headers)
    assert answer.status_code < 300, answer.text
    change = {"system": {**marked, "role": "system"}}
    assert not marks_in(await talk.bodies())
    session = f"/memory/v1/sessions/{talk.session}"
    found = await one.client.get(session, headers=talk.all_headers)
    assert not marks_in(found.json()["system"])
    changed = await one.client.patch(session, json=change, headers=talk.all_headers)
    assert changed.status_code == 200, changed.text
    assert not marks_in(changed.json()["system"])
