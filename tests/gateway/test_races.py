"""Requests of one session at the same time, of which some take back what others go on from: the log
is one conversation all the way, by socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import pytest

from proxy.gateway.recording import open_turns
from tests.support.rig import Rig, Talk
from tests.support.talk.words import answer, messages
from tests.support.upstream.answers import sse
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

BEFORE = ("u1", "a1"), ("u2", "a2")


async def raced(talk: Talk, *sent: tuple[str, str], **headers: str) -> None:
    """What was sent, and what is answered: all begin before the first one ends, in this order."""
    asked = []
    for number, (said, answered) in enumerate(sent, len(talk.rig.up.requests) + 1):
        pieces, release = answer(answered, stream=True).pieces, asyncio.Event()
        talk.rig.up.reply(sse([*pieces[:2], release, *pieces[2:]]))
        asked.append((release, asyncio.create_task(_ask(talk, said, headers))))
        await talk.rig.up.wait_for(number)
    for release, task in asked:
        release.set()
        await task


async def _ask(talk: Talk, said: str, headers: Mapping[str, str]) -> None:
    response = await talk.ask(messages(said), None, stream=True, **headers)
    assert response.status_code == 200, response.text


async def broken_off(talk: Talk, said: str, answered: str) -> asyncio.Event:
    """Ask, and leave in the midst of the answer, which is recorded once the event is set."""
    pieces, recorded = answer(answered, stream=True).pieces, talk.rig.store.hold()
    talk.rig.up.reply(sse([*pieces[:2], asyncio.Event()]))
    asked = json.dumps({"model": "scripted-1", "messages": messages(said), "stream": True})
    async with talk.rig.client.stream(
        "POST", talk.path, content=asked, headers=talk.all_headers
    ) as response:
        await anext(response.aiter_bytes())
    await talk.rig.store.held_back.wait()
    talk.rig.store.gate = None
    return recorded


async def committed(rig: Rig, *, incomplete: bool) -> None:
    async def so() -> bool:
        return any(x.exchange.incomplete is incomplete for x in rig.store.commits)

    await eventually(so)


async def had(rig: Rig) -> Talk:
    talk = rig.talk()
    for asked, answered in BEFORE:
        await talk.say(asked, answered)
    return talk


@pytest.mark.parametrize(
    ("first", "second", "log"),
    [
        pytest.param("u1 a1 u5", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a9", id="edit-and-onward"),
        pytest.param("u1 a1 u2 a2 u3", "u1 a1 u5", "u1 a1 u5 a9", id="onward-and-edit"),
        pytest.param("u1 a1 u5", "u1 a1 u6", "u1 a1 u6 a9", id="two-edits"),
        pytest.param("u1 a1 u2", "u1 a1 u2", "u1 a1 u2 a9", id="two-regenerations"),
        pytest.param("u1 a1 u2", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a9", id="regenerate-and-onward"),
        pytest.param("u1 a1 u2 a2 u3", "u1 a1 u2 a2 u4", "u1 a1 u2 a2 u3 a8 u4 a9", id="onward"),
    ],
)
async def test_the_branch_that_is_recorded_last_is_whole(
    every: Rig, first: str, second: str, log: str
) -> None:
    talk = await had(every)
    await raced(talk, (first, "a8"), (second, "a9"))
    assert await talk.log() == log


@pytest.mark.parametrize("before", [(), BEFORE[:1]], ids=["at-the-beginning", "later"])
@pytest.mark.parametrize(
    ("second", "log"),
    [
        pytest.param("u1 a1 u2 a2 u4", "u1 a1 u2 a2 u3 a8 u4 a9", id="all-of-it"),
        pytest.param("u1 a1 u2 a7 u4", "u1 a1 u2 a2 u3 a8 u2 a7 u4 a9", id="another-answer"),
        pytest.param("u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a8 u3 a9", id="the-same"),
    ],
)
async def test_what_several_bring_from_elsewhere_at_once_is_in_the_log_once(
    every: Rig, before: Sequence[tuple[str, str]], second: str, log: str
) -> None:
    talk = every.talk()
    for asked, answered in before:
        await talk.say(asked, answered)
    await raced(talk, ("u1 a1 u2 a2 u3", "a8"), (second, "a9"))
    assert await talk.log() == log
    assert await talk.say(f"{second} a9 u5", "a5") == f"{log} u5"


async def test_it_is_also_where_others_stand_before_it(every: Rig) -> None:
    talk = every.talk()
    first, second = (
        (("u1 a1 u2", "a2"), ("u3 a3 u4", "a4")),
        (("u1 a1 u5", "a5"), ("u3 a3 u6", "a6")),
    )
    await raced(talk, ("u9", "a9"), *first, *second)
    assert await talk.log() == "u9 a9 u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6 a6"


async def test_what_others_had_brought_does_not_come_back_with_a_branch(every: Rig) -> None:
    talk = every.talk()
    await raced(talk, ("u1 a1 u2", "a8"), ("u1 a1 u3", "a9"))
    await talk.say("u1 a1 u2 a8 u3", "a7")
    assert await talk.log() == "u1 a1 u2 a8 u3 a7"
    before = every.store.commits[-2].drafts[-1].card.id
    path = f"/memory/v1/sessions/{talk.session}/messages/{before}/activate"
    back = await every.client.post(path, headers=talk.all_headers)
    assert back.status_code == 200, back.text
    assert await talk.log() == "u1 a1 u2 a8 u3 a9"


async def test_of_two_that_take_back_the_same_turn_one_is_the_log(every: Rig) -> None:
    talk = await had(every)
    await raced(talk, ("u5", "a8"), ("u6", "a9"), x_memory_rewind="1")
    assert await talk.log() == "u1 a1 u6 a9"
    assert await talk.gone() == "u2 a2 u5 a8"


async def test_of_many_edits_the_last_one_is_the_log(every: Rig) -> None:
    talk = await had(every)
    await raced(talk, *((f"u1 a1 u{n}", f"a{n}") for n in range(12, 19)))
    assert await talk.log() == "u1 a1 u18 a18"


async def test_what_was_taken_back_by_hand_does_not_come_back(every: Rig) -> None:
    talk = await had(every)
    pieces, release = answer("a3", stream=True).pieces, asyncio.Event()
    every.up.reply(sse([*pieces[:2], release, *pieces[2:]]))
    asked = len(every.up.requests) + 1
    going_on = asyncio.create_task(_ask(talk, "u1 a1 u2 a2 u3", {}))
    await every.up.wait_for(asked)
    path = f"/memory/v1/sessions/{talk.session}/rewind"
    taken = await every.client.post(path, json={"turns": 1}, headers=talk.all_headers)
    assert taken.status_code == 200, taken.text
    release.set()
    await going_on
    assert await talk.log() == "u1 a1 u3 a3"


@pytest.mark.parametrize("before", [BEFORE, ()], ids=["later", "at-the-beginning"])
@pytest.mark.parametrize("said", ["alone", "whole"])
@pytest.mark.parametrize("late", [False, True], ids=["before-the-other", "behind-the-other"])
async def test_what_is_stopped_and_asked_again_at_once_is_in_the_log_once(
    every: Rig,
    before: Sequence[tuple[str, str]],
    said: str,
    late: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_turns, "TIMEOUT", 0)  # as if the other request came to another worker
    talk = every.talk()
    for asked, answered in before:
        await talk.say(asked, answered)
    every.store.commits.clear()
    told = "u1 a1 u2 a2 u3" if before and said == "whole" else "u3"
    recorded = await broken_off(talk, told, "a8")
    number = len(every.up.requests) + 1
    pieces, release = answer("a9", stream=True).pieces, asyncio.Event()
    every.up.reply(sse([*pieces[:2], release, *pieces[2:]]))
    again = asyncio.create_task(_ask(talk, told, {}))
    await every.up.wait_for(number)
    if not late:
        recorded.set()
        await committed(every, incomplete=True)
    release.set()
    await again
    recorded.set()
    await committed(every, incomplete=True)
    assert await talk.log() == "u1 a1 u2 a2 u3 a9".removeprefix("" if before else "u1 a1 u2 a2 ")
