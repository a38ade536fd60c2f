"""Rolling summaries, from the socket to the store and back into the prompt."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from proxy.memory.erasure import steady_now
from proxy.summary.writer import MAX_HALVINGS
from tests.support.rig import Rig, rig
from tests.support.store.places import IN_GROUPS, Places
from tests.support.talk.recalling import blocks_in
from tests.support.upstream.answers import chat_completion, error_answer, json_answer
from tests.support.upstream.scribing import (
    PROMPT,
    SCRIBE,
    Gate,
    Prompt,
    Scribe,
    all_done,
    chats,
    markers,
    nothing_waits,
    says,
    summarised,
    summary_of,
    told_once,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUMMARY = {"enabled": True, "model": SCRIBE, "prompt": PROMPT, "max_tokens": 300}
BARE = {"max_tokens": 600, "recall": {"enabled": False}, "summary": SUMMARY}
"""A window of 300 tokens: some 15 turns of twelve words and an answer."""

PROFILES = {
    "buffer": BARE,
    "all": {**BARE, "summary": {**SUMMARY, "mode": "summary"}},
    "apart": {**BARE, "block_placement": "separate"},
    "few": {
        **BARE,
        "window": "message_window",
        "max_messages": 4,
        "evict_to": 1.0,
        "max_tokens": 4000,
    },
    "pair": {**BARE, "window": "message_window", "max_messages": 2, "evict_to": 1.0},
    "same": {**BARE, "summary": {**SUMMARY, "mode": "summary", "model": ""}},
    "patient": {**BARE, "summary": {**SUMMARY, "mode": "summary", "after_turns": 3}},
}


SAID = [
    "Hi, I'm hungry!",
    "I feel like eating instant noodles.",
    "How long do they cook?",
]
HUNGRY = ["The human is hungry.", "The human is hungry and wants instant noodles."]


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=IN_GROUPS,
)
async def summarising(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("summarising")
    with ExitStack() as started:
        url = Places(started).of(str(request.param), folder).url
        async with rig(
            folder,
            store__url=url,
            profiles=PROFILES,
            background__retry_seconds=0.05,
            background__max_retry_seconds=0.2,
        ) as ready:
            yield ready


@pytest_asyncio.fixture(loop_scope="session")
async def one(summarising: Rig) -> AsyncIterator[Rig]:
    """A proxy with these profiles on each of the stores in turn; no work is left behind."""
    summarising.reset()
    yield summarising
    Scribe(summarising.up)
    await nothing_waits(summarising.store)


async def test_hungry_then_noodles_each_prompt_has_the_new_summary_and_no_older_turn(
    one: Rig,
) -> None:
    """The conversation that LangChain's chapter on summaries is known for."""
    Scribe(one.up, lambda text: json_answer(chat_completion(HUNGRY["noodles" in text])))
    talk = one.talk(**{"x-memory-profile": "all"})
    for number, text in enumerate(SAID):
        await talk.ask([{"role": "user", "content": text}])
        sent = chats(one.up)[-1].messages
        assert blocks_in(sent).get("summary") == (HUNGRY[number - 1] if number else None)
        assert [m["content"] for m in sent if m["role"] == "user"] == [text]
        assert not [m for m in sent if m["role"] == "assistant"]
        await summarised(talk, number + 1)


async def test_hungry_then_noodles_with_a_buffer_the_last_turn_is_there_as_it_was_said(
    one: Rig,
) -> None:
    Scribe(one.up, lambda text: json_answer(chat_completion(HUNGRY["noodles" in text])))
    talk = one.talk(**{"x-memory-profile": "pair"})
    for number, text in enumerate(SAID):
        await talk.ask([{"role": "user", "content": text}])
        sent = chats(one.up)[-1].messages
        assert blocks_in(sent).get("summary") == (HUNGRY[number - 2] if number > 1 else None)
        rest = [m["content"] for m in sent if m["role"] != "system"]
        assert rest == ([SAID[number - 1], "ok", text] if number else [text])
        await all_done(talk)


async def test_with_a_buffer_the_last_turns_are_there_as_they_were_said(one: Rig) -> None:
    scribe = Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "buffer"})
    versions = 0
    for number in range(60):
        prompt = await says(talk, number)
        told_once(prompt, number + 1)
        if len(scribe.asked) > versions:
            versions = len(scribe.asked)
        await all_done(talk)
    assert versions >= 3
    assert prompt.told and len(prompt.shown) >= 8
    once = [n for lines in scribe.new_lines for n in markers(lines)]
    assert once == [str(n) for n in range(len(once))]


