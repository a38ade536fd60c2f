"""What of an answer goes back, and what came."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from proxy.chat.native import without_native
from tests.support.upstream.replies import Fields, built, call, deltas, plain, streamed


def test_what_a_request_may_carry_back_is_the_body_and_all_that_came_is_the_wire() -> None:
    message: Fields = {
        "role": "assistant",
        "content": "4",
        "reasoning_content": "2 + 2",
        "annotations": [{"type": "url_citation"}],
        "refusal": None,
    }
    choice = plain(message, logprobs={"content": [{"token": "4", "logprob": -0.5}]})
    assert choice.body == b'{"role":"assistant","content":"4"}'
    assert choice.wire is not None
    assert json.loads(choice.wire) == {
        "role": "assistant",
        "content": "4",
        "annotations": [{"type": "url_citation"}],
        "reasoning_content": "2 + 2",
        "logprobs": {"content": [{"token": "4", "logprob": -0.5}]},
    }


def test_a_message_that_is_its_own_body_has_no_wire() -> None:
    message: Fields = {"content": "hi", "role": "assistant", "refusal": None, "annotations": []}
    choice = plain(message)
    assert choice.body == b'{"role":"assistant","content":"hi"}'
    assert choice.wire is None


def test_log_probabilities_of_a_stream_extend() -> None:
    chunks = [
        {
            "choices": [
                {"index": 0, "delta": {"content": t}, "logprobs": {"content": [{"token": t}]}}
            ]
        }
        for t in "ab"
    ]
    (choice,) = built([*chunks, *deltas()]).choices
    assert choice.wire is not None
    assert json.loads(choice.wire)["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}
    assert choice.text == "ab"


@pytest.mark.parametrize("content", [None, "", "absent"])
def test_no_content_beside_calls_is_null(content: str | None) -> None:
    message: Fields = {"tool_calls": [call("{}")]}
    if content != "absent":
        message["content"] = content
    for choice in (plain(message), streamed(message)):
        assert json.loads(choice.body)["content"] is None
        assert choice.calls == ("c1",)


@pytest.mark.parametrize("message", [{}, {"content": None}, {"content": "", "reasoning": "hm"}])
def test_an_answer_of_nothing_is_blank(message: Fields) -> None:
    for choice in (plain(message), streamed(message)):
        assert choice.body == b'{"role":"assistant","content":""}'
        assert choice.blank


def test_fields_that_an_upstream_put_into_a_call_go_back_to_it() -> None:
    signed = call("{}", extra_content={"google": {"thought_signature": "s"}})
    choice = streamed({"tool_calls": [{**signed, "index": 0}]})
    assert json.loads(choice.body)["tool_calls"] == [signed]
    assert choice == plain({"tool_calls": [signed]})


def test_a_custom_call_is_kept() -> None:
    first = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": "a"}}
    choice = streamed(
        {"tool_calls": [first]}, {"tool_calls": [{"index": 0, "custom": {"input": "b"}}]}
    )
    (found,) = json.loads(choice.body)["tool_calls"]
    assert found == {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "ab"}}


def test_thinking_parts_stay_in_the_wire_and_a_single_text_becomes_a_string() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}
    whole = plain({"content": [thinking, {"type": "text", "text": "four"}]})
    piecewise = streamed(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "mm"}]}]},
        {"content": "fo"},
        {"content": "ur"},
    )
    assert whole == piecewise
    assert whole.body == b'{"role":"assistant","content":"four"}'


def test_items_with_an_index_are_merged_by_it() -> None:
    parts: list[Fields] = [
        {"reasoning_details": [{"type": "reasoning.text", "text": t, "format": "x", "index": 0}]}
        for t in "ab"
    ]
    choice = streamed(*parts, {"content": "x"})
    assert choice.wire is not None
    assert json.loads(choice.wire)["reasoning_details"] == [
        {"type": "reasoning.text", "text": "ab", "format": "x", "index": 0}
    ]


def test_only_the_id_of_an_audio_goes_back_and_large_data_becomes_a_line() -> None:
    data = b64encode(b"x" * 90_000).decode()
    choice = streamed(
        {"audio": {"id": "a1", "transcript": "he"}},
        {"audio": {"data": data[:60_000]}},
        {"audio": {"data": data[60_000:], "transcript": "llo"}},
        {"audio": {"expires_at": 5}},
    )
    sent = without_native(choice.body)
    assert sent == b'{"role":"assistant","content":null,"audio":{"id":"a1"}}'
    assert choice.wire is not None
    audio = json.loads(choice.wire)["audio"]
    assert audio["transcript"] == "hello"
    assert audio["data"].startswith("[audio, 90000 bytes")


def test_the_words_of_a_spoken_answer_are_its_text() -> None:
    choice = streamed({"audio": {"id": "a1", "transcript": "he"}}, {"audio": {"transcript": "llo"}})
    assert choice.text == "hello"
    silent = plain({"content": None, "audio": {"id": "a1"}})
    assert (silent.text, silent.digest) == ("", choice.digest)


def test_of_a_spoken_answer_that_was_cut_off_the_words_go_back() -> None:
    choice = streamed({"audio": {"id": "a1", "transcript": "hel"}}, finish=None)
    assert json.loads(choice.body) == {"role": "assistant", "content": "hel"}
