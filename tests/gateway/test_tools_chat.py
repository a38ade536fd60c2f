"""Chats whose model saves and searches memory itself, over real sockets."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from proxy.memory.store import StoreError
from tests.support.rig import CHAT, Rig, Talk, rig
from tests.support.store.inside import nothing_left
from tests.support.talk.words import messages
from tests.support.upstream import raw
from tests.support.upstream.answers import (
    USAGE,
    Script,
    chat_completion,
    chat_stream,
    error_answer,
    json_answer,
    sse,
    tool_call,
)
from tests.support.upstream.spoken import SPOKEN, Spoken, cuts
from tests.support.upstream.thinking import Thinker
from tests.support.upstream.tooling import (
    SAVE,
    SEARCH,
    FakeTools,
    calls,
    saves,
    searches,
    seen,
    stream,
    text,
)
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
SAVING = json_answer(chat_completion("Noted. ", tool_calls=[tool_call(SAVE, '{"text": "x"}')]))
SEARCHING = json_answer(chat_completion(None, tool_calls=[tool_call(SEARCH, '{"query": "x"}')]))
END = json_answer(chat_completion("Done."))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tooling(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("tooling")
    profiles = {
        "none": {"tools": {"enabled": False}},
        "once": {"tools": {"max_rounds": 1}},
        "patient": {"on_disconnect": "drain"},
    }
    async with rig(folder, memory__tools__enabled=True, profiles=profiles) as ready:
        gateway = ready.proxy.application._gateway
        assert gateway is not None
        gateway._conversations._upstream_caller._tools = FakeTools()
        yield ready


@pytest.fixture
def one(tooling: Rig) -> Rig:
    tooling.reset()
    tools_of(tooling).reset()
    return tooling


def tools_of(rig: Rig) -> FakeTools:
    gateway = rig.proxy.application._gateway
    assert gateway is not None
    tools = gateway._conversations._upstream_caller._tools
    assert isinstance(tools, FakeTools)
    return tools


def talk(rig: Rig, **headers: str) -> Talk:
    return rig.talk(**{"x-user-id": f"kai-{uuid.uuid4().hex}"}, **headers)


def names(body: Any) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


async def exchange(talk: Talk, response: httpx.Response) -> Any:
    """The exchange's record, as the memory API shows it."""
    id = response.headers["x-memory-exchange-id"]
    found = await talk.rig.client.get(
        f"/memory/v1/sessions/{talk.session}/exchanges/{id}", headers=talk.all_headers
    )
    assert found.status_code == 200, found.text
    return found.json()


async def said(talk: Talk) -> list[tuple[str, Any]]:
    return [(one["role"], one["content"]) for one in await talk.bodies()]


# What is offered


async def test_both_functions_are_offered_behind_the_clients_own(one: Rig) -> None:
    mine = talk(one)
    await mine.ask(messages("u1"), END, tools=[WEATHER])
    sent = one.up.requests[-1].json
    assert names(sent) == ["get_weather", SAVE, SEARCH]
    assert sent["tools"][0] == WEATHER
    await mine.ask(messages("u2"), END)
    assert names(one.up.requests[-1].json) == [SAVE, SEARCH]
    assert sent["tools"][1:] == one.up.requests[-1].json["tools"]
    assert all(tool["function"]["description"] for tool in sent["tools"][1:])


@pytest.mark.parametrize(
    ("mode", "offered"), [("on", [SAVE, SEARCH]), ("read", [SEARCH]), ("write", [SAVE])]
)
async def test_nothing_is_saved_that_is_not_recorded_nor_read_that_may_not_be_read(
    one: Rig, mode: str, offered: list[str]
) -> None:
    await talk(one).ask(messages("u1"), END, x_memory_mode=mode)
    assert names(one.up.requests[-1].json) == offered


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        pytest.param({"x-memory-profile": "none"}, {}, id="switched-off"),
        pytest.param({"x-memory-mode": "off"}, {}, id="memory-off"),
        pytest.param({"x-user-id": ""}, {}, id="nobody-in-particular"),
        pytest.param({}, {"n": 2}, id="several-choices"),
        pytest.param({}, {"tools": [WEATHER], "tool_choice": "none"}, id="calls-forbidden"),
        pytest.param({}, {"tools": [WEATHER], "tool_choice": "required"}, id="a-call-demanded"),
        pytest.param(
            {},
            {
                "tools": [WEATHER],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            },
            id="one-call-demanded",
        ),
        pytest.param({}, {"tool_choice": "auto"}, id="a-choice-without-tools"),
        pytest.param({}, {"functions": [WEATHER["function"]]}, id="functions-of-old"),
        pytest.param({}, {"tools": [WEATHER] * 127}, id="too-many-tools"),
        pytest.param({}, {"tools": {}}, id="no-list"),
    ],
)
async def test_a_request_that_cannot_take_them_goes_as_it_came(
    one: Rig, headers: dict[str, str], more: dict[str, Any]
) -> None:
    mine = talk(one)
    mine.headers |= headers
    mine.headers = {name: value for name, value in mine.headers.items() if value}
    body = json.dumps({"model": "m", "messages": messages("u1"), **more}, indent=1).encode()
    one.up.reply(END)
    response = await mine.post(body)
    assert one.up.requests[-1].body == body
    assert response.headers.get("x-memory-reason") is None


