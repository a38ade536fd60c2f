"""The gate: where a stream is held back, and what the tap hears, however it is cut up."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire.sse import MAX_CLASSIFIED, MAX_EVENT_LINES, Gate, HoldPoint
from tests.support.upstream.answers import chat_stream, pieces_of, tool_call
from tests.support.upstream.streams import Played, check, classify, suspect

FINISH = b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
DELTA = b'{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}'
HOSTILE = {
    "plain": b"data: " + DELTA + b"\n\ndata: " + FINISH + b"\n\ndata: [DONE]\n\n",
    "no-space": b"data:" + DELTA + b"\n\ndata:" + FINISH + b"\n\ndata:[DONE]\n\n",
    "crlf": b"data: " + FINISH + b"\r\n\r\ndata: [DONE]\r\n\r\n",
    "cr": b"data: " + FINISH + b"\r\rdata: [DONE]\r\r",
    "mixed": b"data: 1\r\n\ndata: 2\n\r\ndata: [DONE]\r\r\n",
    "bom": b"\xef\xbb\xbfdata: [DONE]\n\n\xef\xbb\xbfdata: not data\n\n",
    "bom-only": b"\xef\xbb\xbf\ndata: [DONE]\n\n",
    "no-end": b"data: 1\n\ndata: [DONE]",
    "one-newline": b"data: 1\n\ndata: [DONE]\n",
    "comment-first": b": ping\n\n:\ndata: [DONE]\n\n",
    "fields": b"event: x\nid: 1\nretry: 5\ndata: " + FINISH + b"\nid\n\n",
    "look-alikes": b"dat: [DONE]\n\ndata : [DONE]\n\n data: [DONE]\n\nDATA: [DONE]\n\ndatas\n\n",
    "done-as-text": b'data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\ndata: [DONE]\n\n',
    "two-lines": b'data: {"choices":[{"finish_reason":\ndata: "stop"}]}\n\ndata: [DONE]\n\n',
    "complete-then-more": b"data: [DONE]\ndata: more\ndata\ndata:\n\n",
    "error": b'data: {"error":{"message":"x"}}\n\ndata: [DONE]\n\n',
    "empty-events": b"data\n\ndata:\n\ndata: \n\n\n\n",
    "two-spaces": b"data:  [DONE]\n\n",
    "finish-reason-is-text": b'data: {"choices":[{"delta":{"content":"finish_reason"}}]}\n\n',
    "other-choice": b'data: {"choices":[{"index":1,"finish_reason":"stop"}]}\n\n',
    "escaped-key": b'data: {"choices":[{"finish\\u005freason":"stop"}]}\n\n',
    "unicode": 'data: {"a":"\u2028\u2029\u0085é😀"}\n\ndata: [DONE]\n\n'.encode(),
    "colon-value": b"data:::\n\ndata: :[DONE]\n\n",
    "nul": b"data: \0\n\ndata: [DONE]\n\n",
}
STREAMS = [pytest.param(stream, id=name) for name, stream in HOSTILE.items()]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_in_one_piece_is_marked_and_heard_right(stream: bytes) -> None:
    check(stream, [stream])


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_byte_by_byte_is_marked_and_heard_right(stream: bytes) -> None:
    check(stream, pieces_of(stream, 1))


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_cut_at_any_byte_is_marked_and_heard_right(stream: bytes) -> None:
    for at in range(len(stream) + 1):
        check(stream, [stream[:at], stream[at:]])


@pytest.mark.parametrize("stream", [row for row in STREAMS if len(HOSTILE[str(row.id)]) < 50])
def test_a_stream_cut_at_any_two_bytes_is_marked_and_heard_right(stream: bytes) -> None:
    for a, b in combinations(range(len(stream) + 1), 2):
        check(stream, [stream[:a], stream[a:b], stream[b:]])


LINES = st.sampled_from(
    [
        b"",
        b"",
        b"data: " + DELTA,
        b"data: " + FINISH,
        b"data: [DONE]",
        b"data:[DONE]",
        b"data",
        b"data:",
        b"data: \xef\xbb\xbf",
        b'data: {"error":"x"}',
        b'data: {"choices":',
        b'data: [{"finish_reason":"length"}]}',
        b": comment [DONE]",
        b"event: error",
        b"x",
        b"\xef\xbb\xbf",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
WRITTEN = st.lists(st.tuples(LINES, ENDS), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
)
RAW = st.text(alphabet="da t:\r\n[DONE]{}\ufeff", max_size=60).map(str.encode)


@settings(max_examples=200, deadline=None)
@given(stream=st.one_of(WRITTEN, RAW), tail=st.sampled_from([b"", b"data: [DONE]"]), data=st.data())
def test_no_way_to_cut_a_stream_changes_marks_or_payloads(
    stream: bytes, tail: bytes, data: st.DataObject
) -> None:
    stream += tail
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    edges = [0, *cuts, len(stream)]
    check(stream, [stream[a:b] for a, b in zip(edges, edges[1:], strict=False)])


CHUNKS = st.lists(
    st.sampled_from(
        [
            b"data: " + DELTA + b"\n\n",
            b"data: [DONE]\n\n",
            b"data: \xef\xbb\xbf\n\n",
            b"data: 1\n",
            b"data: 1\rdata: [DONE]\n\n",
            b"data: [DONE]\r\n\n",
            b"\xef\xbb\xbf",
            b"\xef\xbb\xbfdata: x\n\n",
            b": c",
            b"dat",
            b"\r",
            b"\n",
            b"\n\n",
            b"",
        ]
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(chunks=CHUNKS)
def test_whole_events_among_fragments_are_marked_and_heard_right(chunks: list[bytes]) -> None:
    check(b"".join(chunks), chunks)


SMALL_EVENTS = st.lists(
    st.sampled_from(
        [b"data: 123456\n\n", b"data: 1234567\n\n", b"data: 1234567", b"\n", b"data: 1\n\n"]
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(chunks=SMALL_EVENTS)
def test_the_bound_on_an_event_does_not_depend_on_the_chunks(chunks: list[bytes]) -> None:
    whole = Played([b"".join(chunks)], Gate(suspect, classify, max_event_bytes=6))
    by_chunk = Played(chunks, Gate(suspect, classify, max_event_bytes=6))
    assert by_chunk.payloads == whole.payloads
    assert by_chunk.gate.overflowed == whole.gate.overflowed


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from([b"data: 12345", b"data:1234567", b"data: 1234567", b":2345678901", b""]),
        max_size=10,
    ),
    size=st.integers(1, 9),
)
def test_the_bound_on_an_event_does_not_depend_on_the_cuts(lines: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    whole = Played([stream], Gate(suspect, classify, max_event_bytes=6))
    cut = Played(pieces_of(stream, size), Gate(suspect, classify, max_event_bytes=6))
    assert cut.payloads == whole.payloads
    assert cut.gate.overflowed == whole.gate.overflowed


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("split", [None, 1, 7], ids=["events", "bytes", "sevens"])
def test_a_real_answer_is_held_at_its_finish_and_at_done(newline: bytes, split: int | None) -> None:
    chunks = chat_stream(
        ["he", "llo"],
        [tool_call("f", '{"a": 1}')],
        include_usage=True,
        newline=newline,
        split=split,
    )
    played = Played(chunks)
    assert [kind for _, kind in played.marks] == ["finish", "done"]
    assert len(played.payloads) == len(chat_stream(["he", "llo"], [tool_call("f", '{"a": 1}')])) + 1
    assert b'"finish_reason": "tool_calls"}]}' + newline not in played.passed


def test_a_mark_says_where_in_the_chunk_the_line_begins() -> None:
    gate = Gate(suspect, classify)
    assert gate.feed(b"data: 1\n\ndata: [DONE]\n\n") == [HoldPoint(9, "done")]


def test_a_line_that_began_before_is_held_from_the_start_of_its_last_chunk() -> None:
    gate = Gate(suspect, classify)
    assert gate.feed(b"data: 1\n\ndata: [DO") == []
    assert gate.feed(b"NE]") == []
    assert gate.feed(b"\n") == [HoldPoint(0, "done")]


def test_a_line_feed_left_over_from_crlf_is_no_line_of_its_own() -> None:
    gate = Gate(suspect, classify)
    assert gate.feed(b"data: 1\r") == []
    assert gate.feed(b"\n\r\ndata: [DONE]\r") == [HoldPoint(3, "done")]
    assert gate.feed(b"\n\r") == []
    assert gate.take() == [b"1", b"[DONE]"]


def test_a_surely_harmless_payload_is_never_classified() -> None:
    asked: list[bytes] = []

    def record(raw: bytes) -> str | None:
        asked.append(raw)
        return None

    gate = Gate(suspect, record)
    gate.feed(b"data: " + DELTA + b"\n\ndata: " + FINISH + b"\n\n")
    assert asked == [FINISH]


def test_payloads_are_taken_once() -> None:
    gate = Gate(suspect, classify)
    gate.feed(b"data: 1\n\ndata: 2\n\ndata: 3")
    assert gate.take() == [b"1", b"2"]
    assert gate.take() == []
    gate.close()
    assert gate.take() == [b"3"]


@pytest.mark.parametrize("size", [1000, 7], ids=["whole", "in-pieces"])
def test_an_event_too_large_passes_unheard_and_the_next_is_heard_again(size: int) -> None:
    stream = b"data: " + b"x" * 200 + b"\ndata: [DONE]\n\ndata: " + FINISH + b"\n\n"
    played = Played(pieces_of(stream, size), Gate(suspect, classify, max_event_bytes=100))
    assert played.gate.overflowed
    assert played.payloads == [FINISH]
    assert [kind for _, kind in played.marks] == ["finish"]


def test_an_event_of_too_many_lines_passes_unheard() -> None:
    stream = b"data: 1\n" * (MAX_EVENT_LINES + 1) + b"\ndata: 2\n\n"
    played = Played([stream])
    assert played.gate.overflowed
    assert played.payloads == [b"2"]


def test_nothing_overflows_in_an_ordinary_stream() -> None:
    assert not Played(chat_stream(["a"] * 50)).gate.overflowed


def seconds(size: int) -> float:
    gate = Gate(lambda raw: False, classify)
    gate.feed(b"data: ")
    began = time.process_time()
    for _ in range(size):
        gate.feed(b"x")
    gate.feed(b"\n\n")
    taken = time.process_time() - began
    assert gate.take() == [b"x" * size]
    return taken


def test_a_long_line_byte_by_byte_takes_linear_time() -> None:
    small = min(seconds(20_000) for _ in range(3))
    # 10 times as much takes 10 times as long; quadratic work would take 100 times.
    assert seconds(200_000) < 40 * small


def test_an_event_of_many_long_lines_is_not_looked_at_again_for_each() -> None:
    seen: list[int] = []

    def suspect(raw: bytes) -> bool:
        seen.append(len(raw))
        return False

    gate = Gate(suspect, lambda raw: None)
    line, lines = b"data: " + b"x" * 60_000 + b"\n", MAX_EVENT_LINES - 6
    for _ in range(lines):
        gate.feed(line)
    gate.feed(b"\n")
    (payload,) = gate.take()
    assert payload == b"\n".join([b"x" * 60_000] * lines)
    assert seen[-1] == len(payload) and sum(seen[:-1]) <= MAX_CLASSIFIED


@pytest.mark.parametrize("size", [1, 7, 65_536, 10_000_000])
def test_the_end_of_a_long_event_waits_if_its_last_line_matters(size: int) -> None:
    gate = Gate(lambda raw: b"stop" in raw, lambda raw: "finish" if b"stop" in raw else None)
    gate.feed(b": begun\n\n")
    for _ in range(3):
        gate.feed(b"data: " + b"x" * MAX_CLASSIFIED + b"\n")
    rest, held = b"data: stop\n\n: on\n", b""
    for at in range(0, len(rest), size):
        chunk = rest[at : at + size]
        for mark in gate.feed(chunk):
            assert (mark.kind, held) == ("finish", b"")
            held = rest[at + mark.offset :]
    assert held == b"\n: on\n"
    gate.feed(b"data: more\n\n")
    assert [payload[-4:] for payload in gate.take()] == [b"stop", b"more"]
