"""Cache marks are no part of what is said: equality does not see them, and history has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.cachemarks import MARKS, without_marks
from proxy.chat.message import read_message

MARK = {"type": "ephemeral"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
CALL = {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}

PLACES: dict[str, Any] = {
    "message": lambda m: {"role": "user", "content": "hi", **m},
    "text-part": lambda m: {"role": "user", "content": [{"type": "text", "text": "hi", **m}]},
    "image-part": lambda m: {"role": "user", "content": [IMAGE | m]},
    "inside-an-image": lambda m: {
        "role": "user",
        "content": [{"type": "image_url", "image_url": IMAGE["image_url"] | m}],
    },
    "call": lambda m: {"role": "assistant", "content": None, "tool_calls": [CALL | m]},
    "custom-call": lambda m: {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "k", "type": "custom", "custom": {"name": "f", "input": "x"}, **m}],
    },
    "part-of-a-result": lambda m: {
        "role": "tool",
        "tool_call_id": "k",
        "content": [{"type": "text", "text": "42", **m}],
    },
    "part-in-a-part": lambda m: {
        "role": "user",
        "content": [{"type": "tool_result", "content": [{"type": "text", "text": "x", **m}]}],
    },
    "system": lambda m: {"role": "system", "content": [{"type": "text", "text": "be brief", **m}]},
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("place", PLACES)
def test_a_mark_is_neither_recorded_nor_compared(place: str, mark: str) -> None:
    plain, marked = (json.dumps(PLACES[place](m)).encode() for m in ({}, {mark: MARK}))
    mine, theirs = read_message(plain), read_message(marked)
    assert mine is not None
    assert theirs is not None
    assert theirs.digest == mine.digest
    assert theirs.raw == marked
    assert json.loads(theirs.record) == json.loads(plain)
    assert mine.record is mine.raw


def test_words_about_marks_are_words() -> None:
    said = {"role": "user", "content": "what is cache_control?"}
    raw = json.dumps(said).encode()
    assert without_marks(raw) is raw


def test_what_a_model_gives_its_tool_keeps_its_names() -> None:
    function = {"name": "f", "arguments": {"cache_control": "no-store"}}
    raw = json.dumps({"role": "assistant", "tool_calls": [{**CALL, "function": function}]}).encode()
    assert without_marks(raw) is raw


def test_all_else_keeps_its_bytes() -> None:
    raw = (
        b'{"role" : "user","cache_control":{},"content":[{"type":"text","text":"\\u00e9"}],"n":1.0}'
    )
    left = b'{"role":"user","content":[{"type":"text","text":"\\u00e9"}],"n":1.0}'
    assert without_marks(raw) == left


@pytest.mark.parametrize(
    "raw",
    [
        b'{"cache_control"',
        b"cache_control",
        b'{"a":' * 50_000 + b'"cache_control"' + b"}" * 50_000,
    ],
)
def test_what_cannot_be_read_is_left_alone(raw: bytes) -> None:
    assert without_marks(raw) == raw