async def test_a_title_request_is_offered_nothing(one: Rig) -> None:
    mine = talk(one)
    await mine.ask([{"role": "user", "content": "### Task: a title"}], END)
    assert names(one.up.requests[-1].json) == []


@pytest.mark.parametrize("name", [SAVE, SEARCH, f"{SAVE}_all"])
async def test_a_client_that_has_such_a_tool_keeps_its_own(one: Rig, name: str) -> None:
    tool = {"type": "function", "function": {"name": name}}
    calling = json_answer(chat_completion(None, tool_calls=[tool_call(name, "{}")]))
    response = await talk(one).ask(messages("u1"), calling, tools=[tool])
    assert one.up.requests[-1].json["tools"] == [tool]
    assert response.headers["x-memory-reason"] == "tool_name_taken"
    assert response.json() == json.loads(calling.pieces[0])  # type: ignore[arg-type]
    assert not tools_of(one).whose


async def test_an_upstream_that_takes_no_tools_is_asked_without(one: Rig) -> None:
    mine = talk(one)
    one.up.reply(error_answer(400, "gemma does not support tools"), END)
    response = await mine.ask(messages("u1"), model="gemma")
    assert response.json()["choices"][0]["message"]["content"] == "Done."
    assert [names(request.json) for request in one.up.requests] == [[SAVE, SEARCH], []]
    assert response.headers["x-memory-reason"] == "tools_refused"
    assert await said(mine) == [("user", "u1"), ("assistant", "Done.")]


async def test_a_model_that_takes_no_tools_is_offered_none_the_next_time(one: Rig) -> None:
    refusal = error_answer(400, "phi does not support tools")
    one.up.reply(refusal, END)
    await talk(one).ask(messages("u1"), model="phi")
    response = await talk(one).ask(messages("u1"), END, model="phi")
    assert [names(request.json) for request in one.up.requests] == [[SAVE, SEARCH], [], []]
    assert response.headers["x-memory-reason"] == "tools_refused"
    await talk(one).ask(messages("u1"), END, model="phi-next")
    assert names(one.up.requests[-1].json) == [SAVE, SEARCH]


async def test_tools_are_not_to_blame_for_a_picture_that_is_refused(one: Rig) -> None:
    mine = talk(one)
    picture = {"type": "image_url", "image_url": {"url": "https://pictures/cat.png"}}
    await mine.ask([{"role": "user", "content": [picture]}], END)
    gone = error_answer(400, "This message with role 'tool' contains an image URL.")
    one.up.always(lambda request: gone if '"image_url": {' in json.dumps(request.json) else END)
    before = len(one.up.requests)
    response = await mine.ask(messages("u2"))
    assert response.headers["x-memory-reason"] == "media_refused"
    offered = [names(request.json) for request in one.up.requests[before:]]
    assert offered == [[SAVE, SEARCH], [], [SAVE, SEARCH]]


async def test_tools_refused_beside_reasoning_are_offered_without(one: Rig) -> None:
    refusal = error_answer(400, "Function tools with reasoning_effort are not supported")
    one.up.reply(refusal, END)
    await talk(one).ask(messages("u1"), model="deep", reasoning_effort="high")
    await talk(one).ask(messages("u1"), END, model="deep", reasoning_effort="high")
    assert names(one.up.requests[-1].json) == []
    await talk(one).ask(messages("u1"), END, model="deep")
    assert names(one.up.requests[-1].json) == [SAVE, SEARCH]


