"""What an API says beyond chat completions goes back to the same API alone."""

from __future__ import annotations

import json

import pytest

from proxy.chat.message import read_stored
from proxy.chat.native import without_native
from proxy.formats.native import native_of, with_native

MESSAGE = b'{"role": "assistant", "content": "Yes.", "x": 1.50}'
PARTS = (b'{"type": "thinking", "signature": "e=="}', b'{"type": "text", "text": "Yes."}')
KEPT = with_native(MESSAGE, "messages", PARTS)


def test_parts_come_back_as_they_were() -> None:
    assert native_of(KEPT, "messages") == PARTS
    assert native_of(KEPT, "responses") is None


def test_chat_completions_have_none_of_it_and_the_rest_as_it_was() -> None:
    assert json.loads(without_native(KEPT)) == json.loads(MESSAGE)
    assert b'"x":1.50' in without_native(KEPT).replace(b" ", b"")
    assert without_native(MESSAGE) is MESSAGE


def test_it_plays_no_part_in_equality() -> None:
    assert read_stored(KEPT).digest == read_stored(MESSAGE).digest


@pytest.mark.parametrize(
    "own",
    [
        b'{"native": 1}',
        b'{"native": {"api": "messages"}}',
        b'{"native": {"api": "messages", "parts": ["x"]}}',
        b'{"native": {"api": 7, "parts": []}}',
        b'{"native": ',
        b'["native"]',
    ],
)
def test_a_field_of_that_name_that_is_somebody_elses_is_no_parts(own: bytes) -> None:
    assert native_of(own, "messages") is None
    without_native(own)
