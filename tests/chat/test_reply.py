from __future__ import annotations

import json
import time

import pytest

from proxy.chat.reply.reply import ReplyBuilder, read_reply
from tests.support.upstream.replies import (
    Fields,
    built,
    call,
    calls_in,
    deltas,
    piece,
    plain,
    streamed,
)


def test_partial_calls_of_an_incomplete_answer_never_go_back() -> None:
    choice = streamed({"content": "let me see"}, piece('{"a', index=0, id="c1"), finish=None)
    assert not choice.complete
    assert choice.body == b'{"role":"assistant","content":"let me see"}'
    assert choice.calls == ()
    assert choice.wire is not None
    assert json.loads(choice.wire)["tool_calls"][0]["function"]["arguments"] == '{"a'


def test_an_incomplete_answer_of_calls_alone_is_blank() -> None:
    choice = streamed(piece('{"a', index=0, id="c1"), finish=None)
    assert choice.blank
    assert choice.body == b'{"role":"assistant","content":""}'


def test_an_answer_that_finished_in_an_error_is_incomplete() -> None:
    error = {"error": {"code": 502}, **_chunk({}, "error")}
    reply = built([*deltas({"content": "x"}, finish=None), error])
    assert reply.error
    assert not reply.choices[0].complete


def _chunk(delta: Fields, finish: str | None = None) -> Fields:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_choices_are_sorted_by_index_and_kept_apart() -> None:
    parts = [*deltas({"content": "b"}, index=1, finish=None), *deltas({"content": "a"}, index=0)]
    reply = built(parts)
    assert [(c.index, c.text, c.complete) for c in reply.choices] == [
        (0, "a", True),
        (1, "b", False),
    ]


def test_usage_and_model_are_found_wherever_they_are_said() -> None:
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}
    last: Fields = {"choices": [], "usage": usage}
    reply = built([{"model": "m", "usage": None, **_chunk({"content": "x"})}, last, b"[DONE]"])
    assert (reply.model, reply.token_usage.cached) == ("m", 5)
    assert reply.usage is not None
    assert json.loads(reply.usage) == usage
    inside: Fields = {"choices": [{"index": 0, "delta": {}, "usage": usage}]}
    assert built([inside]).token_usage.cached == 5


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_cache_hit_tokens": 3}, 3),
        ({"cache_read_input_tokens": 4}, 4),
        ({"prompt_tokens_details": None}, 0),
        ({"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 9}, 0),
        ({"prompt_tokens_details": "x"}, 0),
        ({}, 0),
    ],
)
def test_cached_tokens_are_read_in_every_dialect(usage: Fields, cached: int) -> None:
    reply = read_reply(json.dumps({"choices": [], "usage": usage}).encode())
    assert reply is not None
    assert reply.token_usage.cached == cached


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        ({"prompt_tokens_details": {"cache_write_tokens": 3, "cached_tokens": 0}}, 3),
        ({"prompt_tokens_details": {"cache_creation_tokens": 4}}, 4),
        ({"cache_creation_input_tokens": 5}, 5),
        ({"prompt_tokens_details": {"cached_tokens": 5}}, 0),
        ({"cache_creation_input_tokens": -1}, 0),
        ({"cache_creation_input_tokens": 10**30}, 0),
        ({}, 0),
    ],
)
def test_what_is_written_to_a_cache_is_read_in_every_dialect(usage: Fields, written: int) -> None:
    reply = read_reply(json.dumps({"choices": [], "usage": usage}).encode())
    assert reply is not None
    assert reply.token_usage.written == written
    assert built([{"choices": [], "usage": usage}]).token_usage.written == written


def test_a_message_instead_of_a_delta_does_not_double_what_was_said() -> None:
    last: Fields = {
        "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]
    }
    reply = built([*deltas({"content": "hel"}, {"content": "lo"}, finish=None), last])
    assert reply.choices[0].text == "hello"
    assert reply.choices[0].complete
    calls: Fields = {"choices": [{"index": 0, "message": {"tool_calls": [call("{}")]}}]}
    reply = built([*deltas({"tool_calls": [call("{}", index=0)]}, finish=None), calls, *deltas()])
    assert calls_in(reply.choices[0]) == [("c1", "f", "{}")]


def test_messages_instead_of_deltas_all_the_way_add_up() -> None:
    parts = [{"choices": [{"index": 0, "message": {"content": t}}]} for t in ("he", "llo")]
    assert built([*parts, *deltas()]).choices[0].text == "hello"


GARBAGE = [
    b"",
    b"[DONE]",
    b"{",
    b"null",
    b'"x"',
    b"[1]",
    b"\xff",
    b'{"choices":5}',
    b'{"choices":[5,null,"x"]}',
    b'{"choices":[{"index":0,"delta":5}]}',
    b'{"choices":[{"index":-1,"delta":{"content":"no"}},{"index":999,"delta":{"content":"no"}}]}',
    b'{"choices":[{"index":0,"delta":{"tool_calls":5}}]}',
    b'{"choices":[{"index":0,"delta":{"tool_calls":[5,{"index":null,"function":5}]}}]}',
    b'{"choices":[{"index":0,"delta":{"content":[{"type":[]},{"type":[]},5]}}]}',
    b'{"choices":[{"index":0,"delta":{"x":' + b"[" * 400 + b"]" * 400 + b"}}]}",
    b'{"choices":[{"index":0,"delta":{"x":' + b'{"y":' * 9_000 + b"1" + b"}" * 9_000 + b"}}]}",
]