async def test_a_refusal_that_holds_without_tools_as_well_teaches_nothing(one: Rig) -> None:
    refusal = error_answer(400, "tools are not supported, says who sent this")
    one.up.reply(refusal, refusal)
    response = await talk(one).ask(messages("u1"), model="slandered")
    assert response.status_code == 400
    await talk(one).ask(messages("u1"), END, model="slandered")
    assert names(one.up.requests[-1].json) == [SAVE, SEARCH]


async def test_another_error_passes_and_is_asked_for_once(one: Rig) -> None:
    response = await talk(one).ask(messages("u1"), error_answer(400, "no such model"))
    assert (response.status_code, len(one.up.requests)) == (400, 1)


# Plain answers


async def test_a_plain_answer_without_calls_is_byte_identical(one: Rig) -> None:
    mine = talk(one)
    body = b'{ "choices":[{"index":0, "message":{"content":"hi"},"finish_reason":"stop"}] }\n'
    extra = (("content-type", "application/json"), ("x-request-id", "r1"))
    one.up.reply(Script(headers=extra, pieces=[body]))
    sent = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    answer = await raw.ask(one.port, "POST", CHAT, mine.all_headers.items(), sent)
    assert answer.body == body
    assert answer.get("content-length") == b"%d" % len(body)
    assert answer.get("x-request-id") == b"r1"


async def test_a_plain_answer_is_that_of_all_rounds(one: Rig) -> None:
    mine = talk(one)
    one.up.reply(SAVING, SEARCHING, END)
    response = await mine.ask(messages("u1"), tools=[WEATHER])
    whole = response.json()
    assert whole["choices"][0]["message"]["content"] == "Noted. Done."
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert "tool_calls" not in whole["choices"][0]["message"]
    assert whole["usage"] == {name: 3 * n for name, n in USAGE.items()}
    assert len(response.content) == int(response.headers["content-length"])
    assert await said(mine) == [("user", "u1"), ("assistant", "Noted. Done.")]
    assert (tools_of(one).saved, tools_of(one).asked) == (["x"], ["x"])
    assert not one.up.refused
    record = await exchange(mine, response)
    assert record["usage"] == whole["usage"]
    runs = record["memory"]["tools"]
    assert [(run["round"], run["name"], run["ok"], run["items"]) for run in runs] == [
        (1, SAVE, True, ["fact_1"]),
        (2, SEARCH, True, ["fact_found"]),
    ]
    assert all(0 <= run["ms"] < 2000 for run in runs)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_further_round_of_a_model_that_must_get_its_thoughts_back(
    one: Rig, stream: bool
) -> None:
    up, model = Thinker(), f"thinker-{uuid.uuid4().hex}"
    one.up.always(up)
    rounds = []
    for thoughts in ("Worth keeping.", "", ""):
        up.says(None, thoughts, [tool_call(SAVE, '{"text": "x"}')])
        up.says("Done.")
        before = len(one.up.requests)
        answer = await talk(one).ask(messages("u1"), model=model, stream=stream)
        assert answer.status_code == 200, answer.text
        assert one.up.requests[-1].messages[1]["reasoning_content"] == thoughts
        rounds.append(len(one.up.requests) - before)
    assert rounds == [2, 3, 2]
    assert tools_of(one).saved == ["x"] * 3


async def test_the_model_calls_on_behalf_of_who_asks_and_from_where(one: Rig) -> None:
    mine = talk(one)
    one.up.reply(SAVING, END)
    response = await mine.ask(messages("u1"))
    (whose,) = tools_of(one).whose
    assert (whose.key, whose.user) == (mine.key, mine.headers["x-user-id"])
    assert whose.exchange == response.headers["x-memory-exchange-id"]


