"""Responses that are made in the background: recorded once, when they are fetched."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.rig import Rig, rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items
from tests.support.upstream.answers import Script, json_answer, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKED = {"model": "gpt-5", "input": "u2", "background": True}
QUEUED = items.response([], status="queued", background=True, usage=None)
DONE = {
    **items.response([items.thought(), items.said("Done.")], background=True),
    "id": QUEUED["id"],
}
PATH = f"/v1/responses/{QUEUED['id']}"


async def begun(talk: ItemTalk) -> None:
    """A turn, then one whose answer is awaited."""
    await talk.say("u1", "a1")
    talk.rig.up.reply(json_answer(QUEUED))
    answered = await talk.post(ASKED)
    assert (answered.json(), talk.rig.up.requests[-1].json) == (QUEUED, ASKED)


async def fetched(talk: ItemTalk, whole: Any, path: str = PATH, **headers: str) -> None:
    talk.rig.up.reply(json_answer(whole))
    answered = await talk.rig.client.get(path, headers={**talk.all_headers, **headers})
    assert answered.json() == whole


async def test_the_answer_is_recorded_when_it_is_there(every: Rig) -> None:
    talk = ItemTalk.of(every)
    await begun(talk)
    assert await talk.log() == "u1 a1 u2"
    await fetched(talk, QUEUED)
    assert await talk.log() == "u1 a1 u2"
    for _ in range(3):
        await fetched(talk, DONE)
        assert await talk.log() == "u1 a1 u2 Done."
    await talk.say("u3", "a3")
    assert talk.sent == "u1 a1 u2 Done. u3"
    assert talk.input[-3:-1] == DONE["output"]


async def test_one_that_is_packed_against_our_wish_is_recorded_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await begun(talk)
    packed = (("content-type", "application/json"), ("content-encoding", "gzip"))
    one.up.reply(Script(headers=packed, pieces=[gzip.compress(json.dumps(DONE).encode())]))
    answered = await one.client.get(PATH, headers=talk.all_headers)
    assert answered.json() == DONE
    assert await talk.log() == "u1 a1 u2 Done."


async def test_what_is_said_meanwhile_stands_behind_it(every: Rig) -> None:
    talk = ItemTalk.of(every)
    await begun(talk)
    assert await talk.say("u3", "a3") == "u1 a1 u2 u3"
    await fetched(talk, DONE)
    assert await talk.log() == "u1 a1 u2 Done. u3 a3"


async def test_a_stream_that_is_taken_up_again_brings_it_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await begun(talk)
    events = items.events(DONE)[3:]
    one.up.reply(sse(events))
    path = f"{PATH}?stream=true&starting_after=2"
    answered = await one.client.get(path, headers=talk.all_headers)
    assert answered.content == b"".join(events)
    assert one.up.requests[-1].target.decode() == path
    assert await talk.log() == "u1 a1 u2 Done."


async def test_a_stream_in_the_background_is_recorded_as_any_other(one: Rig) -> None:
    talk = ItemTalk.of(one)
    one.up.reply(sse(items.events(DONE)))
    await talk.post({**ASKED, "stream": True})
    assert await talk.log() == "u2 Done."
    await fetched(talk, DONE)
    assert await talk.log() == "u2 Done."


async def test_one_that_was_cut_is_fetched(one: Rig) -> None:
    talk = ItemTalk.of(one)
    one.up.reply(sse(items.events(DONE)[:6]))
    await talk.post({**ASKED, "stream": True})
    assert await talk.log() == "u2"
    await fetched(talk, DONE)
    assert await talk.log() == "u2 Done."


async def test_so_is_one_whose_stream_breaks(every: Rig) -> None:
    talk = ItemTalk.of(every)
    events = items.events(DONE)
    every.up.reply(sse(events, cut=sum(map(len, events[:6]))))
    with pytest.raises(httpx.RemoteProtocolError):
        await talk.post({**ASKED, "stream": True})
    assert await talk.log() == "u2"
    every.up.reply(sse(events[6:]))
    path = f"{PATH}?stream=true&starting_after=5"
    await every.client.get(path, headers=talk.all_headers)
    assert await talk.log() == "u2 Done."


async def test_nothing_is_put_into_what_is_stored(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await begun(talk)  # there was a turn before it
    assert one.up.requests[-1].json == ASKED


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer sk-another"},
        {"x-session-id": "another"},
        {"x-memory-mode": "off"},
        {"x-memory-mode": "read"},
        {"x-user-id": "eve"},
    ],
)
async def test_who_fetches_it_for_another_session_brings_in_nothing(
    one: Rig, headers: dict[str, str]
) -> None:
    talk = ItemTalk.of(one, **{"x-user-id": "kai"})
    await begun(talk)
    await fetched(talk, DONE, **headers)
    assert await talk.log() == "u1 a1 u2"


async def test_another_answer_is_not_this_one(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await begun(talk)
    await fetched(talk, {**DONE, "id": "resp_other"}, "/v1/responses/resp_other")
    assert await talk.log() == "u1 a1 u2"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_one_that_failed_is_no_answer(one: Rig, status: str) -> None:
    talk = ItemTalk.of(one)
    await begun(talk)
    await fetched(talk, {**DONE, "status": status, "output": []})
    assert await talk.log() == "u1 a1 u2"


async def test_a_restart_in_between_does_not_matter(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        talk = ItemTalk.of(one)
        await begun(talk)
    async with rig(tmp_path) as again:
        later = ItemTalk(again, talk.session)
        again.up.always(later.upstream)
        await fetched(later, DONE)
        assert await later.log() == "u1 a1 u2 Done."
