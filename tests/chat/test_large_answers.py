"""Of answers with too many values the texts are kept, whatever the rest would cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat import jsontext, large_answers
from proxy.chat.json_size import MAX_CHOICES
from proxy.chat.large_answers import MAX_VALUES, has_few_values, may_have_many_values, read_slim
from proxy.chat.reply.events import end_signal
from proxy.chat.reply.reply import MAX_REPLY_VALUES, ReplyBuilder, read_reply
from proxy.chat.tools.stream import Chunk

MANY: list[object] = [[] for _ in range(MAX_VALUES)]
COMMAS = "a,[{" * MAX_VALUES


def event(finish: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"model": "m", "choices": [choice]}).encode()


def plain(finish: str = "stop", **message: Any) -> bytes:
    said = {"role": "assistant", **message}
    return json.dumps({"choices": [{"message": said, "finish_reason": finish}]}).encode()


def built(*events: bytes) -> Any:
    builder = ReplyBuilder()
    for one in events:
        builder.feed(one)
    return builder.build()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values each text may have had that was read into objects."""
    sizes: list[int] = []

    def noted(raw: bytes) -> object:
        sizes.append(0 if raw.startswith(b'"') else large_answers.max_value_count(raw))
        return real(raw)

    real = jsontext.decode
    monkeypatch.setattr(jsontext, "decode", noted)
    return sizes


def test_a_stream_goes_on_behind_an_event_of_too_many_values(decoded: list[int]) -> None:
    events = [event(content="Hel"), event(x=MANY), event(content="lo"), event("stop")]
    reply = built(*events)
    assert (reply.choices[0].text, reply.choices[0].complete) == ("Hello", True)
    assert reply.truncated
    assert max(decoded, default=0) <= MAX_VALUES


@pytest.mark.parametrize("heavy", ["x", "tool_calls", "audio"])
def test_the_text_beside_too_many_values_is_kept(decoded: list[int], heavy: str) -> None:
    said: dict[str, Any] = {"content": "Hello", heavy: MANY}
    for reply in (built(event("stop", **said)), read_reply(plain(**said))):
        assert reply is not None
        assert (reply.choices[0].text, reply.choices[0].complete) == ("Hello", True)
        assert reply.truncated
    assert max(decoded) <= MAX_VALUES


def test_a_text_full_of_commas_is_one_value() -> None:
    for reply in (built(event("stop", content=COMMAS)), read_reply(plain(content=COMMAS))):
        assert reply is not None
        assert reply.choices[0].text == COMMAS


def test_a_call_is_kept_beside_log_probabilities_without_end() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    choice = {"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = json.dumps({"choices": [{**choice, "logprobs": MANY}]}).encode()
    reply = read_reply(body)
    assert reply is not None
    assert reply.choices[0].calls == ("c",)


def test_an_answer_of_nothing_but_choices_is_not_read() -> None:
    body = b'{"choices":[' + b",".join([b'{"message":{}}'] * MAX_VALUES) + b"]}"
    reply = read_reply(body)
    assert reply is not None
    assert (reply.choices, reply.truncated) == ((), True)
    assert read_slim(body.replace(b"message", b"delta"), "delta") is None
    assert read_slim(b'{"choices":[' + b"{}," * MAX_VALUES + b"{}]}", "delta") is None


def test_many_events_leave_no_more_than_one(decoded: list[int]) -> None:
    small = event(x=[[] for _ in range(MAX_VALUES // 4)])
    builder = ReplyBuilder()
    for _ in range(2 * 4 * MAX_REPLY_VALUES // MAX_VALUES):
        builder.feed(small)
    builder.feed(event("stop", content="Hello"))
    assert sum(decoded) <= MAX_REPLY_VALUES
    choice = builder.build().choices[0]
    assert (choice.text, choice.complete) == ("Hello", True)
    assert len(choice.wire or b"") < 1000


def test_calls_go_on_when_much_has_been_read() -> None:
    builder = ReplyBuilder()
    piece = {"index": 0, "function": {"arguments": "x" * 10}}
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    builder.feed(event(tool_calls=[first]))
    payload = event(tool_calls=[piece])
    count = 6 * MAX_REPLY_VALUES // large_answers.max_value_count(payload) // 5
    for _ in range(count):
        builder.feed(payload)
    message = json.loads(builder.build().choices[0].wire or b"")
    assert len(message["tool_calls"][0]["function"]["arguments"]) == 10 * count


@pytest.mark.parametrize(("finish", "kind"), [("stop", "finish"), (None, None)])
def test_the_finish_is_seen_beside_too_many_values(
    decoded: list[int], finish: str | None, kind: str | None
) -> None:
    assert end_signal(event(finish, x=MANY)) == kind
    assert max(decoded, default=0) <= 1


def test_what_is_too_much_is_not_taken_apart() -> None:
    assert Chunk.read(event(tool_calls=MANY)) is None
    assert Chunk.read(event(tool_calls=[])) is not None


def test_the_number_of_values_is_never_taken_for_less() -> None:
    samples: tuple[Any, ...] = ([], {}, [1, 2], {"a": {"b": []}}, MANY, "a,b", [[[[1]]]], None)
    for what in samples:
        raw = json.dumps(what).encode()
        assert may_have_many_values(raw, 1) or has_few_values(what, 0)
    assert not may_have_many_values(b"[" + b"1," * 100 + b"1]")


def test_no_more_choices_are_slimmed_than_are_kept() -> None:
    choices = [{"index": n, "delta": {"content": "x"}} for n in range(MAX_CHOICES)]
    body = {"choices": choices, "pad": MANY}
    found = read_slim(json.dumps(body).encode(), "delta")
    assert found is not None
    assert len(found["choices"]) == MAX_CHOICES  # type: ignore[arg-type]