async def test_plain_calls_of_the_client_stay_in_the_answer(one: Rig) -> None:
    mine = talk(one)
    both = [tool_call(SAVE, '{"text": "x"}', "m1"), tool_call("get_weather", "{}", "c1")]
    one.up.reply(json_answer(chat_completion("so", tool_calls=both)))
    answer = (await mine.ask(messages("u1"), tools=[WEATHER])).json()
    assert answer["choices"][0]["message"]["tool_calls"] == [both[1]]
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert tools_of(one).saved == ["x"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    await mine.ask([result], END, tools=[WEATHER])
    assert not one.up.refused
    assert [one["role"] for one in one.up.requests[-1].messages] == ["user", "assistant", "tool"]


async def test_a_failing_further_round_of_a_plain_answer_is_what_the_client_gets(one: Rig) -> None:
    mine = talk(one)
    one.up.reply(SAVING, error_answer(429, "slow down"))
    response = await mine.ask(messages("u1"))
    assert (response.status_code, response.json()["error"]["message"]) == (429, "slow down")
    assert await mine.history() == []
    one.up.reply(SAVING, Script(drop=True))
    response = await mine.ask(messages("u1"))
    assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_unreachable")
    await nothing_left(one.proxy)


# Bounds and failures


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param("{", "not a JSON object", id="no-json"),
        pytest.param("[]", "not a JSON object", id="no-object"),
        pytest.param('{"fact": "x"}', '"text"', id="another-name"),
        pytest.param('{"text": " "}', '"text"', id="blank"),
        pytest.param(json.dumps({"text": "x" * 9000}), "longer than 8192 bytes", id="too-long"),
    ],
)
async def test_the_model_is_told_what_is_wrong_with_its_arguments(
    one: Rig, arguments: str, told: str
) -> None:
    mine = talk(one)
    one.up.reply(json_answer(chat_completion(None, tool_calls=[tool_call(SAVE, arguments)])), END)
    response = await mine.ask(messages("u1"))
    assert told in one.up.requests[-1].messages[-1]["content"]
    assert response.json()["choices"][0]["message"]["content"] == "Done."
    assert [run["ok"] for run in (await exchange(mine, response))["memory"]["tools"]] == [False]
    assert tools_of(one).saved == []


@pytest.mark.parametrize("failure", [StoreError("gone"), RuntimeError("a bug")], ids=str)
async def test_a_memory_that_fails_is_said_to_be_away(one: Rig, failure: Exception) -> None:
    tools_of(one).failure = failure
    one.up.reply(SAVING, END)
    response = await talk(one).ask(messages("u1"))
    assert response.json()["choices"][0]["message"]["content"] == "Noted. Done."
    assert "not available" in one.up.requests[-1].messages[-1]["content"]


async def test_memory_has_two_seconds_for_all_calls_of_an_answer(
    one: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.gateway.tools.toolbox.TIMEOUT", 0.05)
    mine = talk(one)
    tools_of(one).hold = asyncio.Event()
    one.up.reply(SAVING, SEARCHING, END)
    response = await mine.ask(messages("u1"))
    assert response.json()["choices"][0]["message"]["content"] == "Noted. Done."
    results = [m["content"] for m in one.up.requests[-1].messages if m["role"] == "tool"]
    assert len(results) == 2 and all("not available" in result for result in results)
    runs = (await exchange(mine, response))["memory"]["tools"]
    assert [run["ok"] for run in runs] == [False, False]
    assert runs[0]["ms"] >= 50 > runs[1]["ms"]


async def test_results_are_bounded(one: Rig) -> None:
    tools_of(one).found = "\n".join(f"line {n} of what was found" for n in range(2000))
    one.up.reply(SEARCHING, END)
    await talk(one).ask(messages("u1"))
    result = one.up.requests[-1].messages[-1]["content"]
    assert result.startswith("line 0 of what was found\n")
    assert len(result.split()) < 2000 < len(result)


async def test_a_round_of_very_many_calls_runs_few_of_them(one: Rig) -> None:
    many = [tool_call(SAVE, json.dumps({"text": f"{n}"}), f"m{n}") for n in range(50)]
    one.up.reply(json_answer(chat_completion(None, tool_calls=many)), END)
    await talk(one).ask(messages("u1"))
    assert len(tools_of(one).saved) == 8
    assert not one.up.refused


# Streams


async def gather(mine: Talk, *scripts: Script, **more: Any) -> tuple[httpx.Response, Any]:
    mine.rig.up.reply(*scripts)
    response = await mine.ask(messages("u1"), stream=True, **more)
    return response, seen(response.content)


async def test_a_stream_without_calls_is_byte_identical_and_comes_as_it_comes(one: Rig) -> None:
    mine, second, end = talk(one), asyncio.Event(), asyncio.Event()
    first, *rest = chat_stream(["a", "b"], include_usage=True)
    one.up.reply(sse([first, second, rest[0], end, *rest[1:]]))
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, mine.all_headers.items(), body))
        assert (await line.head())[0] == 200
        chunks = line.chunks()
        assert await anext(chunks) == first
        second.set()
        assert await anext(chunks) == rest[0]
        end.set()
        assert b"".join([chunk async for chunk in chunks]) == b"".join(rest[1:])


