"""The gate: where a stream is held back, and what the tap hears, however it is cut up."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire.sse import MAX_EVENT_LINES, Gate, Mark
from tests.support.answers import chat_stream, pieces_of, tool_call

NULL = re.compile(rb'"finish_reason"\s*:\s*null')


def suspect(raw: bytes) -> bool:
    """False only where ``classify`` surely answers None."""
    if raw.count(b"finish_reason") != len(NULL.findall(raw)):
        return True
    return b"[DONE]" in raw or b'"error"' in raw or b"\\u00" in raw


def classify(raw: bytes) -> str | None:
    if raw == b"[DONE]":
        return "done"
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if value.get("error"):
        return "error"
    choices = value.get("choices") or [{}]
    first = [choice for choice in choices if choice.get("index", 0) == 0]
    return "finish" if first and first[0].get("finish_reason") else None


def reference(stream: bytes) -> list[bytes]:
    """Payloads by the letter of WHATWG HTML 9.2.6, and an event's end at the stream's end."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    payloads: list[bytes] = []
    data: list[bytes] = []
    for line in [*text.split(b"\n"), b""]:
        if not line and data:
            payloads.append(b"\n".join(data))
        if not line:
            data = []
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    return payloads


def reference_marks(stream: bytes) -> list[tuple[int, str]]:
    """Where marked lines begin and what they are, line by line, with absolute positions."""
    marks: list[tuple[int, str]] = []
    data: list[bytes] = []
    kinds: set[str] = set()
    start = 0
    for end in [*re.finditer(rb"\r\n|\n|\r", stream), None]:
        line = stream[start : end.start() if end else None]
        begin, start = start, end.end() if end else len(stream)
        if begin == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")
        name, _, value = line.partition(b":")
        if not line:
            data, kinds = [], set()
        elif name == b"data":
            data.append(value.removeprefix(b" "))
            kind = classify(b"\n".join(data))
            if kind and kind not in kinds:
                kinds.add(kind)
                marks.append((begin, kind))
    return marks


class Played:
    """A stream as a gate saw it: marks with absolute positions, payloads, bytes let through."""

    def __init__(self, chunks: Sequence[bytes], gate: Gate | None = None) -> None:
        gate = gate or Gate(suspect, classify)
        self.gate = gate
        self.marks: list[tuple[int, str]] = []
        self.payloads: list[bytes] = []
        self.passed = b""  # before the first mark
        at = 0
        for chunk in chunks:
            marks = gate.feed(chunk)
            self._note(marks, at, chunk)
            self.payloads += gate.take()
            at += len(chunk)
        self._note(gate.close(), at, b"")
        self.payloads += gate.take()

    def _note(self, marks: list[Mark], at: int, chunk: bytes) -> None:
        if not self.marks:
            self.passed += chunk[: marks[0].offset] if marks else chunk
        self.marks += [(at + mark.offset, mark.kind) for mark in marks]


def line_end(stream: bytes, start: int) -> int:
    """Where the line that begins at ``start`` ends, its first line-end byte excluded."""
    found = re.compile(rb"[\r\n]").search(stream, start)
    return found.start() if found else len(stream)


def check(stream: bytes, chunks: Sequence[bytes]) -> None:
    """What must hold for any way to cut a stream."""
    played = Played(chunks)
    expected = reference_marks(stream)
    assert played.payloads == reference(stream)
    assert [kind for _, kind in played.marks] == [kind for _, kind in expected]
    starts = [0]
    for chunk in chunks:
        starts.append(starts[-1] + len(chunk))
    for (seen, _), (begin, _) in zip(played.marks, expected, strict=True):
        # At the line's beginning, or at the chunk in which its end came.
        assert seen == begin or (seen in starts and begin < seen <= line_end(stream, begin))
    if expected:
        assert stream.startswith(played.passed)
        assert len(played.passed) <= line_end(stream, expected[0][0])


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


@settings(max_examples=600, deadline=None)
@given(stream=st.one_of(WRITTEN, RAW), tail=st.sampled_from([b"", b"data: [DONE]"]), data=st.data())
def test_no_way_to_cut_a_stream_changes_marks_or_payloads(
    stream: bytes, tail: bytes, data: st.DataObject
) -> None:
    stream += tail
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    edges = [0, *cuts, len(stream)]
    check(stream, [stream[a:b] for a, b in zip(edges, edges[1:], strict=False)])


@settings(max_examples=200, deadline=None)
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
    assert gate.feed(b"data: 1\n\ndata: [DONE]\n\n") == [Mark(9, "done")]


def test_a_line_that_began_before_is_held_from_the_start_of_its_last_chunk() -> None:
    gate = Gate(suspect, classify)
    assert gate.feed(b"data: 1\n\ndata: [DO") == []
    assert gate.feed(b"NE]") == []
    assert gate.feed(b"\n") == [Mark(0, "done")]


def test_a_line_feed_left_over_from_crlf_is_no_line_of_its_own() -> None:
    gate = Gate(suspect, classify)
    assert gate.feed(b"data: 1\r") == []
    assert gate.feed(b"\n\r\ndata: [DONE]\r") == [Mark(3, "done")]
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
    began = time.perf_counter()
    for _ in range(size):
        gate.feed(b"x")
    gate.feed(b"\n\n")
    taken = time.perf_counter() - began
    assert gate.take() == [b"x" * size]
    return taken


def test_a_long_line_byte_by_byte_takes_linear_time() -> None:
    small = min(seconds(20_000) for _ in range(3))
    # 10 times as much takes 10 times as long; quadratic work would take 100 times.
    assert seconds(200_000) < 40 * small
