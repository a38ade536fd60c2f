"""Answers of the Messages API: streamed or plain, whole or cut, the same is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import MAX_INLINE_MEDIA_BYTES, read_message
from proxy.chat.reply.answer import Choice, Reply
from proxy.formats.messages.events import end_signal, may_end
from proxy.formats.messages.reply import EventReader, read_answer
from proxy.formats.native import native_of
from tests.support.upstream.anthropic import (
    events_of,
    message,
    signature,
    text,
    thinking,
    tool_use,
)

Json = dict[str, Any]

CITED = {**text("It snows."), "citations": [{"type": "char_location", "cited_text": "snow"}]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
HITS = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        {"type": "web_search_result", "url": "https://example.com", "encrypted_content": "e=="},
    ],
}
SAID: dict[str, list[Json]] = {
    "text": [text("Hello there,\n you.")],
    "two texts": [text("one "), text("two")],
    "a call": [text("Let me see."), tool_use("look", {"at": ["x", {"y": 1.5}], "é": "\U0001f600"})],
    "calls": [tool_use("a", {}, "toolu_1"), tool_use("b", {"n": 1}, "toolu_2")],
    "a thought": [thinking("Hm, let me think."), text("Yes.")],
    "a thought and a call": [thinking("I should look."), tool_use("look", {})],
    "thoughts that are not told": [{"type": "redacted_thinking", "data": "e=="}, text("Yes.")],
    "a search": [SEARCH, HITS, CITED],
    "something unknown": [{"type": "later", "of": {"any": ["shape"]}}, text("Yes.")],
}
SAMPLES = pytest.mark.parametrize("blocks", SAID.values(), ids=SAID)


def streamed(said: Json, leave: int = 0) -> Reply:
    """The reply of a stream without so many events at its end."""
    events, reader = list(events_of(said)), EventReader()
    for each in events[: len(events) - leave]:
        reader.feed(json.dumps(each).encode())
    return reader.build()


def plain(said: Json) -> Reply:
    reply = read_answer(json.dumps(said).encode())
    assert reply is not None
    return reply


def only(reply: Reply) -> Choice:
    (choice,) = reply.choices
    return choice


@SAMPLES
def test_streamed_or_plain_the_same_is_recorded(blocks: list[Json]) -> None:
    said = message(*blocks)
    assert only(streamed(said)) == only(plain(said))
    assert json.loads(plain(said).usage or b"") == json.loads(streamed(said).usage or b"")
    assert streamed(said).token_usage.cached == plain(said).token_usage.cached == 11
    assert streamed(said).token_usage.written == plain(said).token_usage.written == 3


@SAMPLES
def test_what_chat_completions_cannot_say_is_kept_verbatim(blocks: list[Json]) -> None:
    body = only(streamed(message(*blocks))).body
    parts = native_of(body, "messages")
    kept = [json.loads(part) for part in parts] if parts else None
    assert kept in (None, blocks)
    plain_kinds = {"text", "tool_use"}
    said_all = {b["type"] for b in blocks} <= plain_kinds and all(
        "citations" not in b for b in blocks
    )
    assert (kept is None) == said_all


def test_the_chat_message_is_what_its_calls_and_texts_say() -> None:
    choice = only(plain(message(*SAID["a call"])))
    said = json.loads(choice.body)
    (call,) = said["tool_calls"]
    assert said["content"] == "Let me see."
    assert call["function"]["name"] == "look"
    assert json.loads(call["function"]["arguments"]) == {"at": ["x", {"y": 1.5}], "é": "\U0001f600"}
    assert (choice.calls, choice.finish_reason, choice.complete) == (("toolu_1",), "tool_use", True)


def test_history_has_the_thoughts_and_the_log_does_not_show_them_elsewhere() -> None:
    choice = only(plain(message(*SAID["a thought"])))
    assert json.loads(choice.wire or b"")["reasoning_content"] == "Hm, let me think."
    assert json.loads(choice.body)["content"] == "Yes."


@pytest.mark.parametrize("leave", [2, 4, 6])
def test_of_an_answer_that_was_cut_off_the_text_is_sent_back_and_nothing_else(leave: int) -> None:
    said = message(text("Let me see."), tool_use("look", {"at": "the long road"}))
    choice = only(streamed(said, leave))
    assert not choice.complete
    assert json.loads(choice.body) == {"role": "assistant", "content": "Let me see."}
    assert choice.calls == ()


def test_nor_does_a_line_stand_in_it_for_what_the_upstream_did() -> None:
    choice = only(streamed(message(text("Let me see."), SEARCH, HITS), leave=2))
    assert not choice.complete
    assert json.loads(choice.body) == {"role": "assistant", "content": "Let me see."}
    assert choice.wire is not None and b"[server_tool_use, " in choice.wire


def test_a_thought_without_its_signature_is_taken_by_nobody() -> None:
    unsigned = {**thinking("Hm."), "signature": ""}
    body = only(plain(message(unsigned, tool_use("look", {})))).body
    assert b"Hm." not in body
    assert signature("Hm.").encode() not in body


def test_half_a_character_at_a_time_is_a_whole_one() -> None:
    reader = EventReader()
    for each in events_of(message(text("\U0001f600"), tool_use("x", {"y": "\ud83d"}))):
        reader.feed(json.dumps(each).encode())
    said = message(text("\ud83d x"))
    assert only(plain(said)).text == "\N{REPLACEMENT CHARACTER} x"
    assert only(plain(said)).finish_reason == "end_turn"
    halves = [r"\ud83d", r"\ude00"]
    for half in halves:
        reader.feed(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}'
            % half.encode()
        )
    choice = only(reader.build())
    assert choice.text == "\U0001f600" * 2
    (call,) = json.loads(choice.body)["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"y": "\ud83d"}


def starts(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def adds(index: int, kind: str, **more: Any) -> Json:
    delta = {"type": f"{kind}_delta", **more}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stops(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


CALL = tool_use("look", {"q": 1}, "toolu_9")
CALLS = [starts(0, {**CALL, "input": {}}), adds(0, "input_json", partial_json='{"q":')]
CALLED = adds(0, "input_json", partial_json="1}")
HM = [
    starts(0, {"type": "thinking", "thinking": "", "signature": ""}),
    adds(0, "thinking", thinking="Hm."),
    adds(0, "signature", signature=signature("Hm.")),
]
ONE = [starts(0, text("")), adds(0, "text", text="one")]

SUMMED = {"type": "compaction", "content": "They said hello.", "signature": "s=="}

ODD: dict[str, tuple[list[Json], list[Json]]] = {
    "an index for a text and a call": ([*ONE, stops(0), *CALLS, CALLED], [text("one"), CALL]),
    "an index for a thought and a text": ([*HM, stops(0), *ONE], [thinking("Hm."), text("one")]),
    "an index for two texts": ([*ONE, stops(0), *ONE], [text("one"), text("one")]),
    "a call that begins twice": ([CALLS[0], *CALLS, CALLED], [CALL]),
    "indices that begin anew": (
        [*ONE, starts(1, {**CALL, "input": {"q": 1}}), *HM],
        [text("one"), CALL, thinking("Hm.")],
    ),
    "a blank text in a call": ([*CALLS, adds(0, "text", text="\n"), CALLED], [CALL]),
    "a text in a call": ([*CALLS, adds(0, "text", text="one"), CALLED], [CALL, text("one")]),
    "a text in a thought": ([*HM, adds(0, "text", text="one")], [thinking("Hm."), text("one")]),
    "a thought in a text": ([*ONE, *HM[1:]], [text("one"), thinking("Hm.")]),
    "an unsigned thought in a text": (
        [*ONE, HM[1]],
        [text("one"), {**thinking("Hm."), "signature": ""}],
    ),
    "a call's input in a text": ([*ONE, CALLED], [text("one")]),
    "a citation in a call": ([*CALLS, adds(0, "citations", citation={}), CALLED], [CALL]),
    "a field of tomorrow in a text": ([*ONE, adds(0, "later", mood="good")], [text("one")]),
    "a text beside a search": (
        [starts(0, SEARCH), starts(1, HITS), adds(1, "text", text="one")],
        [SEARCH, HITS, text("one")],
    ),
    "a signature of what is no thought": (
        [
            starts(0, {**SUMMED, "content": None, "signature": None}),
            adds(0, "compaction", content=SUMMED["content"], signature=SUMMED["signature"]),
        ],
        [SUMMED],
    ),
    "a text that never began": ([adds(0, "text", text="one")], [text("one")]),
}


@pytest.mark.parametrize(("events", "blocks"), ODD.values(), ids=ODD)
def test_of_odd_streams_are_kept_blocks_that_upstreams_take(
    events: list[Json], blocks: list[Json]
) -> None:
    begun, _, *_, ending, _ = events_of(message(*blocks))
    reader = EventReader()
    for each in (begun, *events, ending):
        reader.feed(json.dumps(each).encode())
    assert only(reader.build()) == only(plain(message(*blocks)))


def test_blocks_that_begin_again_and_again_are_kept_as_far_as_there_is_room() -> None:
    reader = EventReader(max_bytes=10_000)
    for number in range(9):
        reader.feed(json.dumps(starts(number % 2, text("x" * 2000))).encode())
    reply = reader.build()
    assert (reply.truncated, only(reply).complete) == (True, False)
    assert len(only(reply).text) < 10_000


def test_an_error_in_a_stream_is_one() -> None:
    reader = EventReader()
    reader.feed(b'{"type":"message_start","message":{"model":"m","usage":{}}}')
    reader.feed(b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    assert reader.build().error
    assert plain({"type": "error", "error": {"type": "api_error", "message": "x"}}).error


def test_a_text_that_says_nothing_is_not_kept() -> None:
    assert only(plain(message(text(" "), tool_use("look", {})))).text == ""
    assert only(plain(message(text("")))).blank


@pytest.mark.parametrize(
    ("event", "means"),
    [
        (b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}', "finish"),
        (b'{"type":"message_\\u0064elta","delta":{"stop_reason":"tool_use"}}', "finish"),
        (b'{"type":"message_delta","delta":{"stop_reason":null}}', None),
        (b'{"type":"message_delta","delta":null}', None),
        (b'{"type":"message_stop"}', "done"),
        (b"[DONE]", "done"),
        (b'{"type":"error","error":{"type":"api_error"}}', "error"),
        (b'{"error":{"message":"x"}}', "error"),
        (
            b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"message_stop"}}',
            None,
        ),
        (b'{"type":"ping"}', None),
        (b'{"type":"error","error":{"message":"\\ud83d"}}', "error"),
        (b'{"type":["message_stop"]}', None),
        (b"message_stop", None),
        (b'"message_stop"', None),
    ],
)
def test_what_an_event_means(event: bytes, means: str | None) -> None:
    assert end_signal(event) == means
    assert may_end(event) or means is None


KEYS = st.sampled_from(
    ["type", "index", "delta", "content_block", "message", "usage", "text", "partial_json", "error"]
    + ["stop_reason", "content", "thinking", "signature", "citation", "input", "id", "name"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]
)
odd_events = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    KINDS,
    st.dictionaries(KEYS, json_values, max_size=5),
)


@given(st.lists(odd_events | json_values, max_size=8))
def test_an_upstream_that_says_anything_breaks_nothing(events: list[Any]) -> None:
    reader = EventReader()
    for each in events:
        payload = json.dumps(each).encode()
        end_signal(payload)
        reader.feed(payload)
    for choice in reader.build().choices:
        assert read_message(choice.body) is not None


@given(json_values)
def test_a_plain_answer_of_any_shape_breaks_nothing(value: Any) -> None:
    read_answer(json.dumps(value).encode())
    read_answer(json.dumps({"type": "message", "content": value, "usage": value}).encode())


def test_a_large_page_that_was_fetched_is_a_document_that_says_what_it_was() -> None:
    data = "A" * (MAX_INLINE_MEDIA_BYTES + 4)
    pdf = {"type": "base64", "media_type": "application/pdf", "data": data}
    fetched = {"type": "document", "source": pdf, "title": "A page"}
    page = {"type": "web_fetch_result", "url": "https://example.com/a.pdf", "content": fetched}
    result = {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": page}
    body = json.loads(only(plain(message(result, text("Read.")))).body)
    [kept, _] = body["native"]["parts"]
    source = kept["content"]["content"].pop("source")
    assert kept == {
        **result,
        "content": {**page, "content": {"type": "document", "title": "A page"}},
    }
    assert source["type"] == "text"
    assert source["data"].startswith("[application/pdf, 49155 bytes, ")


def test_of_an_answer_that_is_too_much_the_texts_are_kept() -> None:
    heavy = {"type": "later", "of": [[]] * 200_000}
    choice = only(reply := plain(message(heavy, text("Yes."))))
    assert (reply.truncated, choice.text, choice.complete) == (True, "Yes.", False)
    reply = streamed(message(heavy, text("Yes.")))
    assert (reply.truncated, only(reply).text, only(reply).complete) == (True, "Yes.", False)


def test_of_an_answer_that_is_too_long_the_rest_is_not_kept() -> None:
    reader = EventReader(max_bytes=10)
    for each in events_of(message(text("one two three four"))):
        reader.feed(json.dumps(each).encode())
    reply = reader.build()
    assert reply.truncated
    assert not only(reply).complete
    assert len(only(reply).text) <= 10