@pytest.mark.parametrize("feeding", ["whole", "events", "random"])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
async def test_a_stream_of_any_kind_passes_and_is_recorded_as_without_tools(
    one: Rig, spoken: Spoken, feeding: str
) -> None:
    records = []
    for profile in ("none", ""):
        mine = talk(one, **({"x-memory-profile": profile} if profile else {}))
        one.up.reply(sse(cuts(spoken.stream, feeding, b"\n")))
        response = await mine.ask(messages("u1"), stream=True, n=spoken.n)
        assert response.content == spoken.stream
        record = await mine.exchange(response.headers["x-memory-exchange-id"])
        history = [(m.card.role, m.card.digest, m.wire, m.state) for m in await mine.history()]
        records.append((record.usage, record.incomplete, record.finish_reason, history))
    assert records[0] == records[1]


async def test_text_before_a_call_comes_at_once_while_the_call_is_held_back(one: Rig) -> None:
    mine, called, hold = talk(one), asyncio.Event(), asyncio.Event()
    pieces = cuts(stream(text("Let me "), saves("x"), text("see. ")), "events", b"\n")
    one.up.reply(
        sse([*pieces[:2], called, *pieces[2:]]), sse([stream(text("Kiel"), finish="stop")])
    )
    tools_of(one).hold = hold
    body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, mine.all_headers.items(), body))
        await line.head()
        chunks, got = line.chunks(), b""
        while len(got) < len(b"".join(pieces[:2])):
            got += await anext(chunks)
        assert got == b"".join(pieces[:2])
        called.set()
        while b"see. " not in got:
            got += await anext(chunks)
        await asyncio.wait_for(tools_of(one).begun.wait(), PATIENCE)
        assert b"tool_calls" not in got
        hold.set()
        got += b"".join([chunk async for chunk in chunks])
    found = seen(got)
    assert (found.text, found.finish, found.dones) == ("Let me see. Kiel", ("stop",), 1)
    assert await said(mine) == [("user", "u1"), ("assistant", "Let me see. Kiel")]


@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
async def test_a_stream_is_that_of_all_rounds(one: Rig, feeding: str) -> None:
    mine = talk(one)
    rounds = [
        stream(text("So "), saves("x"), usage=USAGE),
        stream(searches("y"), text("on "), usage=USAGE, id="chatcmpl-2"),
        stream(text("Kiel."), finish="stop", usage=USAGE, id="chatcmpl-3"),
    ]
    scripts = [sse(cuts(each, feeding, b"\n")) for each in rounds]
    response, found = await gather(mine, *scripts, stream_options={"include_usage": True})
    assert (found.text, found.calls, found.finish) == ("So on Kiel.", (), ("stop",))
    assert found.usage == {name: 3 * n for name, n in USAGE.items()}
    assert (found.roles, found.dones, found.ids) == (1, 1, frozenset({"chatcmpl-1"}))
    assert (tools_of(one).saved, tools_of(one).asked) == (["x"], ["y"])
    assert not one.up.refused
    assert await said(mine) == [("user", "u1"), ("assistant", "So on Kiel.")]
    record = await exchange(mine, response)
    assert record["usage"] == found.usage and not record["incomplete"]
    assert [run["round"] for run in record["memory"]["tools"]] == [1, 2]
    later = await mine.ask(messages("u2"), END)
    assert later.status_code == 200 and not one.up.refused


async def test_rounds_go_on_in_streams_that_do_not_say_what_they_are(one: Rig) -> None:
    mine, plain = talk(one), (("content-type", "application/json"),)
    rounds = [stream(text("So "), saves("x")), stream(text("Kiel."), finish="stop")]
    scripts = [sse(cuts(each, "events", b"\n"), headers=plain) for each in rounds]
    _, found = await gather(mine, *scripts)
    assert (found.text, found.calls, found.finish) == ("So Kiel.", (), ("stop",))
    assert tools_of(one).saved == ["x"]
    assert await said(mine) == [("user", "u1"), ("assistant", "So Kiel.")]


