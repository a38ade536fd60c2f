"""With ``cache_marks`` the proxy marks the steady part of its prompts, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proxy.chat.cachemarks import MARKS
from tests.support.rig import CHAT, KEY, Rig, rig
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.recalling import with_memories
from tests.support.talk.responding import ItemTalk
from tests.support.upstream.answers import Script, chat_completion, error_answer, json_answer
from tests.support.upstream.anthropic import answered
from tests.support.upstream.anthropic import text as block
from tests.support.upstream.connection import Request
from tests.support.upstream.strict import Refused, few_marks, validate

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]

GPT, CLAUDE = "gpt-5.6", "anthropic/claude-sonnet-4.5"
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
PROFILES = {
    "plain": {"cache_marks": False},
    "separate": {"block_placement": "separate"},
    "tools": {"tools": {"enabled": True}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def marking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder = tmp_path_factory.mktemp("marking")
    async with rig(folder, memory__cache_marks=True, profiles=PROFILES) as ready:
        yield ready


@pytest.fixture
def one(marking: Rig) -> Rig:
    marking.reset()
    return marking


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def marks_in(what: object) -> int:
    return sum(json.dumps(what).count(f'"{mark}"') for mark in MARKS)


def marked(request: Request, listed: str = "messages") -> list[int]:
    return [at for at, each in enumerate(request.json[listed]) if marks_in(each)]


def takes_no_marks(
    answer: str = "fine", names: str = "cache_control"
) -> Callable[[Request], Script]:
    """Refuses what has marks."""

    def script(request: Request) -> Script:
        if marks_in(request.json):
            return error_answer(400, f"messages.0.content.0: extra field {names}")
        return json_answer(chat_completion("fine"))

    return script


@pytest.mark.parametrize("model", [GPT, CLAUDE])
async def test_each_turn_marks_its_place_and_that_of_the_turn_before(one: Rig, model: str) -> None:
    talk = one.talk()
    for n in range(6):
        await talk.say(f"s1 u{n}" if not n else f"u{n}", f"a{n}", model=model)
        sent = one.up.requests[-1]
        asked = [at for at, x in enumerate(sent.json["messages"]) if x["role"] == "user"]
        assert marked(sent) == sorted({0, *asked[-3:-1]})
        assert marks_in(sent.json) <= 4
        validate(sent.json)
    assert not marks_in(await talk.bodies())
    assert await talk.log() == " ".join(f"u{n} a{n}" for n in range(6))


async def test_the_messages_api_gets_marks_whatever_the_model(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    for n in range(5):
        await talk.say(f"u{n}", f"a{n}", system="Be brief.")
        sent = one.up.requests[-1].json
        assert marks_in(sent["system"]) == 1
        assert marked(one.up.requests[-1]) == [2 * n - 3, 2 * n - 1][-n:] * bool(n)
    assert not marks_in(await talk.bodies())


async def test_responses_get_marks_on_items(one: Rig) -> None:
    talk = ItemTalk.of(one)
    for n in range(5):
        await talk.say(f"u{n}", f"a{n}", model=GPT)
        asked = [at for at, x in enumerate(talk.input) if x.get("role") == "user"]
        assert marked(one.up.requests[-1], "input") == asked[-3:-1]
    assert not marks_in(await talk.bodies())


async def test_a_conversation_that_the_proxy_keeps_is_marked_as_well(tmp_path: Path) -> None:
    settings = {"cache_marks": True, "emulate_response_state": True}
    async with rig(tmp_path, memory=settings) as one:
        talk = ItemTalk.of(one)
        previous: dict[str, str] = {}
        for n in range(4):
            answer = await talk.post({"model": GPT, "input": f"Question {n}?", **previous})
            assert answer.status_code == 200, answer.text
            previous = {"previous_response_id": answer.json()["id"]}
        asked = [at for at, x in enumerate(talk.input) if x.get("role") == "user"]
        assert len(asked) == 4
        assert marked(one.up.requests[-1], "input") == asked[-3:-1]


async def test_a_tool_loop_is_marked_as_it_grows(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", model=GPT)
    await talk.say("u2", "a2(c1)", model=GPT)
    await talk.say("t1:c1", "a3(c2)", model=GPT)
    await talk.say("t2:c2", "a4", model=GPT)
    sent = one.up.requests[-1].json["messages"]
    assert [sent[at]["role"] for at in marked(one.up.requests[-1])] == ["user", "tool", "tool"]


@pytest.mark.parametrize("placed", ["", "separate"])
async def test_marks_stand_before_what_recall_puts_in(one: Rig, placed: str) -> None:
    profile = {"x_memory_profile": placed} if placed else {}
    person, word = await with_memories(one)
    talk = person.talk()
    for asked in ("Good morning!", "How are you today?", f"And {word}?"):
        await person.says(talk, asked, model=GPT, **profile)
    said = one.up.requests[-1].json["messages"]
    ours = [at for at, each in enumerate(said) if "<memory " in json.dumps(each)]
    assert ours == [4]
    assert marked(one.up.requests[-1]) == [0, 2]
    validate(one.up.requests[-1].json)


async def test_a_client_that_sends_all_of_it_is_still_recognised(one: Rig) -> None:
    talk = one.talk()
    said: list[str] = []
    for n in range(4):
        assert await talk.say(" ".join([*said, f"u{n}"]), f"a{n}", model=GPT) is not None
        said += [f"u{n}", f"a{n}"]
    assert await talk.log() == " ".join(said)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"x_memory_mode": "off"}, id="off"),
        pytest.param({"x_memory_mode": "write"}, id="write"),
        pytest.param({"x_memory_profile": "plain"}, id="another-profile"),
    ],
)
@pytest.mark.parametrize("model", [GPT, CLAUDE])
async def test_where_they_are_not_wanted_a_body_goes_as_it_came(
    one: Rig, more: dict[str, str], model: str
) -> None:
    sent = b'{ "model":"%b", "messages" : [{"role":"user","content":"u1"},' % model.encode()
    sent += b' {"role":"assistant","content":"a1"},{"role":"user","content":"u2"}] }'
    await one.talk().post(sent, **more)
    assert one.up.requests[-1].body == sent
    await one.client.post(CHAT, content=sent, headers={"authorization": f"Bearer {KEY}"})
    assert one.up.requests[-1].body == sent


async def test_requests_beside_the_conversation_get_none(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", model=GPT)
    said = [user("x"), {"role": "assistant", "content": "y"}, user("### Task: a title")]
    answer = await talk.ask(said, model=GPT)
    assert answer.headers["x-memory-reason"] == "side_request"
    assert not marks_in(one.up.requests[-1].json)


async def test_a_count_of_tokens_gets_none(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    talk.path += "/count_tokens"
    await talk.ask([user("u2")])
    assert not marks_in(one.up.requests[-1].json)


async def test_a_model_that_is_not_known_to_take_them_gets_none(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", model="llama3")
    await talk.say("u2", "a2", model="llama3")
    sent = one.up.requests[-1].json
    assert not marks_in(sent)
    assert sent.keys() == {"model", "messages"}
    one.up.reply(error_answer(400, "no"))
    assert (await talk.ask([user("u3")], model="llama3")).status_code == 400
    assert len(one.up.requests) == 3


async def test_the_key_tells_sessions_apart_and_nothing_of_them(one: Rig) -> None:
    keys = []
    for talk in (one.talk(), one.talk()):
        for n in range(2):
            await talk.say(f"u{n}", f"a{n}", model=GPT)
            keys.append(one.up.requests[-1].json["prompt_cache_key"])
            assert talk.session not in one.up.requests[-1].body.decode()
    assert keys[0] == keys[1] != keys[2] == keys[3]


async def test_a_client_that_marks_its_newest_message_never_has_more_than_four(one: Rig) -> None:
    talk = one.talk()
    for n in range(6):
        text = {"type": "text", "text": f"question {n}"}
        asked = {"role": "user", "content": [{**text, **POINT}, {**text, **POINT}]}
        answer = await talk.ask([asked], json_answer(chat_completion(f"answer {n}")), model=GPT)
        assert answer.status_code == 200, answer.text
        few_marks(one.up.requests[-1].json)
        assert one.up.requests[-1].json["messages"][-1] == asked
    assert marks_in(one.up.requests[-1].json) == 4
    assert not marks_in(await talk.bodies())


@pytest.mark.parametrize("names", ["cache_control", "prompt_cache_breakpoint", "content: a string"])
async def test_an_upstream_that_takes_none_is_asked_without_and_that_is_known(
    tmp_path: Path, names: str
) -> None:
    async with rig(tmp_path, memory__cache_marks=True) as one:
        one.up.always(takes_no_marks(names=names))
        talk = one.talk()
        await talk.ask([user("u1")], model=GPT)
        answer = await talk.ask([user("u2")], model=GPT)
        assert answer.status_code == 200
        assert answer.headers["x-memory-reason"] == "marks_refused"
        assert [bool(marks_in(x.json)) for x in one.up.requests] == [False, True, False]
        answer = await talk.ask([user("u3")], model=GPT)
        assert answer.headers["x-memory-reason"] == "marks_refused"
        said = [user("u1"), {"role": "assistant", "content": "a1"}, user("u2")]
        await talk.ask(said, model=GPT, x_session_id="another")
        assert not any(marks_in(x.json) for x in one.up.requests[3:])
        await talk.ask([user("u4")], model="gpt-6")
        assert [bool(marks_in(x.json)) for x in one.up.requests[5:]] == [True, False]
        assert len(await talk.bodies()) == 8


async def test_marks_are_not_to_blame_for_a_picture_that_is_refused(one: Rig) -> None:
    talk = one.talk()
    picture = {"type": "image_url", "image_url": {"url": "https://pictures/cat.png"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "u1"}, picture]}
    await talk.ask([asked], json_answer(chat_completion("a1")), model=GPT)
    gone, said = error_answer(400, "Error while downloading."), json_answer(chat_completion("a2"))
    before = len(one.up.requests)
    one.up.always(lambda request: gone if '"image_url": {' in json.dumps(request.json) else said)
    answer = await talk.ask([user("u2")], model=GPT)
    assert (answer.status_code, answer.headers["x-memory-reason"]) == (200, "media_refused")
    assert [bool(marks_in(x.json)) for x in one.up.requests[before:]] == [True, False, True]
    other = one.talk()
    await other.say("u1", "a1", model=GPT)
    await other.say("u2", "a2", model=GPT)
    assert marked(one.up.requests[-1])


async def test_the_messages_api_is_asked_again_as_well(tmp_path: Path) -> None:
    async with rig(tmp_path, memory__cache_marks=True) as one:
        talk = MessagesTalk.on(one)
        await talk.say("u1", "a1")
        refusal = error_answer(422, "body.messages.1.content: cache_control: extra inputs")
        one.up.reply(refusal)
        assert (await talk.ask([user("Two?")], answered(block("Two.")))).status_code == 200
        assert [marks_in(x.json) for x in one.up.requests] == [0, 1, 0]


async def test_beside_marks_of_the_client_a_refusal_says_nothing_of_others(tmp_path: Path) -> None:
    async with rig(tmp_path, memory__cache_marks=True) as one:
        talk = one.talk()
        await talk.say("u1", "a1", model=GPT)
        await talk.say("u2", "a2", model=GPT)
        asked = {"role": "user", "content": [{"type": "text", "text": "x", **POINT}]}
        one.up.reply(error_answer(400, "prompt_cache_breakpoint: too many"))
        answer = await talk.ask([asked], json_answer(chat_completion("a3")), model=GPT)
        assert answer.status_code == 200
        await talk.say("u4", "a4", model=GPT)
        assert marked(one.up.requests[-1])


async def test_a_refusal_for_another_reason_is_the_clients_to_see(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1", model=GPT)
    await talk.say("u2", "a2", model=GPT)
    refusals = ((400, "", 2), (400, "n", 1), (404, "", 1), (429, "", 1), (500, "", 1))
    for status, param, asked in refusals:
        before = len(one.up.requests)
        one.up.reply(*[error_answer(status, "no", "why", param)] * asked)
        answer = await talk.ask([user("u3")], model=GPT, n=1)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, "why")
        assert len(one.up.requests) - before == asked
    await talk.say("u3", "a3", model=GPT)
    assert marked(one.up.requests[-1])


async def test_marks_go_with_memorys_own_tools(one: Rig) -> None:
    talk = one.talk(**{"x-user-id": "lea", "x-memory-profile": "tools"})
    for n in range(3):
        await talk.say(f"u{n}", f"a{n}", model=GPT)
    sent = one.up.requests[-1]
    assert len(sent.json["tools"]) == 2
    assert marked(sent) == [0, 2]
    one.up.reply(error_answer(400, "prompt_cache_options is not supported for tools"))
    await talk.say("u3", "a3", model=GPT)
    assert len(one.up.requests[-1].json["tools"]) == 2
    assert not marked(one.up.requests[-1])


async def test_the_strict_upstream_refuses_what_providers_refuse() -> None:
    part = {"type": "text", "text": "x", **POINT}
    five = {"model": "m", "messages": [{"role": "user", "content": [part] * 5}]}
    wrong = {"model": "m", "messages": [user("x"), {"role": "assistant", "content": [part]}]}
    empty = {"model": "m", "messages": [{"role": "user", "content": [{**part, "text": ""}]}]}
    for body in (five, wrong, empty):
        with pytest.raises(Refused):
            validate(body)
