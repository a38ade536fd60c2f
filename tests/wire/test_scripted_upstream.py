"""The tests' own upstream: as strict as the real one, and it does what its script says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.wire.sse import Gate
from proxy.wire.upstream import Upstream
from tests.support.upstream.answers import chat_stream, tool_call
from tests.support.upstream.scripted import ScriptedUpstream, chat_completion, json_answer
from tests.support.upstream.strict import Refused, validate

Messages = list[dict[str, Any]]

USER = {"role": "user", "content": "hi"}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [tool_call("f", "{}", "c1"), tool_call("f", "{}", "c2")],
}
SYSTEM = {"role": "system", "content": "s"}


def result(call: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": "r"}


def chat(*messages: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages)}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER], id="user"),
        pytest.param([SYSTEM, USER, SYSTEM], id="later-system"),
        pytest.param([USER, CALLS, result("c2"), result("c1"), USER], id="results-in-any-order"),
        pytest.param([USER, USER], id="two-users"),
        pytest.param([{"role": "user", "content": [{"type": "text", "text": "x"}]}], id="parts"),
        pytest.param([USER, {"role": "assistant", "refusal": "no"}], id="refusal"),
        pytest.param([{"role": "function", "name": "f", "content": "x"}], id="function"),
        pytest.param([USER, {"role": "assistant", "content": ""}], id="empty-answer"),
    ],
)
def test_valid_chats_are_taken(messages: Messages) -> None:
    validate(chat(*messages))


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        pytest.param([], "messages", id="none"),
        pytest.param(["hi"], "messages.[0]", id="no-object"),
        pytest.param([{"role": "robot", "content": "x"}], "messages.[0].role", id="role"),
        pytest.param([{"role": "user"}], "messages.[0]", id="no-content"),
        pytest.param([{"role": "user", "content": 3}], "messages.[0].content", id="number"),
        pytest.param([{"role": "user", "content": []}], "messages.[0].content", id="no-parts"),
        pytest.param(
            [{"role": "system", "content": [{"type": "image_url"}]}],
            "messages.[0].content",
            id="image-in-system",
        ),
        pytest.param([{"role": "assistant"}], "messages.[0].content", id="empty-assistant"),
        pytest.param(
            [{"role": "assistant", "content": "x", "tool_calls": []}],
            "messages.[0].tool_calls",
            id="no-calls",
        ),
        pytest.param([USER, result("c1")], "messages.[1].role", id="result-without-call"),
        pytest.param([CALLS, result("c1")], "messages", id="unanswered-at-the-end"),
        pytest.param([CALLS, result("c1"), USER], "messages.[2].role", id="unanswered-before"),
        pytest.param([CALLS, result("c1"), result("c1")], "messages.[2].role", id="answered-twice"),
        pytest.param(
            [CALLS, result("c1"), result("c2"), USER, result("c1")],
            "messages.[4].role",
            id="answered-late",
        ),
        pytest.param(
            [{"role": "tool", "content": "x"}], "messages.[0].tool_call_id", id="result-without-id"
        ),
    ],
)
def test_chats_that_the_real_service_refuses_are_refused(messages: Messages, param: str) -> None:
    with pytest.raises(Refused) as caught:
        validate(chat(*messages))
    assert caught.value.param == param


@pytest.mark.parametrize("body", [None, [], {"messages": [USER]}, {"model": "m"}])
def test_what_is_no_chat_request_is_refused(body: object) -> None:
    with pytest.raises(Refused):
        validate(body)


def test_one_system_message_means_the_first_only() -> None:
    validate(chat(SYSTEM, USER), one_system=True)
    for messages in ([SYSTEM, SYSTEM, USER], [USER, SYSTEM]):
        with pytest.raises(Refused):
            validate(chat(*messages), one_system=True)


async def say(upstream: Upstream, body: object) -> tuple[int, bytes]:
    raw = json.dumps(body).encode()
    reply = await upstream.send("POST", b"/chat/completions", [], raw)
    try:
        return reply.status, await reply.read()
    finally:
        await reply.close()


async def test_without_a_script_it_answers_the_last_user(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    _, first = await say(upstream, chat(USER))
    _, second = await say(upstream, {**chat(USER), "stream": True})
    assert json.loads(first)["choices"][0]["message"]["content"] == "reply 1: hi"
    gate = Gate(lambda raw: False, lambda raw: None)
    gate.feed(second)
    chunks = [json.loads(payload) for payload in gate.take() if payload != b"[DONE]"]
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert said == "reply 2: hi"
    assert up.requests[1].messages == [USER]


async def test_an_invalid_chat_is_answered_400_and_uses_up_no_script(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(json_answer(chat_completion("scripted")))
    status, body = await say(upstream, chat(result("c1")))
    assert (status, json.loads(body)["error"]["param"]) == (400, "messages.[0].role")
    assert len(up.refused) == 1
    _, body = await say(upstream, chat(USER))
    assert json.loads(body)["choices"][0]["message"]["content"] == "scripted"


def test_a_streamed_call_is_its_fragments_joined() -> None:
    events = chat_stream((), [tool_call("f", '{"city": "Oslo"}')], include_usage=True)
    chunks = [json.loads(event[6:]) for event in events[:-1]]
    calls = [c["choices"][0]["delta"]["tool_calls"][0] for c in chunks[1:-2]]
    assert (calls[0]["id"], calls[0]["function"]["name"]) == ("call_1", "f")
    assert "".join(c["function"]["arguments"] for c in calls) == '{"city": "Oslo"}'
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 12)


async def test_forgotten_scripts_are_not_said(upstream: Upstream, up: ScriptedUpstream) -> None:
    await say(upstream, chat(USER))
    up.always(json_answer(chat_completion("scripted")))
    up.reply(json_answer(chat_completion("queued")))
    up.reply_to_nobody()
    _, body = await say(upstream, chat(USER))
    assert json.loads(body)["choices"][0]["message"]["content"] == "reply 1: hi"