async def test_a_summary_is_written_at_once_though_the_clock_was_put_back(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    Scribe(one.up)
    monkeypatch.setattr(steady_now, "_last", time.time() + 3600)
    talk = one.talk(**{"x-memory-profile": "all"})
    await says(talk, 0)
    assert [due.due_at for due in one.store.commits[0].work_requests] <= [time.time()]
    await summarised(talk, 1)


async def test_a_window_of_messages_is_summarised_too(one: Rig) -> None:
    Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "few"})
    for number in range(12):
        prompt = await says(talk, number)
        told_once(prompt, number + 1)
        await all_done(talk)
    assert len(prompt.shown) == 3  # two turns, and the one that is said


async def test_turns_that_arrive_while_the_summary_is_written_are_neither_lost_nor_told_twice(
    one: Rig,
) -> None:
    scribe = Scribe(one.up, gate := Gate())
    talk = one.talk(**{"x-memory-profile": "all"})
    for number in range(6):
        told_once(await says(talk, number), number + 1)
    gate.open.set()
    await all_done(talk)
    prompt = await says(talk, 6)
    told_once(prompt, 7)
    assert prompt.shown == ["6"]
    once = [n for lines in scribe.new_lines for n in markers(lines)]
    assert sorted(set(once), key=int) == once[: len(set(once))]


async def test_it_waits_for_as_many_turns_as_it_is_told_to(one: Rig) -> None:
    scribe = Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "patient"})
    for number in range(7):
        told_once(await says(talk, number), number + 1)
        await all_done(talk)
    assert [markers(lines) for lines in scribe.new_lines] == [["0", "1", "2"], ["3", "4", "5"]]


async def test_while_the_model_is_away_the_window_evicts_and_later_all_is_folded_in(
    one: Rig,
) -> None:
    down = error_answer(503, "overloaded")
    scribe = Scribe(one.up, lambda text: down)
    talk = one.talk(**{"x-memory-profile": "buffer"})
    for number in range(40):
        prompt = await says(talk, number)
        assert prompt.summary is None
        assert prompt.shown[-1] == str(number)
    await one.up.wait_for(41)
    assert int((await talk.ask([])).headers["x-memory-tokens"]) <= 600
    scribe.asked.clear()
    scribe.plays = summary_of
    await summarised(talk, 1)
    await all_done(talk)
    told_once(await says(talk, 40), 41)
    once = [n for lines in scribe.new_lines for n in markers(lines)]
    assert once == [str(n) for n in range(len(once))]


async def test_what_is_refused_is_asked_again_without_it_and_then_no_more(one: Rig) -> None:
    scribe = Scribe(one.up, lambda text: error_answer(400, "no such model", "model_not_found"))
    talk = one.talk(**{"x-memory-profile": "few"})
    for number in range(3):
        await says(talk, number)
        await all_done(talk)
    assert 1 < len(scribe.asked) <= MAX_HALVINGS + 2
    prompt = await says(talk, 3)
    assert prompt.shown == ["1", "2", "3"]


async def test_where_a_summary_is_to_tell_all_a_model_that_is_away_leaves_the_newest_turns(
    one: Rig,
) -> None:
    scribe = Scribe(one.up, lambda text: error_answer(400, "no such model", "model_not_found"))
    talk = one.talk(**{"x-memory-profile": "all"})
    for number in range(40):
        prompt = await says(talk, number)
        await all_done(talk)
        newest = [str(n) for n in range(number + 1)][-len(prompt.shown) :]
        assert prompt.shown == newest
        assert len(newest) >= min(number + 1, 15)
    scribe.plays = summary_of
    assert len(prompt.shown) < 40
    await says(talk, 40)
    await all_done(talk)
    told_once(await says(talk, 41), 42)