@pytest.mark.parametrize("payload", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_a_stream_is_passed_over(payload: bytes) -> None:
    reply = built([*deltas({"content": "a"}, finish=None), payload, *deltas({"content": "b"})])
    assert not reply.error
    assert "a" in reply.choices[0].text and "b" in reply.choices[0].text
    assert "no" not in reply.choices[0].text


@pytest.mark.parametrize("payload", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_as_a_plain_answer_does_not_raise(payload: bytes) -> None:
    read_reply(payload)
    read_reply(payload.replace(b'"delta"', b'"message"'))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"choices":{}}', b'{"data":[]}'])
def test_a_plain_answer_without_choices_is_no_reply(body: bytes) -> None:
    assert read_reply(body) is None


@pytest.mark.parametrize("body", [b'{"error":{"message":"x"}}', b'{"object":"error"}'])
def test_an_error_is_an_error_streamed_or_plain(body: bytes) -> None:
    reply = read_reply(body)
    assert reply is not None
    assert reply.error and reply.choices == ()
    assert built([*deltas({"content": "x"}, finish=None), body]).error


def test_a_plain_answer_is_complete_even_if_it_gives_no_reason() -> None:
    choice = plain({"content": "x"}, finish_reason=None)
    assert choice.complete
    assert choice.finish_reason is None


ANSWER: Fields = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}},
}
SILENT: list[Fields] = [
    {"audio": None},
    {"refusal": None, "annotations": []},
    {"name": ""},  # the common answers do not say this: it is read in the other way
]


@pytest.mark.parametrize("silent", SILENT)
@pytest.mark.parametrize("text", ["hello", "", " ä\n", "{[" * 60, "half \ud83d"])
@pytest.mark.parametrize(
    "more",
    [{}, {"object": "error"}, {"error": "e"}, {"model": None}, {"usage": None}, {"usage": 1}],
)
def test_an_answer_is_the_same_whatever_says_nothing_beside_its_text(
    silent: Fields, text: str, more: Fields
) -> None:
    told = [
        json.dumps(
            {
                **ANSWER,
                "choices": [
                    {"message": {"role": "assistant", "content": text, **beside}, "index": 0}
                ],
                **more,
            }
        )
        for beside in ({"name": "", "audio": None}, silent)
    ]
    slow, read = (read_reply(body.encode()) for body in told)
    assert read == slow
    assert read is not None
    assert read.choices[0].wire is None


def test_an_emoji_cut_in_two_is_whole_again() -> None:
    halves = [
        b'{"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}',
    ]
    (choice,) = built([*halves, *deltas()]).choices
    assert choice == plain({"content": "a😀b"})
    assert choice.body == '{"role":"assistant","content":"a😀b"}'.encode()


def test_half_an_emoji_is_recorded_as_it_came() -> None:
    (choice,) = built([b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', *deltas()]).choices
    assert choice.body == b'{"role":"assistant","content":"a\\ud83d"}'
    assert choice.text == "a\ufffd"


def test_a_reply_beyond_the_bound_is_truncated_and_incomplete() -> None:
    reply = built(
        [*deltas({"content": "12345"}, {"content": "67890"}, {"content": "x"})], max_bytes=10
    )
    assert reply.truncated
    assert reply.choices[0].text == "1234567890"
    assert not reply.choices[0].complete


def test_a_choice_that_finished_before_the_bound_is_whole() -> None:
    rest = deltas({"content": "a"}, {"content": "x" * 100}, index=1)
    reply = built([*deltas({"content": "12345"}), *rest], max_bytes=50)
    assert reply.truncated
    assert [choice.complete for choice in reply.choices] == [True, False]


def test_a_reply_can_be_built_while_it_grows() -> None:
    builder = ReplyBuilder()
    texts = []
    for part in deltas({"content": "a"}, {"content": "b"}, piece("{}", index=0, id="c1")):
        builder.feed(json.dumps(part).encode())
        texts.append(builder.build().choices[0].text)
    assert texts == ["a", "ab", "ab", "ab"]
    assert builder.build() == builder.build()
    assert builder.build().choices[0].calls == ("c1",)


def test_many_small_pieces_take_linear_time() -> None:
    part = json.dumps(_chunk(piece("ab", index=0, id="c1"))).encode()
    builder = ReplyBuilder()
    began = time.process_time()
    for _ in range(40_000):
        builder.feed(part)
    choice = builder.build().choices[0]
    assert time.process_time() - began < 5.0
    assert choice.wire is not None
    assert len(choice.wire) > 80_000
