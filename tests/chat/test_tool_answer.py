"""Plain answers of several rounds as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.tools.answer import RoundJoiner, memory_calls_in
from proxy.chat.tools.offer import SAVE
from tests.support.upstream.answers import USAGE, chat_completion, tool_call

OURS = tool_call(SAVE, '{"text": "x"}')


def answered(content: Any, **more: Any) -> bytes:
    return json.dumps(chat_completion(content, **more)).encode()


def joined(*bodies: bytes) -> dict[str, Any]:
    together = RoundJoiner()
    for body in bodies[:-1]:
        together.add(body)
    whole: dict[str, Any] = json.loads(together.joined_answer(bodies[-1]))
    return whole


def message(whole: dict[str, Any]) -> dict[str, Any]:
    (choice,) = whole["choices"]
    found: dict[str, Any] = choice["message"]
    return found


@pytest.mark.parametrize(
    ("contents", "content"),
    [
        pytest.param(["a ", "b"], "a b", id="texts"),
        pytest.param([None, "b"], "b", id="nothing-before"),
        pytest.param(["a", None], "a", id="nothing-behind"),
        pytest.param(["a", "", "c"], "a\n\nc", id="nothing-between"),
        pytest.param([None, None], None, id="nothing"),
        pytest.param(["a", "b"], "a\n\nb", id="words-that-meet"),
        pytest.param(["a", "\nb"], "a\nb", id="a-line-begun"),
        pytest.param(["\ud83d", "\ude00"], "\ud83d\n\n\ude00", id="halves-of-an-emoji"),
        pytest.param(
            ["a", [{"type": "text", "text": "b"}]],
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            id="parts",
        ),
    ],
)
def test_texts_are_joined_as_a_stream_shows_them(contents: list[Any], content: object) -> None:
    *before, last = contents
    bodies = [json.dumps(chat_completion(text, tool_calls=[OURS])).encode() for text in before]
    end = json.dumps(chat_completion(last)).encode()
    assert message(joined(*bodies, end))["content"] == content


def test_the_first_answers_identity_and_the_sum_of_all_usage_are_kept() -> None:
    first = {**chat_completion("a", tool_calls=[OURS]), "id": "one", "created": 1}
    last = {**chat_completion("b"), "id": "two", "created": 2, "extra": {"x": 1.0}}
    whole = joined(json.dumps(first).encode(), json.dumps(last).encode())
    assert (whole["id"], whole["created"], whole["extra"]) == ("one", 1, {"x": 1.0})
    assert whole["usage"] == {name: 2 * n for name, n in USAGE.items()}
    assert whole["choices"][0]["finish_reason"] == "stop"


def test_usage_that_one_answer_does_not_tell_is_that_of_the_others() -> None:
    first, last = answered("a", tool_calls=[OURS]), answered("b", usage=None)
    assert joined(first, last)["usage"] == USAGE


def test_reasoning_goes_on_too() -> None:
    bodies = []
    for text in ("a", "b"):
        one = chat_completion("x")
        one["choices"][0]["message"]["reasoning_content"] = text
        bodies.append(json.dumps(one).encode())
    assert message(joined(*bodies))["reasoning_content"] == "a\n\nb"


def test_calls_of_memory_are_left_out_of_the_last_answer() -> None:
    own = tool_call("f", "{}", "c1")
    both = joined(answered("a", tool_calls=[OURS, own]))
    assert message(both)["tool_calls"] == [own]
    assert both["choices"][0]["finish_reason"] == "tool_calls"
    none = joined(answered("a", tool_calls=[OURS]))
    assert "tool_calls" not in message(none)
    assert none["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"choices": []}', b'{"error": {}}'])
def test_what_is_no_answer_is_passed_on_as_it_is(body: bytes) -> None:
    together = RoundJoiner()
    together.add(body)
    assert together.joined_answer(body) == body
    assert memory_calls_in(body) is None


def test_an_escaped_key_hides_no_call() -> None:
    body = answered("a", tool_calls=[OURS]).replace(b"tool_calls", b"tool\\u005fcalls")
    assert memory_calls_in(body) is not None