@pytest.mark.parametrize("bad", ["", "Sure! How can I help you today?", "word " * 500])
async def test_what_is_no_summary_is_asked_for_once_more_and_then_left(one: Rig, bad: str) -> None:
    scribe = Scribe(one.up, lambda text: json_answer(chat_completion(bad)))
    talk = one.talk(**{"x-memory-profile": "few"})
    for number in range(3):
        await says(talk, number)
        await all_done(talk)
    assert len(scribe.asked) == 2
    scribe.plays = summary_of
    await says(talk, 3)
    await summarised(talk, 1)
    told_once(await says(talk, 4), 5)


async def test_the_request_is_minimal_and_carries_the_clients_key_and_no_session(one: Rig) -> None:
    scribe = Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all", "x-user-id": "kai"})
    await says(talk, 0)
    await summarised(talk, 1)
    request = scribe.asked[0]
    assert request.json == {"model": SCRIBE, "messages": request.messages}
    assert [message["role"] for message in request.messages] == ["user"]
    assert request.messages[0]["content"].startswith("SO FAR: (none)\nNEW:\n[")
    assert request.header("authorization") == "Bearer sk-test"
    names = {name.decode().lower() for name, _ in request.headers}
    assert not {name for name in names if name.startswith(("x-memory", "x-session", "x-user"))}


async def test_it_stands_behind_the_clients_own_system_message(one: Rig) -> None:
    Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all"})
    await says(talk, 0)
    await summarised(talk, 1)
    system = {"role": "system", "content": "Be brief."}
    await talk.ask([system, {"role": "user", "content": "[1] more"}])
    first = chats(one.up)[-1].messages[0]
    assert first["role"] == "system"
    assert first["content"].startswith('Be brief.\n\n<memory version="1" kind="summary">')
    talk.headers["x-memory-profile"] = "apart"
    await talk.ask([system, {"role": "user", "content": "[2] more"}])
    messages = chats(one.up)[-1].messages
    assert messages[0] == system
    assert blocks_in(messages[1:2])["summary"].startswith("Told:")


async def test_a_block_that_a_client_sends_back_is_not_remembered(one: Rig) -> None:
    scribe = Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all"})
    await says(talk, 0)
    await summarised(talk, 1)
    await talk.ask([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "[1]"}])
    await summarised(talk, 2)
    seen = chats(one.up)[-1].messages[0]
    await talk.ask([seen, {"role": "user", "content": "[2]"}])
    await summarised(talk, 3)
    session = await one.store.session(talk.key)
    system = session.details.system
    assert system is not None and b"memory version" not in system
    assert not [text for text in scribe.texts if "memory version" in text]


async def test_a_rewind_behind_a_summary_brings_back_the_one_before(one: Rig) -> None:
    Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all"})
    for number in range(4):
        await says(talk, number)
        await summarised(talk, number + 1)
    prompt = await says(talk, 9, x_memory_rewind="2")
    assert (prompt.told, prompt.shown) == (["0", "1"], ["9"])
    await all_done(talk)
    prompt = await says(talk, 10)
    assert (prompt.told, prompt.shown) == (["0", "1", "9"], ["10"])


async def test_a_client_that_sends_its_whole_conversation_gets_no_summary_of_it(one: Rig) -> None:
    Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all"})
    sent: list[dict[str, object]] = []
    for number in range(3):
        sent.append({"role": "user", "content": f"[{number}]"})
        response = await talk.ask(sent)
        assert Prompt(chats(one.up)[-1].messages).summary is None
        sent.append(response.json()["choices"][0]["message"])
        await all_done(talk)


async def test_mode_write_adds_no_summary_and_a_tight_bound_leaves_it_out(one: Rig) -> None:
    Scribe(one.up)
    talk = one.talk(**{"x-memory-profile": "all"})
    await says(talk, 0)
    await summarised(talk, 1)
    assert (await says(talk, 1, x_memory_mode="write")).summary is None
    assert (await says(talk, 2, x_memory_max_tokens="5")).summary is None
    response = await talk.ask([{"role": "user", "content": "[3]"}], x_memory_mode="read")
    assert int(response.headers["x-memory-tokens"]) > 5


async def test_without_a_model_of_its_own_it_asks_the_one_that_the_app_asked_for(one: Rig) -> None:
    talk = one.talk(**{"x-memory-profile": "same"})
    one.up.always(json_answer(chat_completion("Told: all.", model="what-the-reply-says")))
    await talk.ask([{"role": "user", "content": "[0]"}])
    await summarised(talk, 1)
    assert [request.json["model"] for request in one.up.requests] == ["scripted-1"] * 2
