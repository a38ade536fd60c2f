"""The Messages API through the proxy: what it promises beside the table of reconciliation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.rig import KEY, Rig, Talk, rig
from tests.support.talk.messaging import PATH, VERSION, MessagesTalk, messages
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, sse
from tests.support.upstream.anthropic import (
    MAX_MARKS,
    USAGE,
    Binding,
    answered,
    event,
    message,
    message_stream,
    refusal,
    text,
    thinking,
    tool_result,
    tool_use,
)
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]
STREAM = b"".join(message_stream(message(text("Hello there, you."))))
FINISH = STREAM.index(b'data: {"type": "message_delta"')
LOOK = tool_use("look", {"at": "the road"}, "toolu_9")
LOOP = [thinking("I should look."), text("Let me see."), LOOK]
ON = {"type": "enabled", "budget_tokens": 1024}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CONTINUED = {"type": "continue", "previous_message_id": "msg_1"}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
KAI = {"x-user-id": "kai"}
MARK = {"cache_control": {"type": "ephemeral"}}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def body(*said: Json, **more: Any) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "messages": said, **more}).encode()


# Bytes


async def test_where_there_is_nothing_to_add_the_body_goes_up_as_it_came(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    sent = b'{ "max_tokens": 9,"messages" :[ {"content":"Hi","role":"user"} ],\n"model":"m" }'
    answer = await talk.post(sent)
    assert one.up.requests[-1].body == sent
    assert answer.headers["x-memory-status"] == "empty"
    assert len(await talk.bodies()) == 2


@pytest.mark.parametrize(
    "off", [{"x_memory_mode": "off"}, {"x_session_id": ""}], ids=["off", "none"]
)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens", f"{PATH}/batches"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_without_memory_both_directions_are_as_they_came(
    one: Rig, path: str, off: dict[str, str], size: int
) -> None:
    sent = b'{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1e0, "x": "\\ud83d" }'
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    one.up.strict = False
    one.up.reply(sse(pieces))
    headers = {"x-api-key": KEY, "anthropic-version": VERSION, "anthropic-beta": "b1,b2"}
    more = {name.replace("_", "-"): value for name, value in off.items() if value}
    session = {"x-session-id": "s", **more} if more else {}
    answer = await raw.ask(one.port, "POST", path, [*headers.items(), *session.items()], sent)
    assert answer.body == STREAM
    asked = one.up.requests[-1]
    assert asked.body == sent
    assert {name: asked.header(name) for name in headers} == headers


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_stream_is_passed_on_byte_for_byte(one: Rig, size: int) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    said = message(*LOOP)
    script = sse(message_stream(said, size))
    answer = await talk.ask([user("Two?")], script, stream=True)
    assert answer.content == b"".join(message_stream(said))
    assert [m["role"] for m in await talk.bodies()] == ["user", "assistant", "user", "assistant"]


# Recording


async def test_the_client_never_has_the_finish_before_the_commit(one: Rig) -> None:
    talk, got = MessagesTalk.on(one), bytearray()

    async def collect() -> None:
        async with raw.line(one.port) as line:
            sent = body(user("Hi"), stream=True)
            await line.send(raw.request("POST", PATH, talk.all_headers.items(), sent))
            await line.head()
            async for piece in line.chunks():
                got.extend(piece)

    one.up.reply(sse(message_stream(message(text("Hello there, you.")))))
    release = one.store.hold()
    client = asyncio.create_task(collect())
    await asyncio.wait_for(one.store.held_back.wait(), PATIENCE)
    await one.client.get("/v1/models")  # the proxy has had every occasion to say more
    assert b"stop_reason" not in got[got.rfind(b"event:") :]
    assert STREAM.startswith(got)
    assert len(await talk.history()) == 0
    release.set()
    await client
    assert got == STREAM
    assert len(await talk.history()) == 2


async def test_a_break_before_the_finish_is_passed_on_and_nothing_is_recorded(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    with pytest.raises(httpx.RemoteProtocolError):
        await talk.ask([user("Hi")], sse([STREAM], cut=FINISH - 10), stream=True)
    assert await talk.history() == []


@pytest.mark.parametrize(
    "ending",
    [b"", event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})],
    ids=["no-finish", "an-error"],
)
async def test_a_stream_without_a_finish_is_recorded_as_incomplete(one: Rig, ending: bytes) -> None:
    talk = MessagesTalk.on(one)
    begun = STREAM[: STREAM.index(b"event: content_block_stop")]
    answer = await talk.ask([user("Hi")], sse([begun, ending] if ending else [begun]), stream=True)
    assert answer.content == begun + ending
    assert [m.card.incomplete for m in await talk.history()] == [False, True]
    assert (await talk.bodies())[1]["content"] == "Hello there, you."


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_usage_and_the_end_are_recorded_as_the_upstream_told_them(
    one: Rig, stream: bool
) -> None:
    talk = MessagesTalk.on(one)
    before = await counted(one)
    await talk.ask([user("Hi")], answered(*LOOP, stream=stream), stream=stream)
    exchange = await talk.exchange((await talk.history())[0].card.exchange)
    assert json.loads(exchange.usage or b"") == USAGE
    assert (exchange.finish_reason, exchange.incomplete) == ("tool_use", False)
    after = await counted(one)
    read, written = USAGE["cache_read_input_tokens"], USAGE["cache_creation_input_tokens"]
    assert [b - a for a, b in zip(before, after, strict=True)] == [read, written]


async def counted(one: Rig) -> list[float]:
    """Tokens that upstreams had in their caches, and wrote to them."""
    page = (await one.client.get("/metrics")).text.splitlines()
    names = ("memory_upstream_cached_tokens_total", "memory_upstream_cache_write_tokens_total")
    return [
        sum(float(line.split()[-1]) for line in page if line.startswith(name)) for name in names
    ]


async def test_an_error_of_the_upstream_is_passed_on_and_nothing_is_recorded(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    script = refusal(529, "Overloaded", "overloaded_error")
    answer = await talk.ask([user("Hi")], script)
    assert answer.status_code == 529
    assert answer.content == script.pieces[0]
    assert await talk.history() == []


# What goes up


async def test_thinking_goes_back_while_its_loop_runs_and_not_later(every: Rig) -> None:
    talk = MessagesTalk.on(every)
    await talk.ask([user("One?")], answered(*LOOP, stream=True), stream=True, thinking=ON)
    result = user([tool_result("toolu_9", "rain", is_error=True)])
    await talk.ask([result], answered(thinking("So."), text("Rain.")), thinking=ON)
    assert every.up.requests[-1].messages == [
        user("One?"),
        {"role": "assistant", "content": LOOP},
        result,
    ]
    await talk.ask([user("Two?")], thinking=ON)
    assert every.up.requests[-1].messages == [
        user("One?"),
        {"role": "assistant", "content": LOOP[1:]},
        result,
        {"role": "assistant", "content": "Rain."},
        user("Two?"),
    ]
    assert not every.up.refused


@pytest.mark.parametrize("reason", ["pause_turn", "max_tokens"])
async def test_a_search_without_an_end_goes_back_to_go_on_and_not_when_something_else_is_said(
    every: Rig, reason: str
) -> None:
    talk = MessagesTalk.on(every)
    await talk.ask([user("One?")], answered(text("Let me see."), SEARCH, stop_reason=reason))
    paused = {"role": "assistant", "content": [text("Let me see."), SEARCH]}
    await talk.ask([user("One?"), paused], answered(SEARCH, stop_reason=reason))
    assert every.up.requests[-1].messages == [user("One?"), paused]
    await talk.ask([user("Two?")])
    assert every.up.requests[-1].messages == [
        user("One?"),
        {"role": "assistant", "content": "Let me see."},
        user("Two?"),
    ]
    assert not every.up.refused


async def test_a_search_whose_end_is_in_the_next_answer_stays_whole(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.ask([user("One?")], answered(SEARCH, stop_reason="pause_turn"))
    paused = {"role": "assistant", "content": [SEARCH]}
    await talk.ask([user("One?"), paused], answered(FOUND, text("Rain.")))
    await talk.ask([user("Two?")])
    assert one.up.requests[-1].messages == [
        user("One?"),
        {"role": "assistant", "content": [SEARCH, FOUND, text("Rain.")]},
        user("Two?"),
    ]
    assert not one.up.refused


async def test_what_a_client_resends_with_its_thinking_is_known(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    said: list[Json] = [user("One?")]
    for answer in (LOOP, [thinking("So."), text("Rain.")]):
        await talk.ask(said, answered(*answer), thinking=ON)
        assert one.up.requests[-1].messages == said
        said.append({"role": "assistant", "content": answer})
        said.append(user([tool_result("toolu_9", "rain")] if answer is LOOP else "Two?"))
    await talk.ask(said, thinking=ON)
    assert one.up.requests[-1].messages == said
    roles = [m["role"] for m in await talk.bodies()]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_thinking_that_is_bound_to_what_memory_has_changed_is_left_out(
    tmp_path: Path,
) -> None:
    """The client resends all, and what is recalled stands before another question each time."""
    async with rig(tmp_path, memory__recall__timeout=5) as one:
        await MessagesTalk.on(one, **KAI).ask([user("My bicycle is vermilion.")])
        talk, said = MessagesTalk.on(one, **KAI), list[Json]()
        one.up.always(Binding())
        for asked in ("What colour is my bicycle?", "And my bicycle again?"):
            said.append(user(asked))
            for _ in ("a call", "an answer"):
                answer = await talk.ask(said, thinking=ON, tools=[TOOL])
                assert answer.status_code == 200, answer.text
                assert answer.headers["x-memory-status"] == "applied"
                said.append({"role": "assistant", "content": answer.json()["content"]})
                if answer.json()["stop_reason"] == "tool_use":
                    said.append(user([tool_result(said[-1]["content"][1]["id"], "rain")]))
        asked_again = [b for b in one.up.requests if b.refused is None][-1]
        assert "vermilion" in json.dumps(asked_again.messages)
        assert [m["role"] for m in await talk.bodies()] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ] * 2


@pytest.mark.parametrize("asked", ["And my bicycle?", [text("And my bicycle?") | MARK]])
async def test_results_alone_stand_behind_the_very_prompt_that_their_thinking_is_bound_to(
    tmp_path: Path, asked: Any
) -> None:
    """However the client writes a text, what is recalled stands before it as it did."""
    async with rig(tmp_path, memory__recall__timeout=5) as one:
        await MessagesTalk.on(one, **KAI).ask([user("My bicycle is vermilion.")])
        talk = MessagesTalk.on(one, **KAI)
        one.up.always(Binding())
        answer = await talk.ask([user(asked)], thinking=ON, tools=[TOOL])
        results = [tool_result(answer.json()["content"][1]["id"], "rain")]
        answer = await talk.ask([user(results)], thinking=ON, tools=[TOOL])
        assert answer.status_code == 200, answer.text
        assert len(one.up.requests) == 3
        assert "vermilion" in json.dumps(one.up.requests[-1].messages)


async def test_nothing_is_put_into_what_the_upstream_keeps(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    await talk.ask([user("u2")], answered(LOOK), thread={"type": "create"})
    assert len(one.up.requests[-1].messages) == 3
    more = body(user([tool_result("toolu_9", "rain")]), thread=CONTINUED)
    assert (await talk.post(more)).status_code == 200
    assert one.up.requests[-1].body == more
    assert [m["role"] for m in await talk.bodies()][2:] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


async def test_no_request_has_more_marks_than_its_client_has_set(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    system = [{**text("Be brief."), **MARK}]
    for n in range(6):
        asked = [{**text(f"Question {n}?"), **MARK}, {**text("Please."), **MARK}]
        asked = [*asked, {"type": "container_upload", "file_id": "f", **MARK}]
        answer = await talk.ask([user(asked)], system=system)
        assert answer.status_code == 200, answer.text
        assert one.up.requests[-1].body.count(b"cache_control") == MAX_MARKS
        assert len(one.up.requests[-1].messages) == 2 * n + 1
    assert "cache_control" not in json.dumps(await talk.bodies())


async def test_system_text_is_of_its_own_request(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await Talk(one, talk.session).say("s1 u1", "a1")
    await talk.ask([user("Two?")], system="Be brief.")
    assert one.up.requests[-1].json["system"] == "Be brief."
    await talk.ask([user("Three?")])
    assert "system" not in one.up.requests[-1].json
    assert await Talk(one, talk.session).say("u4", "a4") == (
        f"s1 u1 a1 Two? {(await talk.bodies())[3]['content']} Three? "
        f"{(await talk.bodies())[5]['content']} u4"
    )


async def test_system_messages_in_mid_conversation_stay_where_they_are(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    told = {"role": "system", "content": "The file has changed."}
    await talk.ask([user("Two?"), told], answered(text("Yes.")))
    assert one.up.requests[-1].messages[2:] == [user("Two?"), told]
    said = {"role": "assistant", "content": "Yes."}
    await talk.ask([user("Two?"), told, said, user("Three?")])
    assert one.up.requests[-1].messages[2:] == [user("Two?"), told, said, user("Three?")]
    assert not one.up.refused
    assert [m["role"] for m in await talk.bodies()] == ["user", "assistant"] * 3


async def test_what_is_recalled_stands_before_the_question(tmp_path: Path) -> None:
    async with rig(tmp_path, memory__window="none", memory__recall__timeout=5) as one:
        talk = MessagesTalk.on(one)
        await talk.ask([user("My bicycle is painted vermilion.")], answered(text("I see.")))
        asked = text("What colour is my bicycle painted?")
        answer = await talk.ask([user([asked])], system="S")
        assert answer.headers["x-memory-recalled"] != "0"
        (said,) = one.up.requests[-1].messages
        block, question = said["content"]
        assert "vermilion" in block["text"]
        assert question == asked
        assert one.up.requests[-1].json["system"] == "S"


async def test_reminders_of_an_agent_are_no_part_of_the_question(tmp_path: Path) -> None:
    reminder = text(
        f"<system-reminder>\n{'Sign what you commit, always. ' * 40}\n</system-reminder>\n"
    )
    async with rig(tmp_path, memory__window="none", memory__recall__timeout=5) as one:
        talk = MessagesTalk.on(one)
        told = text("My bicycle is painted vermilion.")
        await talk.ask([user([reminder, told])], answered(text("I see.")))
        await talk.ask([user([reminder, text("What colour is my bicycle painted?")])])
        (said,) = one.up.requests[-1].messages
        assert "vermilion" in said["content"][0]["text"]


async def test_other_words_take_the_place_of_those_that_this_api_alone_had(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    cited = {**text("The code is 1234."), "citations": []}
    await talk.ask([user("One?")], answered(thinking("Hm, 1234."), cited))
    said = (await talk.history())[1].card.id
    path = f"/memory/v1/sessions/{talk.session}/messages/{said}"
    key = {"authorization": f"Bearer {KEY}"}
    answer = await one.client.patch(path, json={"content": "It is secret."}, headers=key)
    assert answer.status_code == 200, answer.text
    assert "1234" not in json.dumps(await talk.bodies())
    await talk.ask([user("Two?")])
    assert one.up.requests[-1].messages[1] == {"role": "assistant", "content": "It is secret."}


# What is no turn


async def test_tokens_are_counted_with_memory_in_it_and_nothing_is_recorded(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    counting = MessagesTalk(one, talk.session, path=f"{PATH}/count_tokens")
    answer = await counting.post({"model": "m", "messages": [user("u2")]})
    assert answer.json()["input_tokens"] > 0
    assert len(one.up.requests[-1].messages) == 3
    assert answer.headers["x-memory-messages"] == "2"
    assert "x-memory-exchange-id" not in answer.headers
    assert await talk.log() == "u1 a1"


async def test_a_probe_of_a_program_is_passed_on_as_it_is(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    probe = body(user("quota"), max_tokens=1)
    answer = await talk.post(probe)
    assert one.up.requests[-1].body == probe
    assert answer.headers["x-memory-reason"] == "side_request"
    assert await talk.log() == "u1 a1"


async def test_a_session_of_claude_code_is_one(one: Rig) -> None:
    headers = {"x-api-key": KEY, "anthropic-version": VERSION}
    session = {"x-claude-code-session-id": one.talk().session}
    for text_said in ("Hi", "And?"):
        await one.client.post(PATH, content=body(user(text_said)), headers=headers | session)
    asked = one.up.requests[-1]
    assert len(asked.messages) == 3
    assert asked.header("x-claude-code-session-id") == session["x-claude-code-session-id"]
    own = {"x-session-id": one.talk().session}
    await one.client.post(PATH, content=body(user("Hi")), headers=headers | session | own)
    assert len(one.up.requests[-1].messages) == 1


# Whose it is


async def test_nobody_has_what_was_said_under_another_key(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    for key in ({"x-api-key": "another"}, {"x-api-key": KEY, "authorization": "Bearer x"}):
        other = MessagesTalk.on(one, talk.session, **key)
        seen = len(one.up.requests)
        await other.ask([user("What did I say?")])
        assert all(len(each.messages) == 1 for each in one.up.requests[seen:])
    bearer = {"authorization": f"Bearer {KEY}", "anthropic-version": VERSION}
    same = {**bearer, "x-session-id": talk.session}
    await one.client.post(PATH, content=body(user("u2")), headers=same)
    assert len(one.up.requests[-1].messages) == 3
    assert one.up.requests[-1].header("x-api-key") is None


# Errors


@pytest.mark.parametrize(
    ("headers", "status", "kind", "code"),
    [
        ({"x_session_id": "a b"}, 400, "invalid_request_error", "invalid_session_id"),
        ({"authorization": "Bearer other"}, 400, "invalid_request_error", "invalid_header"),
        ({"x_memory_profile": "nobody's"}, 400, "invalid_request_error", "unknown_profile"),
    ],
)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
async def test_the_proxys_own_errors_are_as_this_api_has_them(
    one: Rig, path: str, headers: dict[str, str], status: int, kind: str, code: str
) -> None:
    talk = MessagesTalk(one, one.talk().session, path=path)
    answer = await talk.post(body(user("Hi")), **headers)
    assert answer.status_code == status
    said = answer.json()
    assert said.keys() == {"type", "error"}
    assert (said["type"], said["error"]["type"], said["error"]["code"]) == ("error", kind, code)
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert not one.up.requests


async def test_an_upstream_that_is_not_there_is_told_so_too(one: Rig) -> None:
    answer = await MessagesTalk.on(one).ask([user("Hi")], Script(drop=True))
    assert answer.status_code == 502
    assert answer.json()["error"]["type"] == "api_error"


async def test_a_prompt_that_is_too_long_is_tried_with_less_of_memory(one: Rig) -> None:
    talk = MessagesTalk.on(one)
    await talk.say("u1", "a1")
    long = refusal(400, "prompt is too long: 208310 tokens > 200000 maximum")
    one.up.reply(long)
    answer = await talk.ask([user("u2")])
    assert (answer.status_code, answer.headers["x-memory-reason"]) == (200, "context_trimmed")
    assert len(one.up.requests[-1].messages) == 1


ODD = [
    b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff", b'{"messages": null}', b'{"messages": {}}',
    b'{"messages": [null]}', b'{"messages": [{"role": 5, "content": []}]}',
    b'{"messages": [{"role": "user", "content": {"type": "text"}}]}',
    b'{"messages": [{"role": "user", "content": [[]]}]}',
    b'{"messages": [{"role": "user", "content": [{"type": {}}]}], "max_tokens": "many"}',
    b'{"messages": [{"role": "user", "content": [{"type": "tool_result"}]}], "stream": "x"}',
    b'{"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": 5}]}]}',
    b'{"messages": [{"role": "user", "content": "x"}], "system": 5, "tool_choice": []}',
    b'{"messages": [{"role": "user", "content": "x", "native": {"api": "messages"}}]}',
    b'{"messages": [' + b"[" * 5000 + b"]" * 5000 + b"]}",
    b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "\\ud83d"}]}]}',
    *(
        b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "%b": %b}]}]}'
        % (name, number)
        for name in (b"cache_control", b"x")
        for number in (b"1e999", b"9" * 5000, b"-" + b"9" * 5000)
    ),
    b'{"messages": [{"role": "user", "content": "x"}], "system": [{"x": ' + b"9" * 5000 + b"}]}",
    b'{"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b",'
    b' "input": {"x": ' + b"9" * 5000 + b"}}]}]}",
]  # fmt: skip


@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
@pytest.mark.parametrize("sent", ODD, ids=range(len(ODD)))
async def test_a_body_of_any_shape_is_the_upstreams_to_judge(
    one: Rig, sent: bytes, path: str
) -> None:
    one.up.strict = False
    talk = MessagesTalk(one, one.talk().session, path=path)
    for _ in range(2):
        one.up.reply(answered(text("Well.")))
        answer = await talk.post(sent)
        assert answer.status_code == 200
    assert one.up.requests[-2].body == sent


async def test_a_conversation_goes_from_one_api_to_the_other_and_back(every: Rig) -> None:
    """One log, two views: each gets what it can be told, and Messages what it said itself."""
    there = MessagesTalk.on(every)
    here = Talk(every, there.session)
    await there.ask([user([text("One?"), {"type": "container_upload", "file_id": "f"}])],
                    answered(*LOOP), thinking=ON)  # fmt: skip
    await there.ask([user([tool_result("toolu_9", "rain")])], answered(text("Rain.")), thinking=ON)
    assert (await here.say("u2", "a2")).startswith("One?[container_upload, ")
    assert not every.up.refused
    answer = await there.ask(messages("u3"))
    assert answer.status_code == 200, answer.text
    first, called, result, *rest = every.up.requests[-1].messages
    assert first["content"][1] == {"type": "container_upload", "file_id": "f"}
    assert called["content"] == LOOP[1:]
    assert result["content"] == [tool_result("toolu_9", "rain")]
    assert [each["content"] for each in rest[1:]] == ["u2", "a2-one a2-two, a2-three", "u3"]
