"""Any way to cut a stream gives its events, and the bytes that went in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.gateway.tools.events import Bytes, EventSplitter, StreamEvent
from tests.support.upstream.spoken import SPOKEN
from tests.support.upstream.streams import reference

LINES = st.sampled_from(
    [b"data: {}", b"data:x", b"data", b": ping", b"event: x", b"id: 1", b"", b"", b"datax: 1"]
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream with all kinds of line ends, and a way to cut it."""
    lines = draw(st.lists(LINES, max_size=12))
    ends = [draw(st.sampled_from([b"\n", b"\r", b"\r\n"])) for _ in lines]
    raw = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    raw += b"".join(line + end for line, end in zip(lines, ends, strict=True))
    raw += draw(st.sampled_from([b"", b"data: last", b"\r"]))
    places = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    cuts = zip([0, *places], [*places, len(raw)], strict=True)
    return raw, [raw[a:b] for a, b in cuts]


def fed(chunks: list[bytes], events: EventSplitter | None = None) -> list[Bytes | StreamEvent]:
    events = events or EventSplitter()
    return [one for chunk in chunks for one in events.feed(chunk)] + events.close()


@given(streams())
def test_every_cut_gives_the_payloads_of_the_standard_and_all_bytes(
    case: tuple[bytes, list[bytes]],
) -> None:
    raw, chunks = case
    found = fed(chunks)
    assert b"".join(one.raw for one in found) == raw
    assert [one.payload for one in found if isinstance(one, StreamEvent)] == reference(raw)


def test_an_empty_piece_between_cr_and_lf_changes_nothing() -> None:
    found = fed([b"data: a\r", b"", b"\ndata: b\r\n", b"\r\n"])
    assert found == [StreamEvent(b"data: a\r\ndata: b\r\n\r\n", b"a\nb")]


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
def test_an_event_is_there_with_its_last_byte(spoken: object, newline: bytes) -> None:
    raw = spoken.with_newline(newline)  # type: ignore[attr-defined]
    events, so_far = EventSplitter(), b""
    for at in range(len(raw)):
        so_far += b"".join(one.raw for one in events.feed(raw[at : at + 1]))
        if raw[: at + 1].endswith(newline * 2):
            assert so_far == raw[: at + 1]


def test_a_comment_passes_at_once() -> None:
    events = EventSplitter()
    assert events.feed(b": ping\n") == [Bytes(b": ping\n")]
    assert events.feed(b"data: {}\n") == []
    assert events.feed(b"\n") == [StreamEvent(b"data: {}\n\n", b"{}")]


def test_an_event_that_is_too_large_passes_unread() -> None:
    raw = b"data: " + b"x" * 100 + b"\n\n" + b"data: {}\n\n"
    found = fed([raw[:60], raw[60:80], raw[80:]], EventSplitter(max_event_bytes=50))
    assert b"".join(one.raw for one in found) == raw
    assert [one.payload for one in found if isinstance(one, StreamEvent)] == [b"{}"]


def test_another_payload_leaves_the_other_fields_of_an_event() -> None:
    (event,) = fed([b'\xef\xbb\xbfdata: {"a":\r\ndata: 1}\r\nid: 5\r\n: c\r\n\r\n'])
    assert isinstance(event, StreamEvent) and json.loads(event.payload) == {"a": 1}
    assert event.replaced(b'{"b":\n2}').raw == b'id: 5\n: c\ndata: {"b": 2}\n\n'
