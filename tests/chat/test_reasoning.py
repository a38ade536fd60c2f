"""What a model thought, as its upstream demands it, and as a request has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.reasoning import (
    NO_REASONING,
    demands_reasoning,
    reasoning_in,
    refuses_reasoning,
    with_reasoning,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SEE = "For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode"


def error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()


@pytest.mark.parametrize(
    "message",
    [
        "The reasoning_content in the thinking mode must be passed back to the API.",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        'The "reasoning_content" in the thinking mode must be passed back to the API.',
        f"Missing `reasoning_content` field in the assistant message at message index 4. {SEE}",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 2",
        "Param Incorrect: reasoning_content is required",
        # An upstream's error in that of another.
        json.dumps({"error": {"message": "The `reasoning_content` must be provided"}}),
    ],
)
def test_an_upstream_says_in_many_words_that_it_wants_thoughts_back(message: str) -> None:
    assert demands_reasoning(error(message))
    assert not refuses_reasoning(error(message))


@pytest.mark.parametrize(
    ("message", "refuses"),
    [
        (
            "'messages.2' : for 'role:assistant' the following must be satisfied"
            "[('messages.2' : property 'reasoning_content' is unsupported)]",
            True,
        ),
        ("Unknown parameter: 'messages[1].reasoning_content'.", True),
        ("body.messages.2.assistant.reasoning_content: Extra inputs are not permitted", True),
        ("The reasoning_content must not be in the input messages.", True),
        ("Missing required parameter: 'messages[1].content'.", False),
        ("The content must be passed.", False),
        ("An assistant message with 'tool_calls' must be followed by tool messages", False),
        ("", False),
    ],
)
def test_other_errors_demand_none(message: str, refuses: bool) -> None:
    assert not demands_reasoning(error(message))
    assert refuses_reasoning(error(message)) == refuses


def test_an_error_is_looked_at_in_linear_time() -> None:
    assert not demands_reasoning(b"reasoning_content" * 4000)
    assert not demands_reasoning(b"reasoning_content " * 4000)
    assert not demands_reasoning(b"missing" + b" " * 60_000)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b'{"role":"assistant","reasoning_content":"Let me \\u00e9"}', b'"Let me \\u00e9"'),
        (b'{"role":"assistant","reasoning_content":"\\ud83d"}', b'"\\ud83d"'),
        (b'{"role":"assistant","reasoning_content":null}', NO_REASONING),
        (b'{"role":"assistant","reasoning_content":["x"]}', NO_REASONING),
        (b'{"role":"assistant","reasoning":"x"}', NO_REASONING),
        (b"[]", NO_REASONING),
        (b"no JSON", NO_REASONING),
    ],
)
def test_the_thoughts_of_an_answer_keep_their_bytes(message: bytes, told: bytes) -> None:
    assert reasoning_in(message) == told


def messages(*said: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "messages": said, "stream": True}).encode()


def given(said: dict[str, Any], known: dict[str, bytes]) -> Any:
    body = json.loads(with_reasoning(messages({"role": "user", "content": "u"}, said), known))
    assert (body["model"], body["stream"]) == ("m", True)
    assert body["messages"][0] == {"role": "user", "content": "u"}
    return body["messages"][1].get("reasoning_content")


def test_every_answer_that_lacks_thoughts_gets_those_of_its_calls() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "c0"}, CALL]}
    assert given(calls, {"c1": b'"so"', "c9": b'"no"'}) == "so"
    assert given({**calls, "reasoning_content": None}, {"c1": b'"so"'}) == "so"
    assert given(calls, {}) == ""
    assert given({"role": "assistant", "content": "a"}, {"c1": b'"so"'}) == ""
    assert given({**calls, "content": "\ud83d"}, {"c1": b'"so"'}) == "so"


def test_what_a_client_has_sent_itself_stays() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert given({**calls, "reasoning_content": "mine"}, {"c1": b'"so"'}) == "mine"
    assert given({**calls, "reasoning_content": ""}, {"c1": b'"so"'}) == ""


@pytest.mark.parametrize("calls", [None, "x", [], [None], [{}], [{"id": 1}], {"id": "c1"}])
def test_calls_of_any_shape_have_no_thoughts(calls: object) -> None:
    assert given({"role": "assistant", "tool_calls": calls}, {"c1": b'"so"'}) == ""


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":1}', b'{"messages":[1]}'])
def test_a_body_without_messages_stays(body: bytes) -> None:
    assert with_reasoning(body, {}) == body