async def test_a_streams_client_answers_its_own_calls_and_goes_on(one: Rig) -> None:
    mine = talk(one)
    mixed = stream(saves("x"), calls("get_weather", '{"a":1}', 1, "c1"))
    _, found = await gather(mine, sse([mixed]), tools=[WEATHER])
    assert found.calls == (("c1", "get_weather", '{"a":1}'),)
    assert (found.indexes, found.finish) == ((0,), ("tool_calls",))
    assert tools_of(one).saved == ["x"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    await mine.ask([result], END, tools=[WEATHER], stream=True)
    assert not one.up.refused
    said_before = one.up.requests[-1].messages[1]
    assert [call["id"] for call in said_before["tool_calls"]] == ["c1"]


async def test_what_a_model_saved_is_noted_before_the_client_knows_of_the_end(one: Rig) -> None:
    mine = talk(one)
    response, _ = await gather(mine, sse([stream(saves("x"))]), sse([stream(finish="stop")]))
    (commit,) = one.store.commits
    assert json.loads(bytes(commit.exchange.memory.tools))[0]["items"] == ["fact_1"]


async def test_a_broken_further_round_of_a_stream_is_seen_as_a_break(one: Rig) -> None:
    for script in (error_answer(500, "oh"), Script(drop=True), json_answer(chat_completion("x"))):
        mine = talk(one)
        one.up.reply(sse([stream(text("So "), saves("x"))]), script)
        body = json.dumps({"model": "m", "stream": True, "messages": messages("u1")}).encode()
        answer = await raw.ask(one.port, "POST", CHAT, mine.all_headers.items(), body)
        assert (answer.status, answer.whole) == (200, False)
        assert b"So " in answer.body and b"[DONE]" not in answer.body
        assert await mine.history() == []
    await nothing_left(one.proxy)


async def test_the_further_rounds_go_without_the_clients_idempotency_key(one: Rig) -> None:
    mine = talk(one)
    one.up.reply(SAVING, END)
    await mine.ask(messages("u1"), idempotency_key="k", x_other="1")
    first, second = one.up.requests
    assert (first.header("idempotency-key"), second.header("idempotency-key")) == ("k", None)
    for request in one.up.requests:
        assert request.header("authorization") == mine.all_headers["authorization"]
        assert request.header("x-user-id") is None


# Clients that leave


@pytest.mark.parametrize("stage", ["first", "tools", "second"])
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "plain"])
async def test_a_client_may_leave_at_any_stage(one: Rig, stage: str, streams: bool) -> None:
    mine, never = talk(one), asyncio.Event()
    one.up.reply(*_until(stage, never, streams=streams))
    if stage == "tools":
        tools_of(one).hold = asyncio.Event()
    body = {"model": "m", "stream": streams, "messages": messages("u1")}
    async with raw.line(one.port) as line:
        sent = json.dumps(body).encode()
        await line.send(raw.request("POST", CHAT, mine.all_headers.items(), sent))
        if streams:
            await line.head()
            await anext(line.chunks())
        await one.up.wait_for(2 if stage == "second" else 1)
        if stage == "tools":
            await asyncio.wait_for(tools_of(one).begun.wait(), PATIENCE)
    if stage != "tools":
        await asyncio.wait_for(one.up.requests[-1].gone.wait(), PATIENCE)
    await nothing_left(one.proxy)
    found = await said(mine)
    assert found == ([("user", "u1"), ("assistant", "So ")] if streams else [])
    if streams:
        (commit,) = one.store.commits
        assert commit.exchange.incomplete


def _until(stage: str, never: asyncio.Event, *, streams: bool) -> list[Script]:
    """The answers of an upstream that falls silent at this stage."""
    if streams:
        first = cuts(stream(text("So "), saves("x")), "events", b"\n")
        silent = sse([*cuts(stream(text("on")), "events", b"\n")[:1], never])
        return [sse([*first[:2], never]) if stage == "first" else sse(first), silent]
    silent = Script(hang="headers")
    return [silent] if stage == "first" else [SAVING, silent]


async def test_with_drain_all_rounds_are_finished_for_a_client_that_left(one: Rig) -> None:
    mine, more = talk(one, **{"x-memory-profile": "patient"}), asyncio.Event()
    first = cuts(stream(text("So "), saves("x")), "events", b"\n")
    one.up.reply(sse([*first[:2], more, *first[2:]]), sse([stream(text("on"), finish="stop")]))
    body = {"model": "m", "stream": True, "messages": messages("u1")}
    async with raw.line(one.port) as line:
        sent = json.dumps(body).encode()
        await line.send(raw.request("POST", CHAT, mine.all_headers.items(), sent))
        await line.head()
        await anext(line.chunks())
    more.set()
    await one.up.wait_for(2)
    await nothing_left(one.proxy)
    assert await said(mine) == [("user", "u1"), ("assistant", "So on")]
    assert tools_of(one).saved == ["x"]
